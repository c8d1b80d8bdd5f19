// A field of points that circular waves reach from a few sources.
#include "prelude.cuh"

struct Source {
  float x, y, number, phase;
};

KERNEL waves(const Source *sources, int count, float *out, int width, float step) {
  int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
  float x = px * step, y = py * step, re = 0.0f, im = 0.0f;
  for (int i = 0; i < count; i++) {
    Source s = sources[i];
    float dx = x - s.x, dy = y - s.y;
    float angle = s.number * sqrtf(dx * dx + dy * dy) + s.phase;
    re += __nvvm_cos_approx_f(angle);
    im += __nvvm_sin_approx_f(angle);
  }
  out[py * width + px] = re * re + im * im;
}
