// A matrix product with an epilogue, by definition: what cuBLASLt and hipBLASLt both promise. Shared by the host runtime
// and the CPU model, so that a port is compared in what it asks for.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
namespace wavesmith_matmul {
enum Type { none, f16, bf16, f32, f64 };
struct Matrix { Type type = none; uint64_t rows = 0, cols = 0; int64_t ld = 0; bool by_rows = false; int batches = 1; int64_t stride = 0; };
struct Problem {
  bool transpose_a = false, transpose_b = false, relu = false, gelu = false, add_bias = false;
  const void* bias = nullptr;
  Type bias_type = none;
};
inline size_t size_of(Type t) { return t == f64 ? 8 : t == f32 ? 4 : 2; }
inline size_t bytes_of(const Matrix& m) {
  const uint64_t last = m.by_rows ? (m.rows - 1) * m.ld + m.cols : (m.cols - 1) * m.ld + m.rows;
  return size_of(m.type) * ((size_t)(m.batches - 1) * m.stride + last);
}
inline double load(const void* p, Type t, size_t i) {
  if (t == f64) return ((const double*)p)[i];
  if (t == f32) return ((const float*)p)[i];
  if (t == f16) return (double)((const _Float16*)p)[i];
  const uint32_t bits = (uint32_t)((const uint16_t*)p)[i] << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
inline void store(void* p, Type t, size_t i, double v) {
  if (t == f64) { ((double*)p)[i] = v; return; }
  if (t == f32) { ((float*)p)[i] = (float)v; return; }
  if (t == f16) { ((_Float16*)p)[i] = (_Float16)v; return; }
  const float f = (float)v;
  uint32_t bits;
  memcpy(&bits, &f, 4);
  ((uint16_t*)p)[i] = f != f ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline size_t place(const Matrix& m, int batch, uint64_t row, uint64_t col) { return (size_t)batch * m.stride + (m.by_rows ? row * m.ld + col : col * m.ld + row); }
/// d = epilogue(alpha op(a) op(b) + beta c + bias), the bias one per row of d; false where the shapes do not fit.
inline bool run(const Problem& p, double alpha, const void* a, const Matrix& A, const void* b, const Matrix& B, double beta, const void* c, const Matrix& C, void* d, const Matrix& D) {
  const uint64_t m = p.transpose_a ? A.cols : A.rows, k = p.transpose_a ? A.rows : A.cols, n = p.transpose_b ? B.rows : B.cols;
  if (k != (p.transpose_b ? B.cols : B.rows) || D.rows != m || D.cols != n || C.rows != m || C.cols != n) return false;
  if (A.batches != D.batches || B.batches != D.batches || C.batches != D.batches) return false;
  for (int batch = 0; batch < D.batches; batch++)
    for (uint64_t i = 0; i < m; i++)
      for (uint64_t j = 0; j < n; j++) {
        double sum = 0;
        for (uint64_t l = 0; l < k; l++) {
          const size_t x = p.transpose_a ? place(A, batch, l, i) : place(A, batch, i, l), y = p.transpose_b ? place(B, batch, j, l) : place(B, batch, l, j);
          sum += load(a, A.type, x) * load(b, B.type, y);
        }
        double v = alpha * sum + (beta == 0 ? 0 : beta * load(c, C.type, place(C, batch, i, j)));
        if (p.add_bias && p.bias) v += load(p.bias, p.bias_type == none ? D.type : p.bias_type, i);
        if (p.relu) v = v > 0 ? v : 0;
        if (p.gelu) v = 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
        store(d, D.type, place(D, batch, i, j), v);
      }
  return true;
}
}  // namespace wavesmith_matmul
