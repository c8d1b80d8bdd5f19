float exponential(float x) { return native_exp2(x * 1.4426950408889634f); }

float normal_cdf(float d) {
  const float A1 = 0.31938153f, A2 = -0.356563782f, A3 = 1.781477937f, A4 = -1.821255978f, A5 = 1.330274429f;
  float k = native_divide(1.0f, 1.0f + 0.2316419f * fabs(d));
  float tail = 0.39894228040143267794f * exponential(-0.5f * d * d) * (k * (A1 + k * (A2 + k * (A3 + k * (A4 + k * A5)))));
  return d > 0.0f ? 1.0f - tail : tail;
}

KERNEL black_scholes(__global float *call, __global float *put, __global const float *price, __global const float *strike,
                     __global const float *years, float rate, float volatility, int n) {
  int i = get_global_id(0);
  if (i >= n)
    return;
  float s = price[i], x = strike[i], t = years[i];
  float root = native_sqrt(t);
  float d1 = native_divide(native_log2(s / x) * 0.6931471805599453f + (rate + 0.5f * volatility * volatility) * t,
                           volatility * root);
  float d2 = d1 - volatility * root;
  float n1 = normal_cdf(d1), n2 = normal_cdf(d2);
  float discounted = x * exponential(-rate * t);
  call[i] = s * n1 - discounted * n2;
  put[i] = discounted * (1.0f - n2) - s * (1.0f - n1);
}
