// European options, one per thread, with the fast intrinsics that CUDA programs use here.
#include "prelude.cuh"

__device__ __forceinline__ float __expf(float x) { return exp2_approx(x * 1.4426950408889634f); }
__device__ __forceinline__ float __logf(float x) { return log2_approx(x) * 0.6931471805599453f; }
__device__ __forceinline__ float __fdividef(float a, float b) { return __nvvm_div_approx_f(a, b); }

__device__ float normal_cdf(float d) {
  const float A1 = 0.31938153f, A2 = -0.356563782f, A3 = 1.781477937f, A4 = -1.821255978f, A5 = 1.330274429f;
  float k = __fdividef(1.0f, 1.0f + 0.2316419f * fabsf(d));
  float tail = 0.39894228040143267794f * __expf(-0.5f * d * d) * (k * (A1 + k * (A2 + k * (A3 + k * (A4 + k * A5)))));
  return d > 0.0f ? 1.0f - tail : tail;
}

KERNEL black_scholes(float *call, float *put, const float *price, const float *strike, const float *years, float rate,
                     float volatility, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float s = price[i], x = strike[i], t = years[i];
  float root = __fdividef(1.0f, rsqrtf(t));
  float d1 = __fdividef(__logf(s / x) + (rate + 0.5f * volatility * volatility) * t, volatility * root);
  float d2 = d1 - volatility * root;
  float n1 = normal_cdf(d1), n2 = normal_cdf(d2);
  float discounted = x * __expf(-rate * t);
  call[i] = s * n1 - discounted * n2;
  put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}
