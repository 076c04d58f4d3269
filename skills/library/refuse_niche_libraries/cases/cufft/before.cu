#include <cufft.h>
void run(cufftHandle p, cufftComplex* x) { cufftExecC2C(p, x, x, CUFFT_FORWARD); }
