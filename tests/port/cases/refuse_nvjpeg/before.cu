// nvJPEG decoding
#include <nvjpeg.h>
#include <cuda_runtime.h>
int decode(nvjpegHandle_t h, nvjpegJpegState_t s) { nvjpegImage_t image; return nvjpegDecode(h, s, nullptr, 0, NVJPEG_OUTPUT_RGB, &image, nullptr); }
