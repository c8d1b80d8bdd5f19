// Particles as an array of structures: they fall, and bounce off the walls of a box.
#include "prelude.cuh"

struct Particle {
  float x, y, z, vx, vy, vz;
};

__device__ __forceinline__ void bounce(float &at, float &speed) {
  if (at < 0.0f) {
    at = -at;
    speed = -0.9f * speed;
  } else if (at > 1.0f) {
    at = 2.0f - at;
    speed = -0.9f * speed;
  }
}

KERNEL particles(Particle *all, int n, float dt, int turns) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Particle p = all[i];
  for (int t = 0; t < turns; t++) {
    p.vy -= 9.81f * dt;
    p.x += p.vx * dt;
    p.y += p.vy * dt;
    p.z += p.vz * dt;
    bounce(p.x, p.vx);
    bounce(p.y, p.vy);
    bounce(p.z, p.vz);
  }
  all[i] = p;
}
