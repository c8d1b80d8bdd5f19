// flags: --cuda-gpu-arch=sm_80 --no-cuda-gpu-arch=sm_70 --cuda-feature=+ptx70
// C = A·B for square matrices of a multiple of 128, of halves with sums in single precision, on tensor cores: a CTA of four warps
// computes 128×128 elements, a warp 64×64. Tiles of 32 columns of A and 32 rows of B are copied to shared memory asynchronously while
// the tiles before are multiplied; their chunks of 16 bytes are exchanged within rows so that `ldmatrix` has no bank conflicts.
#include "prelude.cuh"

constexpr int TILE = 128, DEPTH = 32, WARP = 64, THREADS = 128;

// A pointer to shared memory as `cp.async` and `ldmatrix` take it.
__device__ __forceinline__ unsigned shared_address(const void *p) {
  return (unsigned)(uint64_t)(const __attribute__((address_space(3))) void *)p;
}

__device__ __forceinline__ void copy_16(unsigned to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// The place of a chunk in a row of four chunks (A), and of sixteen (B).
__device__ __forceinline__ unsigned place_a(unsigned row, unsigned chunk) { return row * 64 + ((chunk ^ (row >> 1 & 3)) << 4); }
__device__ __forceinline__ unsigned place_b(unsigned row, unsigned chunk) { return row * 256 + ((chunk ^ (row & 7)) << 4); }

KERNEL __launch_bounds__(THREADS) hgemm(const uint16_t *a, const uint16_t *b, float *c, int n) {
  __shared__ __attribute__((aligned(128))) unsigned char as[2][TILE * DEPTH * 2], bs[2][DEPTH * TILE * 2];
  unsigned t = threadIdx.x, lane = t & 31, warp = t >> 5;
  unsigned row0 = blockIdx.y * TILE, col0 = blockIdx.x * TILE;
  unsigned warp_row = (warp >> 1) * WARP, warp_col = (warp & 1) * WARP;
  unsigned to_a = shared_address(as), to_b = shared_address(bs);
  float sum[4][8][4] = {};

  auto copy = [&](int k0, int stage) {
#pragma unroll
    for (int j = 0; j < 4; j++) {
      unsigned i = t + j * THREADS;
      unsigned row = i >> 2, chunk = i & 3;
      copy_16(to_a + stage * (TILE * DEPTH * 2) + place_a(row, chunk), a + (uint64_t)(row0 + row) * n + k0 + chunk * 8);
      row = i >> 4, chunk = i & 15;
      copy_16(to_b + stage * (DEPTH * TILE * 2) + place_b(row, chunk), b + (uint64_t)(k0 + row) * n + col0 + chunk * 8);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  copy(0, 0);
  int stage = 0;
  for (int k0 = 0; k0 < n; k0 += DEPTH) {
    if (k0 + DEPTH < n) {
      copy(k0 + DEPTH, stage ^ 1);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    unsigned from_a = to_a + stage * (TILE * DEPTH * 2), from_b = to_b + stage * (DEPTH * TILE * 2);
#pragma unroll
    for (int k = 0; k < DEPTH / 16; k++) {
      unsigned x[4][4], y[4][4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(x[i][0]), "=r"(x[i][1]), "=r"(x[i][2]), "=r"(x[i][3])
                     : "r"(from_a + place_a(warp_row + i * 16 + (lane & 15), k * 2 + (lane >> 4)))
                     : "memory");
#pragma unroll
      for (int j = 0; j < 4; j++)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(y[j][0]), "=r"(y[j][1]), "=r"(y[j][2]), "=r"(y[j][3])
                     : "r"(from_b + place_b(k * 16 + (lane & 15), (warp_col >> 3) + j * 2 + (lane >> 4)))
                     : "memory");
#pragma unroll
      for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 8; j++)
          asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                       : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
                       : "r"(x[i][0]), "r"(x[i][1]), "r"(x[i][2]), "r"(x[i][3]), "r"(y[j / 2][j % 2 * 2]), "r"(y[j / 2][j % 2 * 2 + 1]));
    }
    __syncthreads();
    stage ^= 1;
  }
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) {
      unsigned row = row0 + warp_row + i * 16 + (lane >> 2), col = col0 + warp_col + j * 8 + (lane & 3) * 2;
      *(float2 *)(c + (uint64_t)row * n + col) = float2{sum[i][j][0], sum[i][j][1]};
      *(float2 *)(c + (uint64_t)(row + 8) * n + col) = float2{sum[i][j][2], sum[i][j][3]};
    }
}
