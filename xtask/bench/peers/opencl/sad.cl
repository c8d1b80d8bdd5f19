uint sad4(uint a, uint b, uint sum) {
  uchar4 d = abs_diff(as_uchar4(a), as_uchar4(b));
  return sum + d.x + d.y + d.z + d.w;
}

KERNEL sad_stereo(__global const uint *left, __global const uint *right, __global char *disparity, int width, int pitch) {
  int x = get_global_id(0), y = get_global_id(1);
  __global const uint *l = left + (y + 2) * pitch + x + 18, *r = right + (y + 2) * pitch + x + 18;
  uint best = 0xffffffffu;
  int where = 0;
  for (int d = -16; d <= 16; d++) {
    uint sum = 0;
#pragma unroll
    for (int wy = -2; wy <= 2; wy++)
#pragma unroll
      for (int wx = -2; wx <= 2; wx++)
        sum = sad4(l[wy * pitch + wx], r[wy * pitch + wx + d], sum);
    if (sum < best) {
      best = sum;
      where = d;
    }
  }
  disparity[y * width + x] = (char)where;
}

KERNEL sad_blocks(__global const uint *current, __global const uint *reference, __global uint *best, int words) {
  __local uint block[16][4], window[48][13];
  __local uint lowest;
  int tx = TX, ty = TY, t = ty * 32 + tx;
  if (t == 0)
    lowest = 0xffffffffu;
  if (t < 64)
    block[t / 4][t % 4] = current[(BY * 16 + t / 4) * words + BX * 4 + t % 4];
  for (int i = t; i < 48 * 12; i += 256)
    window[i / 12][i % 12] = reference[(BY * 16 + i / 12) * (words + 8) + BX * 4 + i % 12];
  BARRIER;
  uint mine = 0xffffffffu, shift = tx % 4 * 8;
  for (int dy = ty; dy < 32; dy += 8) {
    uint sum = 0;
    for (int y = 0; y < 16; y++) {
      __local const uint *row = &window[dy + y][tx / 4];
      uint low = row[0];
#pragma unroll
      for (int x = 0; x < 4; x++) {
        uint high = row[x + 1];
        uint word = (uint)((((ulong)high << 32) | low) >> shift);
        sum = sad4(word, block[y][x], sum);
        low = high;
      }
    }
    mine = min(mine, sum << 10 | (uint)dy << 5 | (uint)tx);
  }
  atomic_min(&lowest, mine);
  BARRIER;
  if (t == 0)
    best[BY * get_num_groups(0) + BX] = lowest;
}
