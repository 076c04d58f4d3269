// Random draws that both sides are given: cuRAND's and hipRAND's device functions over one stream that depends on seed,
// sequence, offset and number of the draw. The two libraries draw different numbers, so there is nothing else to compare.
#pragma once
#ifndef WAVESMITH_RAND
#define WAVESMITH_RAND(name) curand##name
#define WAVESMITH_RAND_FN inline
#endif
namespace wavesmith_given {
struct Draws { unsigned long long seed, sequence, offset; };
WAVESMITH_RAND_FN unsigned long long mixed(unsigned long long v) {
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9ull;
  v = (v ^ (v >> 27)) * 0x94d049bb133111ebull;
  return v ^ (v >> 31);
}
WAVESMITH_RAND_FN unsigned long long next(Draws* s) { return mixed(s->seed + mixed(s->sequence + 0x9e3779b97f4a7c15ull * ++s->offset)); }
WAVESMITH_RAND_FN unsigned bits(Draws* s) { return (unsigned)(next(s) >> 32); }
/// In (0, 1], exact in 24 bits.
WAVESMITH_RAND_FN float uniform(Draws* s) { return (float)((bits(s) >> 8) + 1) * 0x1p-24f; }
WAVESMITH_RAND_FN double uniform_double(Draws* s) { return (double)((next(s) >> 11) + 1) * 0x1p-53; }
/// Mean 0, deviation 1, by a sum of twelve: no function whose last bits differ between machines.
WAVESMITH_RAND_FN float normal(Draws* s) {
  unsigned sum = 0;
  for (int i = 0; i < 12; i++) sum += bits(s) >> 12;
  return (float)((int)sum - (6 << 20)) * 0x1p-20f;
}
}  // namespace wavesmith_given
struct WAVESMITH_RAND(StateXORWOW) : wavesmith_given::Draws {};
struct WAVESMITH_RAND(StatePhilox4_32_10) : wavesmith_given::Draws {};
struct WAVESMITH_RAND(StateMRG32k3a) : wavesmith_given::Draws {};
typedef WAVESMITH_RAND(StateXORWOW) WAVESMITH_RAND(StateXORWOW_t);
typedef WAVESMITH_RAND(StateXORWOW) WAVESMITH_RAND(State_t);
typedef WAVESMITH_RAND(StateXORWOW) WAVESMITH_RAND(State);
typedef WAVESMITH_RAND(StatePhilox4_32_10) WAVESMITH_RAND(StatePhilox4_32_10_t);
typedef WAVESMITH_RAND(StateMRG32k3a) WAVESMITH_RAND(StateMRG32k3a_t);
#define WAVESMITH_DRAWS(S) \
  WAVESMITH_RAND_FN void WAVESMITH_RAND(_init)(unsigned long long seed, unsigned long long sequence, unsigned long long offset, S* s) { s->seed = seed; s->sequence = sequence; s->offset = offset; } \
  WAVESMITH_RAND_FN unsigned WAVESMITH_RAND()(S* s) { return wavesmith_given::bits(s); } \
  WAVESMITH_RAND_FN float WAVESMITH_RAND(_uniform)(S* s) { return wavesmith_given::uniform(s); } \
  WAVESMITH_RAND_FN double WAVESMITH_RAND(_uniform_double)(S* s) { return wavesmith_given::uniform_double(s); } \
  WAVESMITH_RAND_FN float WAVESMITH_RAND(_normal)(S* s) { return wavesmith_given::normal(s); } \
  WAVESMITH_RAND_FN double WAVESMITH_RAND(_normal_double)(S* s) { return wavesmith_given::normal(s); } \
  WAVESMITH_RAND_FN float2 WAVESMITH_RAND(_normal2)(S* s) { float2 r; r.x = wavesmith_given::normal(s); r.y = wavesmith_given::normal(s); return r; } \
  WAVESMITH_RAND_FN double2 WAVESMITH_RAND(_normal2_double)(S* s) { double2 r; r.x = wavesmith_given::normal(s); r.y = wavesmith_given::normal(s); return r; } \
  WAVESMITH_RAND_FN float WAVESMITH_RAND(_log_normal)(S* s, float mean, float deviation) { return expf(mean + deviation * wavesmith_given::normal(s)); } \
  WAVESMITH_RAND_FN double WAVESMITH_RAND(_log_normal_double)(S* s, double mean, double deviation) { return exp(mean + deviation * wavesmith_given::normal(s)); } \
  WAVESMITH_RAND_FN void skipahead(unsigned long long n, S* s) { s->offset += n; } \
  WAVESMITH_RAND_FN void skipahead_sequence(unsigned long long n, S* s) { s->sequence += n; }
WAVESMITH_DRAWS(WAVESMITH_RAND(StateXORWOW))
WAVESMITH_DRAWS(WAVESMITH_RAND(StatePhilox4_32_10))
WAVESMITH_DRAWS(WAVESMITH_RAND(StateMRG32k3a))
#define WAVESMITH_FOUR(T, NAME, DRAW) \
  WAVESMITH_RAND_FN T WAVESMITH_RAND(NAME)(WAVESMITH_RAND(StatePhilox4_32_10)* s) { T r; r.x = wavesmith_given::DRAW(s); r.y = wavesmith_given::DRAW(s); r.z = wavesmith_given::DRAW(s); r.w = wavesmith_given::DRAW(s); return r; }
WAVESMITH_FOUR(uint4, 4, bits)
WAVESMITH_FOUR(float4, _uniform4, uniform)
WAVESMITH_FOUR(float4, _normal4, normal)
WAVESMITH_FOUR(double4, _uniform4_double, uniform_double)
WAVESMITH_FOUR(double4, _normal4_double, normal)
WAVESMITH_RAND_FN double2 WAVESMITH_RAND(_uniform2_double)(WAVESMITH_RAND(StatePhilox4_32_10)* s) { double2 r; r.x = wavesmith_given::uniform_double(s); r.y = wavesmith_given::uniform_double(s); return r; }
