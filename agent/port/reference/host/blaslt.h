// cuBLASLt's host interface with its products computed by definition.
#pragma once
#include "runtime.h"
#include "matmul.h"
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1, CUBLAS_STATUS_ALLOC_FAILED = 3, CUBLAS_STATUS_INVALID_VALUE = 7, CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum cudaDataType { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
typedef cudaDataType cudaDataType_t;
enum cublasComputeType_t { CUBLAS_COMPUTE_16F = 64, CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_32F_FAST_TF32 = 77, CUBLAS_COMPUTE_64F = 70 };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C };
enum cublasLtEpilogue_t { CUBLASLT_EPILOGUE_DEFAULT = 1, CUBLASLT_EPILOGUE_RELU = 2, CUBLASLT_EPILOGUE_BIAS = 4, CUBLASLT_EPILOGUE_RELU_BIAS = 6, CUBLASLT_EPILOGUE_GELU = 32, CUBLASLT_EPILOGUE_GELU_BIAS = 36 };
enum cublasLtOrder_t { CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW };
enum cublasLtMatmulDescAttributes_t { CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4, CUBLASLT_MATMUL_DESC_EPILOGUE = 7, CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8, CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26 };
enum cublasLtMatrixLayoutAttribute_t { CUBLASLT_MATRIX_LAYOUT_TYPE, CUBLASLT_MATRIX_LAYOUT_ORDER, CUBLASLT_MATRIX_LAYOUT_ROWS, CUBLASLT_MATRIX_LAYOUT_COLS, CUBLASLT_MATRIX_LAYOUT_LD, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET };
enum cublasLtMatmulPreferenceAttributes_t { CUBLASLT_MATMUL_PREF_SEARCH_MODE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES };
struct cublasLtContext;
typedef cublasLtContext* cublasLtHandle_t;
struct cublasLtMatmulDescOpaque_t { wavesmith_matmul::Problem problem; cudaDataType scale; };
typedef cublasLtMatmulDescOpaque_t* cublasLtMatmulDesc_t;
typedef wavesmith_matmul::Matrix* cublasLtMatrixLayout_t;
struct cublasLtMatmulAlgo_t { unsigned long long data[8]; };
struct cublasLtMatmulPreferenceOpaque_t {};
typedef cublasLtMatmulPreferenceOpaque_t* cublasLtMatmulPreference_t;
struct cublasLtMatmulHeuristicResult_t { cublasLtMatmulAlgo_t algo; size_t workspaceSize; cublasStatus_t state; float wavesCount; int reserved[4]; };
namespace wavesmith_host {
inline wavesmith_matmul::Type type_of(int t) {
  switch (t) {
    case CUDA_R_16F: return wavesmith_matmul::f16;
    case CUDA_R_16BF: return wavesmith_matmul::bf16;
    case CUDA_R_32F: return wavesmith_matmul::f32;
    case CUDA_R_64F: return wavesmith_matmul::f64;
    default: ref::stop(ref::unsupported, "cuBLASLt with data of another type");
  }
}
template <class T> T value_at(const void* p, size_t n) { T v{}; memcpy(&v, p, std::min(n, sizeof v)); return v; }
}  // namespace wavesmith_host
inline cublasStatus_t cublasLtCreate(cublasLtHandle_t* h) { *h = (cublasLtHandle_t)0x1000; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* m, cudaDataType t, uint64_t rows, uint64_t cols, int64_t ld) { *m = new wavesmith_matmul::Matrix{wavesmith_host::type_of(t), rows, cols, ld}; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t m) { delete m; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t m, cublasLtMatrixLayoutAttribute_t a, const void* p, size_t n) {
  using namespace wavesmith_host;
  switch (a) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: m->type = type_of(value_at<int>(p, n)); break;
    case CUBLASLT_MATRIX_LAYOUT_ORDER: m->by_rows = value_at<int>(p, n) == CUBLASLT_ORDER_ROW; break;
    case CUBLASLT_MATRIX_LAYOUT_ROWS: m->rows = value_at<uint64_t>(p, n); break;
    case CUBLASLT_MATRIX_LAYOUT_COLS: m->cols = value_at<uint64_t>(p, n); break;
    case CUBLASLT_MATRIX_LAYOUT_LD: m->ld = value_at<int64_t>(p, n); break;
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: m->batches = value_at<int>(p, n); break;
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: m->stride = value_at<int64_t>(p, n); break;
  }
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t, cudaDataType scale) { *d = new cublasLtMatmulDescOpaque_t{{}, scale}; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { delete d; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const void* p, size_t n) {
  using namespace wavesmith_host;
  switch (a) {
    case CUBLASLT_MATMUL_DESC_TRANSA: d->problem.transpose_a = value_at<int>(p, n) != CUBLAS_OP_N; break;
    case CUBLASLT_MATMUL_DESC_TRANSB: d->problem.transpose_b = value_at<int>(p, n) != CUBLAS_OP_N; break;
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: d->problem.bias = value_at<const void*>(p, n); break;
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: d->problem.bias_type = type_of(value_at<int>(p, n)); break;
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM: break;
    case CUBLASLT_MATMUL_DESC_EPILOGUE: {
      const unsigned e = value_at<unsigned>(p, n);
      d->problem.relu = e & CUBLASLT_EPILOGUE_RELU, d->problem.gelu = e & CUBLASLT_EPILOGUE_GELU, d->problem.add_bias = e & CUBLASLT_EPILOGUE_BIAS;
      break;
    }
  }
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* p) { *p = new cublasLtMatmulPreferenceOpaque_t; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { delete p; return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*, size_t) { return CUBLAS_STATUS_SUCCESS; }
inline cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int wanted, cublasLtMatmulHeuristicResult_t* found, int* count) {
  *count = wanted > 0;
  if (*count) found[0].workspaceSize = 0, found[0].state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}
inline cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void* alpha, const void* a, cublasLtMatrixLayout_t A, const void* b, cublasLtMatrixLayout_t B, const void* beta, const void* c, cublasLtMatrixLayout_t C, void* to, cublasLtMatrixLayout_t D, const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t) {
  const auto scale = wavesmith_host::type_of(d->scale);
  const double times = wavesmith_matmul::load(alpha, scale, 0), plus = wavesmith_matmul::load(beta, scale, 0);
  return wavesmith_matmul::run(d->problem, times, a, *A, b, *B, plus, c, *C, to, *D) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}
