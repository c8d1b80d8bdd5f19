// y = a * x + y. One thread for each element; the last block is only partly used.
#include "device.h"

extern "C" __global__ void fill(int n, float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  x[i] = i;
  y[i] = 1;
}

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}

// One thread. All values are exact in single precision.
extern "C" __global__ void check(int n, float a, const float *y) {
  int wrong = 0;
  for (int i = 0; i < n; i++) wrong += y[i] != a * i + 1;
  printf("%d of %d elements are wrong\n", wrong, n);
}
