__device__ unsigned lane() { unsigned r; { unsigned ptx0 = {}; ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::as<unsigned>(wavesmith::ptx::laneid())); wavesmith::ptx::out(r, ptx0); } return r; }
__device__ float f(float a, float b, float c) {
  float d;
  { float ptx0 = {}; const float ptx1 = wavesmith::ptx::in<float>(a); const float ptx2 = wavesmith::ptx::in<float>(b); const float ptx3 = wavesmith::ptx::in<float>(c); ptx0 = wavesmith::ptx::put<float>(wavesmith::ptx::mad<float>(ptx1, ptx2, ptx3)); wavesmith::ptx::out(d, ptx0); }
  return d;
}
