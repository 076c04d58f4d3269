// hipBLASLt's host interface with its products computed by definition. Linked only into programs that call it.
#include <hip/hip_runtime_api.h>
#include <hipblaslt/hipblaslt.h>

#include <cstdio>

#include "matmul.h"

extern "C" char* wavesmith_memory(const void* p, size_t size);
extern "C" [[noreturn]] void wavesmith_unknown(const char* what);

namespace {
using namespace wavesmith_matmul;
struct Description { Problem problem; hipDataType scale; };
template <class... T> [[noreturn]] void unknown(const char* format, T... values) {
  char text[200];
  snprintf(text, sizeof text, format, values...);
  wavesmith_unknown(text);
}
Type type_of(int t) {
  switch (t) {
    case HIP_R_16F: return f16;
    case HIP_R_16BF: return bf16;
    case HIP_R_32F: return f32;
    case HIP_R_64F: return f64;
    default: unknown("hipBLASLt with data of type %d", t);
  }
}
template <class T> T value_at(const void* p, size_t size) {
  T v{};
  memcpy(&v, p, size < sizeof v ? size : sizeof v);
  return v;
}
Description& of(hipblasLtMatmulDesc_t d) { return *(Description*)d; }
Matrix& of(hipblasLtMatrixLayout_t m) { return *(Matrix*)m; }
}  // namespace

#define API extern "C" __attribute__((visibility("default"))) hipblasStatus_t
API hipblasLtCreate(hipblasLtHandle_t* h) { *h = (hipblasLtHandle_t)0x1000; return HIPBLAS_STATUS_SUCCESS; }
API hipblasLtDestroy(const hipblasLtHandle_t) { return HIPBLAS_STATUS_SUCCESS; }
API hipblasLtMatrixLayoutCreate(hipblasLtMatrixLayout_t* m, hipDataType t, uint64_t rows, uint64_t cols, int64_t ld) {
  *m = (hipblasLtMatrixLayout_t)(void*)new Matrix{type_of(t), rows, cols, ld};
  return HIPBLAS_STATUS_SUCCESS;
}
API hipblasLtMatrixLayoutDestroy(const hipblasLtMatrixLayout_t m) { delete &of(m); return HIPBLAS_STATUS_SUCCESS; }
API hipblasLtMatrixLayoutSetAttribute(hipblasLtMatrixLayout_t m, hipblasLtMatrixLayoutAttribute_t a, const void* p, size_t n) {
  switch (a) {
    case HIPBLASLT_MATRIX_LAYOUT_BATCH_COUNT: of(m).batches = value_at<int>(p, n); break;
    case HIPBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: of(m).stride = value_at<int64_t>(p, n); break;
    case HIPBLASLT_MATRIX_LAYOUT_TYPE: of(m).type = type_of(value_at<int>(p, n)); break;
    case HIPBLASLT_MATRIX_LAYOUT_ROWS: of(m).rows = value_at<uint64_t>(p, n); break;
    case HIPBLASLT_MATRIX_LAYOUT_COLS: of(m).cols = value_at<uint64_t>(p, n); break;
    case HIPBLASLT_MATRIX_LAYOUT_LD: of(m).ld = value_at<int64_t>(p, n); break;
    case HIPBLASLT_MATRIX_LAYOUT_ORDER:
      if (value_at<int>(p, n) > HIPBLASLT_ORDER_ROW) unknown("hipBLASLt with an order of %d", value_at<int>(p, n));
      of(m).by_rows = value_at<int>(p, n) == HIPBLASLT_ORDER_ROW;
      break;
    default: return HIPBLAS_STATUS_INVALID_VALUE;
  }
  return HIPBLAS_STATUS_SUCCESS;
}
API hipblasLtMatmulDescCreate(hipblasLtMatmulDesc_t* d, hipblasComputeType_t, hipDataType scale) {
  *d = (hipblasLtMatmulDesc_t)(void*)new Description{{}, scale};
  return HIPBLAS_STATUS_SUCCESS;
}
API hipblasLtMatmulDescDestroy(const hipblasLtMatmulDesc_t d) { delete &of(d); return HIPBLAS_STATUS_SUCCESS; }
API hipblasLtMatmulDescSetAttribute(hipblasLtMatmulDesc_t d, hipblasLtMatmulDescAttributes_t a, const void* p, size_t n) {
  Problem& problem = of(d).problem;
  switch (a) {
    case HIPBLASLT_MATMUL_DESC_TRANSA: problem.transpose_a = value_at<int>(p, n) != HIPBLAS_OP_N; break;
    case HIPBLASLT_MATMUL_DESC_TRANSB: problem.transpose_b = value_at<int>(p, n) != HIPBLAS_OP_N; break;
    case HIPBLASLT_MATMUL_DESC_BIAS_POINTER: problem.bias = value_at<const void*>(p, n); break;
    case HIPBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: problem.bias_type = type_of(value_at<int>(p, n)); break;
    case HIPBLASLT_MATMUL_DESC_EPILOGUE: {
      const unsigned e = value_at<unsigned>(p, n);
      if (e & ~(unsigned)(HIPBLASLT_EPILOGUE_DEFAULT | HIPBLASLT_EPILOGUE_RELU_BIAS | HIPBLASLT_EPILOGUE_GELU)) unknown("hipBLASLt with an epilogue of %u", e);
      problem.relu = e & HIPBLASLT_EPILOGUE_RELU, problem.gelu = e & HIPBLASLT_EPILOGUE_GELU, problem.add_bias = e & HIPBLASLT_EPILOGUE_BIAS;
      break;
    }
    default:
      if (a < HIPBLASLT_MATMUL_DESC_MAX) unknown("hipBLASLt's attribute %d of a product", (int)a);
      return HIPBLAS_STATUS_INVALID_VALUE;
  }
  return HIPBLAS_STATUS_SUCCESS;
}
API hipblasLtMatmulPreferenceCreate(hipblasLtMatmulPreference_t* p) { *p = (hipblasLtMatmulPreference_t)(void*)new char; return HIPBLAS_STATUS_SUCCESS; }
API hipblasLtMatmulPreferenceDestroy(const hipblasLtMatmulPreference_t p) { delete (char*)(void*)p; return HIPBLAS_STATUS_SUCCESS; }
API hipblasLtMatmulPreferenceSetAttribute(hipblasLtMatmulPreference_t, hipblasLtMatmulPreferenceAttributes_t, const void*, size_t) { return HIPBLAS_STATUS_SUCCESS; }
API hipblasLtMatmulAlgoGetHeuristic(hipblasLtHandle_t, hipblasLtMatmulDesc_t, hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t, hipblasLtMatrixLayout_t, hipblasLtMatmulPreference_t, int wanted, hipblasLtMatmulHeuristicResult_t found[], int* count) {
  *count = wanted > 0 ? 1 : 0;
  if (*count) found[0].workspaceSize = 0, found[0].state = HIPBLAS_STATUS_SUCCESS;
  return HIPBLAS_STATUS_SUCCESS;
}
API hipblasLtMatmul(hipblasLtHandle_t, hipblasLtMatmulDesc_t d, const void* alpha, const void* a, hipblasLtMatrixLayout_t A, const void* b, hipblasLtMatrixLayout_t B, const void* beta, const void* c, hipblasLtMatrixLayout_t C, void* to, hipblasLtMatrixLayout_t D, const hipblasLtMatmulAlgo_t*, void*, size_t, hipStream_t) {
  const Type scale = type_of(of(d).scale);
  Problem problem = of(d).problem;
  const double times = load(alpha, scale, 0), plus = load(beta, scale, 0);
  const void *pa = wavesmith_memory(a, bytes_of(of(A))), *pb = wavesmith_memory(b, bytes_of(of(B))), *pc = plus == 0 ? to : wavesmith_memory(c, bytes_of(of(C)));
  char* pd = wavesmith_memory(to, bytes_of(of(D)));
  if (problem.add_bias && problem.bias) {
    problem.bias = wavesmith_memory(problem.bias, of(D).rows * size_of(problem.bias_type == none ? of(D).type : problem.bias_type));
    if (!problem.bias) return HIPBLAS_STATUS_INVALID_VALUE;
  }
  if (!pa || !pb || !pc || !pd || !run(problem, times, pa, of(A), pb, of(B), plus, pc, of(C), pd, of(D))) return HIPBLAS_STATUS_INVALID_VALUE;
  return HIPBLAS_STATUS_SUCCESS;
}
