KERNEL monte_carlo(__global uint *hits, int each) {
  __local uint total;
  if (TX == 0)
    total = 0;
  BARRIER;
  uint s = (uint)(get_global_id(0) + 1) * 2654435761u;
  uint inside = 0;
  for (int i = 0; i < each; i++) {
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    float x = (float)(s >> 8) * (1.0f / 16777216.0f);
    s ^= s << 13;
    s ^= s >> 17;
    s ^= s << 5;
    float y = (float)(s >> 8) * (1.0f / 16777216.0f);
    if (x * x + y * y < 1.0f)
      inside++;
  }
  atomic_add(&total, inside);
  BARRIER;
  if (TX == 0)
    atomic_add(hits, total);
}
