KERNEL transpose(__global const float *in, __global float *out, int width, int height) {
  __local float tile[32][33];
  int x = BX * 32 + TX, y = BY * 32 + TY;
  for (int j = 0; j < 32; j += 8)
    tile[TY + j][TX] = in[(y + j) * width + x];
  BARRIER;
  x = BY * 32 + TX;
  y = BX * 32 + TY;
  for (int j = 0; j < 32; j += 8)
    out[(y + j) * height + x] = tile[TX][TY + j];
}
