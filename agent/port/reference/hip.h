// What HIP has beyond CUDA, for the model with wavefronts of 64 lanes.
#pragma once
#if WAVESMITH_LANES == 64
using __hip_bfloat16 = __nv_bfloat16;
using __hip_bfloat162 = __nv_bfloat162;
namespace hipcub = cub;
#define HIP_DYNAMIC_SHARED(T, name) T* const name = (T*)wavesmith_reference::dynamic_shared;
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define __HIP_MEMORY_SCOPE_SINGLETHREAD 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT 2
#define __HIP_MEMORY_SCOPE_WORKGROUP 3
#define __HIP_MEMORY_SCOPE_AGENT 4
#define __HIP_MEMORY_SCOPE_SYSTEM 5
inline unsigned __lane_id() { return wavesmith_reference::lane(); }
template <class T> T unsafeAtomicAdd(T* p, typename std::common_type<T>::type v) { return atomicAdd(p, v); }
template <class T> T safeAtomicAdd(T* p, typename std::common_type<T>::type v) { return atomicAdd(p, v); }
template <class T> void atomicAddNoRet(T* p, typename std::common_type<T>::type v) { atomicAdd(p, v); }
#endif
