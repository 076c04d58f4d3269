//@ entry: graph_instantiate
//@ provides: hipGraphInstantiate
//@ probe-host: hipGraphExec_t e; hipGraph_t g = nullptr; hipGraphInstantiate(&e, g, 0)
//@ contract: exact
//@ note: the three-argument form of CUDA 12
static inline hipError_t hipGraphInstantiate(hipGraphExec_t* exec, hipGraph_t graph, unsigned long long flags) { return hipGraphInstantiateWithFlags(exec, graph, flags); }
//@ end

//@ entry: function_attributes
//@ provides: hipFuncSetAttribute, hipFuncGetAttributes, hipFuncSetCacheConfig, hipFuncSetSharedMemConfig
//@ contract: exact
//@ note: accept a kernel by its name, as CUDA's templates do; HIP wants a cast
//@ native: 7.2
template <class R, class... A> static inline hipError_t hipFuncSetAttribute(R (*kernel)(A...), hipFuncAttribute attribute, int value) { return ::hipFuncSetAttribute((const void*)kernel, attribute, value); }
template <class R, class... A> static inline hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, R (*kernel)(A...)) { return ::hipFuncGetAttributes(attributes, (const void*)kernel); }
template <class R, class... A> static inline hipError_t hipFuncSetCacheConfig(R (*kernel)(A...), hipFuncCache_t config) { return ::hipFuncSetCacheConfig((const void*)kernel, config); }
template <class R, class... A> static inline hipError_t hipFuncSetSharedMemConfig(R (*kernel)(A...), hipSharedMemConfig config) { return ::hipFuncSetSharedMemConfig((const void*)kernel, config); }
//@ end

//@ entry: device_attributes
//@ provides: hipDeviceGetAttribute
//@ contract: weaker
//@ rename: wavesmith
//@ note: warp size is answered with the logical 32 and compute capability with the CUDA value this port resolved its guards to; the rest is HIP's
namespace wavesmith {
static inline hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  if (attribute == hipDeviceAttributeWarpSize) { *value = 32; return hipSuccess; }
  if (attribute == hipDeviceAttributeComputeCapabilityMajor) { *value = WAVESMITH_CUDA_CAPABILITY / 100; return hipSuccess; }
  if (attribute == hipDeviceAttributeComputeCapabilityMinor) { *value = WAVESMITH_CUDA_CAPABILITY / 10 % 10; return hipSuccess; }
  return ::hipDeviceGetAttribute(value, attribute, device);
}
}  // namespace wavesmith
//@ end

//@ entry: launch_config
//@ provides: cudaLaunchKernelEx, cudaLaunchConfig_t, cudaLaunchAttribute, cudaLaunchAttributeCooperative, cudaLaunchAttributeProgrammaticStreamSerialization
//@ probe-host: hipLaunchConfig_t c; (void)c
//@ contract: performance-only
//@ note: programmatic stream serialization is dropped (kernels run in stream order); cooperative launches stay cooperative
enum cudaLaunchAttributeID { cudaLaunchAttributeIgnore, cudaLaunchAttributeCooperative, cudaLaunchAttributePriority, cudaLaunchAttributeProgrammaticStreamSerialization };
union cudaLaunchAttributeValue { int cooperative; int priority; int programmaticStreamSerializationAllowed; };
struct cudaLaunchAttribute { cudaLaunchAttributeID id; cudaLaunchAttributeValue val; };
struct cudaLaunchConfig_t { dim3 gridDim, blockDim; size_t dynamicSmemBytes = 0; hipStream_t stream = nullptr; cudaLaunchAttribute* attrs = nullptr; unsigned numAttrs = 0; };
template <class... P, class... A> static inline hipError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... args) {
  bool cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; i++) cooperative |= config->attrs[i].id == cudaLaunchAttributeCooperative && config->attrs[i].val.cooperative;
  std::tuple<typename std::decay<P>::type...> values{static_cast<P>(args)...};
  void* pointers[sizeof...(P) + 1] = {};
  std::apply([&](auto&... v) { unsigned i = 0; ((pointers[i++] = (void*)&v), ...); }, values);
  return cooperative ? hipLaunchCooperativeKernel((const void*)kernel, config->gridDim, config->blockDim, pointers, (unsigned)config->dynamicSmemBytes, config->stream)
                     : hipLaunchKernel((const void*)kernel, config->gridDim, config->blockDim, pointers, config->dynamicSmemBytes, config->stream);
}
//@ end

//@ entry: dependent_launch
//@ provides: cudaGridDependencySynchronize, cudaTriggerProgrammaticLaunchCompletion
//@ contract: performance-only
//@ note: kernels run in stream order, so there is nothing to wait for
static __device__ __forceinline__ void cudaGridDependencySynchronize() {}
static __device__ __forceinline__ void cudaTriggerProgrammaticLaunchCompletion() {}
//@ end

//@ entry: grid_constant
//@ provides: __grid_constant__
//@ contract: performance-only
//@ note: kernel arguments are read-only constants on AMD anyway
#define __grid_constant__
//@ end

//@ entry: register_limit
//@ provides: __maxnreg__
//@ contract: performance-only
//@ note: the register limit of an NVIDIA SM is no guide for AMD
#define __maxnreg__(...)
//@ end

//@ entry: nvtx
//@ header: nvtx3/nvToolsExt.h, nvToolsExt.h, nvtx3/nvtx3.hpp, nvtx3/nvToolsExtCuda.h, nvToolsExtCuda.h, nvtx3/nvToolsExtCudaRt.h, nvToolsExtCudaRt.h
//@ contract: no-op
//@ note: profiler marks go to roctx when its header is installed, else nowhere
#if defined(__has_include)
#if __has_include(<rocprofiler-sdk-roctx/roctx.h>) && defined(WAVESMITH_USE_ROCTX)
#include <rocprofiler-sdk-roctx/roctx.h>
#define WAVESMITH_ROCTX 1
#elif __has_include(<roctracer/roctx.h>) && defined(WAVESMITH_USE_ROCTX)
#include <roctracer/roctx.h>
#define WAVESMITH_ROCTX 1
#endif
#endif
#include <cstdint>
typedef uint64_t nvtxRangeId_t;
typedef struct nvtxDomainRegistration* nvtxDomainHandle_t;
typedef struct nvtxStringRegistration* nvtxStringHandle_t;
enum { NVTX_VERSION = 3, NVTX_COLOR_UNKNOWN = 0, NVTX_COLOR_ARGB = 1, NVTX_MESSAGE_UNKNOWN = 0, NVTX_MESSAGE_TYPE_ASCII = 1, NVTX_MESSAGE_TYPE_UNICODE = 2, NVTX_MESSAGE_TYPE_REGISTERED = 3, NVTX_PAYLOAD_UNKNOWN = 0, NVTX_PAYLOAD_TYPE_UNSIGNED_INT64 = 1, NVTX_PAYLOAD_TYPE_INT64 = 2, NVTX_PAYLOAD_TYPE_DOUBLE = 3 };
#define NVTX_EVENT_ATTRIB_STRUCT_SIZE ((uint16_t)sizeof(nvtxEventAttributes_t))
union nvtxMessageValue_t { const char* ascii; const wchar_t* unicode; nvtxStringHandle_t registered; };
struct nvtxEventAttributes_t {
  uint16_t version, size;
  uint32_t category;
  int32_t colorType;
  uint32_t color;
  int32_t payloadType, reserved0;
  union { uint64_t ullValue; int64_t llValue; double dValue; } payload;
  int32_t messageType;
  nvtxMessageValue_t message;
};
static inline int nvtxRangePushA(const char* text) {
#ifdef WAVESMITH_ROCTX
  return roctxRangePushA(text);
#else
  (void)text;
  return 0;
#endif
}
static inline int nvtxRangePop() {
#ifdef WAVESMITH_ROCTX
  return roctxRangePop();
#else
  return 0;
#endif
}
static inline void nvtxMarkA(const char* text) {
#ifdef WAVESMITH_ROCTX
  roctxMarkA(text);
#else
  (void)text;
#endif
}
static inline const char* wavesmith_nvtx_text(const nvtxEventAttributes_t* a) { return a && a->messageType == NVTX_MESSAGE_TYPE_ASCII && a->message.ascii ? a->message.ascii : ""; }
static inline int nvtxRangePushEx(const nvtxEventAttributes_t* a) { return nvtxRangePushA(wavesmith_nvtx_text(a)); }
static inline void nvtxMarkEx(const nvtxEventAttributes_t* a) { nvtxMarkA(wavesmith_nvtx_text(a)); }
static inline nvtxRangeId_t nvtxRangeStartA(const char* text) { nvtxMarkA(text); return 0; }
static inline nvtxRangeId_t nvtxRangeStartEx(const nvtxEventAttributes_t* a) { nvtxMarkEx(a); return 0; }
static inline void nvtxRangeEnd(nvtxRangeId_t) {}
static inline void nvtxNameOsThreadA(uint32_t, const char*) {}
static inline void nvtxNameCategoryA(uint32_t, const char*) {}
static inline nvtxDomainHandle_t nvtxDomainCreateA(const char*) { return nullptr; }
static inline void nvtxDomainDestroy(nvtxDomainHandle_t) {}
static inline int nvtxDomainRangePushEx(nvtxDomainHandle_t, const nvtxEventAttributes_t* a) { return nvtxRangePushEx(a); }
static inline int nvtxDomainRangePop(nvtxDomainHandle_t) { return nvtxRangePop(); }
#define nvtxRangePush nvtxRangePushA
#define nvtxMark nvtxMarkA
#define nvtxRangeStart nvtxRangeStartA
namespace nvtx3 {
struct scoped_range { explicit scoped_range(const char* text) { nvtxRangePushA(text); } ~scoped_range() { nvtxRangePop(); } scoped_range(const scoped_range&) = delete; };
inline void mark(const char* text) { nvtxMarkA(text); }
}  // namespace nvtx3
#define NVTX3_FUNC_RANGE() ::nvtx3::scoped_range wavesmith_nvtx_range(__func__)
//@ end

//@ entry: small_headers
//@ header: device_launch_parameters.h, device_atomic_functions.h, sm_20_intrinsics.h, sm_30_intrinsics.h, sm_32_intrinsics.h, sm_35_intrinsics.h, sm_60_atomic_functions.h, sm_61_intrinsics.h, crt/host_defines.h, host_defines.h, cuda_device_runtime_api.h, math_functions.h, device_double_functions.h, vector_functions.h, helper_math_builtin.h, crt/device_functions.h, cuda_texture_types.h
//@ contract: exact
//@ note: declarations that hip_runtime.h already holds
//@ end

//@ entry: math_constants
//@ header: math_constants.h
//@ includes: hip/hip_math_constants.h
//@ contract: exact
//@ note: CUDART_* constants
#ifndef CUDART_INF_F
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_PI_F 3.141592654f
#define CUDART_PIO2_F 1.570796327f
#define CUDART_PIO4_F 0.785398163f
#define CUDART_2_OVER_PI_F 0.636619772f
#define CUDART_LOG2_F 0.693147181f
#define CUDART_LN2_F 0.693147181f
#define CUDART_L2E_F 1.442695041f
#define CUDART_L2T_F 3.321928094f
#define CUDART_LG2_F 0.301029996f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_SQRT_HALF_F 0.707106781f
#define CUDART_MAX_NORMAL_F 3.402823466e38f
#define CUDART_MIN_DENORM_F 1.401298464e-45f
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_PIO2 1.5707963267948966e+0
#define CUDART_L2E 1.4426950408889634e+0
#define CUDART_LN2 6.9314718055994529e-1
#define CUDART_SQRT_TWO 1.4142135623730951e+0
#define CUDART_ONE_F 1.0f
#define CUDART_ZERO_F 0.0f
#endif
//@ end

//@ entry: cublaslt
//@ header: cublasLt.h
//@ includes: hipblaslt/hipblaslt.h
//@ contract: exact
//@ note: hipBLASLt under CUDA's spellings; attributes it lacks stay undeclared on purpose
#define cublasLtHandle_t hipblasLtHandle_t
#define cublasLtMatmulDesc_t hipblasLtMatmulDesc_t
#define cublasLtMatmulDescOpaque_t hipblasLtMatmulDescOpaque_t
#define cublasLtMatrixLayout_t hipblasLtMatrixLayout_t
#define cublasLtMatmulPreference_t hipblasLtMatmulPreference_t
#define cublasLtMatmulAlgo_t hipblasLtMatmulAlgo_t
#define cublasLtMatmulHeuristicResult_t hipblasLtMatmulHeuristicResult_t
#define cublasLtEpilogue_t hipblasLtEpilogue_t
#define cublasLtOrder_t hipblasLtOrder_t
#define cublasLtPointerMode_t hipblasLtPointerMode_t
#define cublasLtMatmulDescAttributes_t hipblasLtMatmulDescAttributes_t
#define cublasLtMatrixLayoutAttribute_t hipblasLtMatrixLayoutAttribute_t
#define cublasLtCreate hipblasLtCreate
#define cublasLtDestroy hipblasLtDestroy
#define cublasLtMatmul hipblasLtMatmul
#define cublasLtMatmulDescCreate hipblasLtMatmulDescCreate
#define cublasLtMatmulDescDestroy hipblasLtMatmulDescDestroy
#define cublasLtMatmulDescSetAttribute hipblasLtMatmulDescSetAttribute
#define cublasLtMatmulDescGetAttribute hipblasLtMatmulDescGetAttribute
#define cublasLtMatrixLayoutCreate hipblasLtMatrixLayoutCreate
#define cublasLtMatrixLayoutDestroy hipblasLtMatrixLayoutDestroy
#define cublasLtMatrixLayoutSetAttribute hipblasLtMatrixLayoutSetAttribute
#define cublasLtMatmulPreferenceCreate hipblasLtMatmulPreferenceCreate
#define cublasLtMatmulPreferenceDestroy hipblasLtMatmulPreferenceDestroy
#define cublasLtMatmulPreferenceSetAttribute hipblasLtMatmulPreferenceSetAttribute
#define cublasLtMatmulAlgoGetHeuristic hipblasLtMatmulAlgoGetHeuristic
#define CUBLASLT_MATMUL_DESC_TRANSA HIPBLASLT_MATMUL_DESC_TRANSA
#define CUBLASLT_MATMUL_DESC_TRANSB HIPBLASLT_MATMUL_DESC_TRANSB
#define CUBLASLT_MATMUL_DESC_EPILOGUE HIPBLASLT_MATMUL_DESC_EPILOGUE
#define CUBLASLT_MATMUL_DESC_BIAS_POINTER HIPBLASLT_MATMUL_DESC_BIAS_POINTER
#define CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE
#define CUBLASLT_MATMUL_DESC_A_SCALE_POINTER HIPBLASLT_MATMUL_DESC_A_SCALE_POINTER
#define CUBLASLT_MATMUL_DESC_B_SCALE_POINTER HIPBLASLT_MATMUL_DESC_B_SCALE_POINTER
#define CUBLASLT_MATMUL_DESC_C_SCALE_POINTER HIPBLASLT_MATMUL_DESC_C_SCALE_POINTER
#define CUBLASLT_MATMUL_DESC_D_SCALE_POINTER HIPBLASLT_MATMUL_DESC_D_SCALE_POINTER
#define CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER
#define CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD HIPBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD
#define CUBLASLT_MATMUL_DESC_POINTER_MODE HIPBLASLT_MATMUL_DESC_POINTER_MODE
#define CUBLASLT_MATMUL_DESC_AMAX_D_POINTER HIPBLASLT_MATMUL_DESC_AMAX_D_POINTER
#define CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES HIPBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
#define CUBLASLT_EPILOGUE_DEFAULT HIPBLASLT_EPILOGUE_DEFAULT
#define CUBLASLT_EPILOGUE_RELU HIPBLASLT_EPILOGUE_RELU
#define CUBLASLT_EPILOGUE_BIAS HIPBLASLT_EPILOGUE_BIAS
#define CUBLASLT_EPILOGUE_RELU_BIAS HIPBLASLT_EPILOGUE_RELU_BIAS
#define CUBLASLT_EPILOGUE_GELU HIPBLASLT_EPILOGUE_GELU
#define CUBLASLT_EPILOGUE_GELU_BIAS HIPBLASLT_EPILOGUE_GELU_BIAS
#define CUBLASLT_EPILOGUE_GELU_AUX HIPBLASLT_EPILOGUE_GELU_AUX
#define CUBLASLT_EPILOGUE_GELU_AUX_BIAS HIPBLASLT_EPILOGUE_GELU_AUX_BIAS
#define CUBLASLT_EPILOGUE_DGELU HIPBLASLT_EPILOGUE_DGELU
#define CUBLASLT_EPILOGUE_DGELU_BGRAD HIPBLASLT_EPILOGUE_DGELU_BGRAD
#define CUBLASLT_EPILOGUE_BGRADA HIPBLASLT_EPILOGUE_BGRADA
#define CUBLASLT_EPILOGUE_BGRADB HIPBLASLT_EPILOGUE_BGRADB
#define CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT
#define CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET
#define CUBLASLT_MATRIX_LAYOUT_TYPE HIPBLASLT_MATRIX_LAYOUT_TYPE
#define CUBLASLT_MATRIX_LAYOUT_ORDER HIPBLASLT_MATRIX_LAYOUT_ORDER
#define CUBLASLT_MATRIX_LAYOUT_ROWS HIPBLASLT_MATRIX_LAYOUT_ROWS
#define CUBLASLT_MATRIX_LAYOUT_COLS HIPBLASLT_MATRIX_LAYOUT_COLS
#define CUBLASLT_MATRIX_LAYOUT_LD HIPBLASLT_MATRIX_LAYOUT_LD
#define CUBLASLT_ORDER_COL HIPBLASLT_ORDER_COL
#define CUBLASLT_ORDER_ROW HIPBLASLT_ORDER_ROW
//@ end

//@ entry: cublaslt_fast_accumulation
//@ provides: CUBLASLT_MATMUL_DESC_FAST_ACCUM
//@ requires: cublaslt
//@ contract: weaker
//@ note: hipBLASLt always accumulates in full fp32, so a request for the faster, less precise mode is dropped; results differ from NVIDIA's in the last bits
#define CUBLASLT_MATMUL_DESC_FAST_ACCUM ((hipblasLtMatmulDescAttributes_t)0x57f0)
namespace wavesmith {
static inline hipblasStatus_t set_matmul_attribute(hipblasLtMatmulDesc_t d, hipblasLtMatmulDescAttributes_t a, const void* p, size_t n) {
  return a == CUBLASLT_MATMUL_DESC_FAST_ACCUM ? HIPBLAS_STATUS_SUCCESS : hipblasLtMatmulDescSetAttribute(d, a, p, n);
}
}  // namespace wavesmith
#define hipblasLtMatmulDescSetAttribute ::wavesmith::set_matmul_attribute
//@ end

//@ entry: hipblas_compute_types
//@ provides: hipblasGemmEx, hipblasGemmStridedBatchedEx, hipblasGemmBatchedEx, hipblasComputeType_t
//@ unless: HIPBLAS_R_8I, HIPBLAS_R_16F, HIPBLAS_R_32F, HIPBLAS_R_16B, HIPBLAS_R_64F, hipblasDatatype_t
//@ contract: exact
//@ note: the interface with compute types, which is the one of CUDA 11 and later
// hipblasGemmEx, hipblasGemmStridedBatchedEx and hipblasGemmBatchedEx then take a hipblasComputeType_t.
#define HIPBLAS_V2
//@ end

//@ entry: rocm_version
//@ header: rocm-core/rocm_version.h
//@ contract: exact
//@ note: from HIP's own version, which is ROCm's; the header belongs to a whole installation of ROCm
#ifndef ROCM_VERSION_MAJOR
#define ROCM_VERSION_MAJOR HIP_VERSION_MAJOR
#define ROCM_VERSION_MINOR HIP_VERSION_MINOR
#define ROCM_VERSION_PATCH HIP_VERSION_PATCH
#endif
//@ end
