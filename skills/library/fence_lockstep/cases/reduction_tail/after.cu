__device__ void tail(volatile float* s, unsigned t) {
  { const auto next_value = s[t] + (s[t + 32]); __syncwarp(); s[t] = next_value; __syncwarp(); } { const auto next_value = s[t] + (s[t + 16]); __syncwarp(); s[t] = next_value; __syncwarp(); }
  { const auto next_value = fmaxf(s[t], s[t + 8]); __syncwarp(); s[t] = next_value; __syncwarp(); }
}
