// Transposes a matrix by tiles in shared memory, then checks the result on the device. 32 x 8 threads for each tile of 32 x 32 elements.
#include "device.h"

extern "C" __global__ void transpose(int rows, int columns, int *to) {
  __shared__ int tile[32][33]; // one element more in each row, so that columns lie in different banks of a GPU
  int column = blockIdx.x * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8) {
    int row = blockIdx.y * 32 + k;
    if (row < rows && column < columns) tile[k][threadIdx.x] = row * columns + column; // the element of the matrix
  }
  __syncthreads();
  int row = blockIdx.y * 32 + threadIdx.x;
  for (int k = threadIdx.y; k < 32; k += 8) {
    int column = blockIdx.x * 32 + k;
    if (row < rows && column < columns) to[column * rows + row] = tile[threadIdx.x][k];
  }
}

extern "C" __global__ void check(int rows, int columns, const int *transposed) {
  int wrong = 0;
  for (int row = 0; row < rows; row++)
    for (int column = 0; column < columns; column++)
      wrong += transposed[column * rows + row] != row * columns + column;
  printf("%d of %d elements are wrong\n", wrong, rows * columns);
}
