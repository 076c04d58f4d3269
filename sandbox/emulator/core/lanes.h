// Turns a .def list into functions and, after TABLE is defined, into table entries. Each operation is one lane loop.
#if !defined(TABLE)
#define UNARY(NAME, TA, TD, EXPR)                                                         \
  static void NAME(wave *w, const record *r) {                                            \
    const TA *A = source(w, r, 0);                                                        \
    TD *D = destination(w, r);                                                            \
    EACH_LANE { TA a = A[i]; D[i] = (TD)(EXPR); }                                         \
    finish(w, r, D);                                                                      \
  }
#define BINARY(NAME, TA, TB, TD, EXPR)                                                    \
  static void NAME(wave *w, const record *r) {                                            \
    const TA *A = source(w, r, 0);                                                        \
    const TB *B = source(w, r, 1);                                                        \
    TD *D = destination(w, r);                                                            \
    EACH_LANE { TA a = A[i]; TB b = B[i]; D[i] = (TD)(EXPR); }                            \
    finish(w, r, D);                                                                      \
  }
#define TERNARY(NAME, TA, TB, TC, TD, EXPR)                                               \
  static void NAME(wave *w, const record *r) {                                            \
    const TA *A = source(w, r, 0);                                                        \
    const TB *B = source(w, r, 1);                                                        \
    const TC *C = source(w, r, 2);                                                        \
    TD *D = destination(w, r);                                                            \
    EACH_LANE { TA a = A[i]; TB b = B[i]; TC c = C[i]; D[i] = (TD)(EXPR); }               \
    finish(w, r, D);                                                                      \
  }
#define SATURATING(NAME, T, EXPR, CLAMPED)                                                \
  static void NAME(wave *w, const record *r) {                                            \
    const T *A = source(w, r, 0), *B = source(w, r, 1);                                   \
    T *D = destination(w, r);                                                             \
    if (r->clamp)                                                                         \
      EACH_LANE { T a = A[i], b = B[i]; D[i] = (T)(CLAMPED); }                            \
    else                                                                                  \
      EACH_LANE { T a = A[i], b = B[i]; D[i] = (T)(EXPR); }                               \
    finish(w, r, D);                                                                      \
  }
#define SATURATING3(NAME, T, TD, EXPR, CLAMPED)                                           \
  static void NAME(wave *w, const record *r) {                                            \
    const T *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);             \
    TD *D = destination(w, r);                                                            \
    if (r->clamp)                                                                         \
      EACH_LANE { T a = A[i], b = B[i], c = C[i]; D[i] = (TD)(CLAMPED); }                 \
    else                                                                                  \
      EACH_LANE { T a = A[i], b = B[i], c = C[i]; D[i] = (TD)(EXPR); }                    \
    finish(w, r, D);                                                                      \
  }
#else
#undef UNARY
#undef BINARY
#undef TERNARY
#undef SATURATING
#undef SATURATING3
#define UNARY(NAME, ...) {#NAME, NAME, 0},
#define BINARY(NAME, ...) {#NAME, NAME, 0},
#define TERNARY(NAME, ...) {#NAME, NAME, 0},
#define SATURATING(NAME, ...) {#NAME, NAME, SATURATES},
#define SATURATING3(NAME, ...) {#NAME, NAME, SATURATES},
#endif
