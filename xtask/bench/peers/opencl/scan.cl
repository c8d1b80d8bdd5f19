// OpenCL 1.2 has no shuffles: the scan of a work-group goes through local memory.
uint group_scan(uint v, __local uint *sums) {
  int t = TX, size = get_local_size(0);
  sums[t] = v;
  BARRIER;
  for (int d = 1; d < size; d <<= 1) {
    uint left = t >= d ? sums[t - d] : 0;
    BARRIER;
    sums[t] += left;
    BARRIER;
  }
  return sums[t];
}

KERNEL scan_blocks(__global const uint *in, __global uint *out, __global uint *totals, int n) {
  __local uint sums[1024];
  int i = get_global_id(0);
  uint v = group_scan(i < n ? in[i] : 0u, sums);
  if (i < n)
    out[i] = v;
  if (TX == get_local_size(0) - 1)
    totals[BX] = v;
}

KERNEL scan_totals(__global uint *totals, int n) {
  __local uint sums[1024], carry;
  int size = get_local_size(0);
  if (TX == 0)
    carry = 0;
  for (int base = 0; base < n; base += size) {
    int i = base + TX;
    uint v = group_scan(i < n ? totals[i] : 0u, sums);
    uint before = carry;
    if (i < n)
      totals[i] = v + before;
    BARRIER;
    if (TX == size - 1)
      carry = before + v;
    BARRIER;
  }
}

KERNEL scan_add(__global uint *out, __global const uint *totals, int n) {
  int i = get_global_id(0);
  if (BX > 0 && i < n)
    out[i] += totals[BX - 1];
}
