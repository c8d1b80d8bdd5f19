#define TILED(T, NAME)                                                                                                      \
  KERNEL NAME(__global const float *a, __global const float *b, __global float *c, int n) {                                 \
    __local float as[T][T], bs[T][T];                                                                                       \
    int tx = TX, ty = TY, row = BY * T + ty, col = BX * T + tx;                                                             \
    float sum = 0.0f;                                                                                                       \
    for (int k0 = 0; k0 < n; k0 += T) {                                                                                     \
      as[ty][tx] = a[row * n + k0 + tx];                                                                                    \
      bs[ty][tx] = b[(k0 + ty) * n + col];                                                                                  \
      BARRIER;                                                                                                              \
      for (int k = 0; k < T; k++)                                                                                           \
        sum += as[ty][k] * bs[k][tx];                                                                                       \
      BARRIER;                                                                                                              \
    }                                                                                                                       \
    c[row * n + col] = sum;                                                                                                 \
  }

TILED(16, sgemm_16)
TILED(32, sgemm_32)

KERNEL sgemm_4x4(__global const float *a, __global const float *b, __global float *c, int n) {
  __local float as[16][64], bs[16][64];
  int tx = TX, ty = TY, t = ty * 16 + tx;
  __global const float *ablock = a + BY * 64 * n, *bblock = b + BX * 64;
  float sum[4][4];
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      sum[i][j] = 0.0f;
  for (int k0 = 0; k0 < n; k0 += 16) {
    for (int j = 0; j < 4; j++) {
      int i = t + 256 * j;
      as[i % 16][i / 16] = ablock[(i / 16) * n + k0 + i % 16];
      bs[i / 64][i % 64] = bblock[(k0 + i / 64) * n + i % 64];
    }
    BARRIER;
    for (int k = 0; k < 16; k++) {
      float x[4], y[4];
      for (int j = 0; j < 4; j++) {
        x[j] = as[k][ty * 4 + j];
        y[j] = bs[k][tx + 16 * j];
      }
      for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
          sum[i][j] += x[i] * y[j];
    }
    BARRIER;
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      c[(BY * 64 + ty * 4 + i) * n + BX * 64 + tx + 16 * j] = sum[i][j];
}
