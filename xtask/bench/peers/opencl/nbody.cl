KERNEL nbody(__global const float4 *bodies, __global float4 *acceleration, int n, float softening) {
  __local float4 tile[256];
  int i = get_global_id(0);
  float4 me = bodies[i];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int base = 0; base < n; base += 256) {
    tile[TX] = bodies[base + TX];
    BARRIER;
#pragma unroll 8
    for (int k = 0; k < 256; k++) {
      float4 b = tile[k];
      float dx = b.x - me.x, dy = b.y - me.y, dz = b.z - me.z;
      float d2 = dx * dx + dy * dy + dz * dz + softening;
      float inv = native_rsqrt(d2);
      float s = b.w * (inv * inv * inv);
      ax += dx * s;
      ay += dy * s;
      az += dz * s;
    }
    BARRIER;
  }
  acceleration[i] = (float4)(ax, ay, az, 0.0f);
}
