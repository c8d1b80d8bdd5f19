// Escape times of the Mandelbrot set, one pixel per thread. No contraction: escape times are compared bit for bit.
// flags: -ffp-contract=off
#include "prelude.cuh"

KERNEL mandelbrot(uint8_t *image, int width, int height, float x0, float y0, float step, int limit) {
  int px = blockIdx.x * blockDim.x + threadIdx.x;
  int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= width || py >= height)
    return;
  float cx = x0 + px * step, cy = y0 + py * step;
  float x = 0.0f, y = 0.0f;
  int i = 0;
  while (i < limit) {
    float xx = x * x, yy = y * y;
    if (xx + yy > 4.0f)
      break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
    i++;
  }
  image[py * width + px] = (uint8_t)i;
}
