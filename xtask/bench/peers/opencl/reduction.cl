KERNEL reduction(__global const float *in, __global float *sums, int n) {
  __local float part[256];
  int t = TX;
  float sum = 0.0f;
  for (int i = get_global_id(0); i < n; i += get_global_size(0))
    sum += in[i];
  part[t] = sum;
  BARRIER;
  for (int half_size = get_local_size(0) / 2; half_size > 0; half_size >>= 1) {
    if (t < half_size)
      part[t] += part[t + half_size];
    BARRIER;
  }
  if (t == 0)
    sums[BX] = part[0];
}
