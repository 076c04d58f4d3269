// CUDA's built-in vector types.
#pragma once
#include "core.h"
#define WAVESMITH_VECTOR(NAME, T, A2, A4) \
  struct NAME##1 { T x; }; \
  struct __attribute__((aligned(A2))) NAME##2 { T x, y; }; \
  struct NAME##3 { T x, y, z; }; \
  struct __attribute__((aligned(A4))) NAME##4 { T x, y, z, w; }; \
  inline NAME##1 make_##NAME##1(T x) { return {x}; } \
  inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; } \
  inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; } \
  inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
WAVESMITH_VECTOR(char, signed char, 2, 4)
WAVESMITH_VECTOR(uchar, unsigned char, 2, 4)
WAVESMITH_VECTOR(short, short, 4, 8)
WAVESMITH_VECTOR(ushort, unsigned short, 4, 8)
WAVESMITH_VECTOR(int, int, 8, 16)
struct uint1 { unsigned x; };
struct __attribute__((aligned(8))) uint2 { unsigned x, y; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
inline uint1 make_uint1(unsigned x) { return {x}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
WAVESMITH_VECTOR(long, long, 16, 16)
WAVESMITH_VECTOR(ulong, unsigned long, 16, 16)
WAVESMITH_VECTOR(longlong, long long, 16, 16)
WAVESMITH_VECTOR(ulonglong, unsigned long long, 16, 16)
WAVESMITH_VECTOR(float, float, 8, 16)
WAVESMITH_VECTOR(double, double, 16, 16)
inline float2 atomicAdd(float2* p, float2 v) { const float2 old = *p; p->x += v.x; p->y += v.y; return old; }
inline float4 atomicAdd(float4* p, float4 v) { const float4 old = *p; p->x += v.x; p->y += v.y; p->z += v.z; p->w += v.w; return old; }
