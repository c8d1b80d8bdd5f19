// Sums of absolute differences with vabsdiff4.add: the best disparity of each pixel, and the best displacement of each block.
#include "prelude.cuh"

__device__ __forceinline__ unsigned vabsdiff4_add(unsigned a, unsigned b, unsigned c) {
  unsigned d;
  asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// Pixels of four bytes, one per thread; windows of 5×5; disparities -16..16. `pitch` counts pixels; there is a border of 18.
KERNEL sad_stereo(const unsigned *left, const unsigned *right, int8_t *disparity, int width, int pitch) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned *l = left + (y + 2) * pitch + x + 18, *r = right + (y + 2) * pitch + x + 18;
  unsigned best = 0xffffffffu;
  int where = 0;
  for (int d = -16; d <= 16; d++) {
    unsigned sum = 0;
#pragma unroll
    for (int wy = -2; wy <= 2; wy++)
#pragma unroll
      for (int wx = -2; wx <= 2; wx++)
        sum = vabsdiff4_add(l[wy * pitch + wx], r[wy * pitch + wx + d], sum);
    if (sum < best) {
      best = sum;
      where = d;
    }
  }
  disparity[y * width + x] = (int8_t)where;
}

// One CTA of 32×8 threads seeks one block of 16×16 bytes over displacements -16..15 in both directions. `current` has a pitch
// of `words` words, `reference` one of `words` + 8, with a border of 16 bytes.
KERNEL sad_blocks(const unsigned *current, const unsigned *reference, unsigned *best, int words) {
  __shared__ unsigned block[16][4], window[48][13];
  __shared__ unsigned lowest;
  int tx = threadIdx.x, ty = threadIdx.y, t = ty * 32 + tx;
  if (t == 0)
    lowest = 0xffffffffu;
  if (t < 64)
    block[t / 4][t % 4] = current[(blockIdx.y * 16 + t / 4) * words + blockIdx.x * 4 + t % 4];
  for (int i = t; i < 48 * 12; i += 256)
    window[i / 12][i % 12] = reference[(blockIdx.y * 16 + i / 12) * (words + 8) + blockIdx.x * 4 + i % 12];
  __syncthreads();
  unsigned mine = 0xffffffffu, shift = tx % 4 * 8;
  for (int dy = ty; dy < 32; dy += 8) {
    unsigned sum = 0;
    for (int y = 0; y < 16; y++) {
      const unsigned *row = &window[dy + y][tx / 4];
      unsigned low = row[0];
#pragma unroll
      for (int x = 0; x < 4; x++) {
        unsigned high = row[x + 1];
        unsigned word = (unsigned)((((uint64_t)high << 32) | low) >> shift);
        sum = vabsdiff4_add(word, block[y][x], sum);
        low = high;
      }
    }
    mine = min(mine, sum << 10 | dy << 5 | tx);
  }
  atomicMin(&lowest, mine);
  __syncthreads();
  if (t == 0)
    best[blockIdx.y * gridDim.x + blockIdx.x] = lowest;
}
