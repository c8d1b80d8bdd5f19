KERNEL histogram(__global const uchar *data, __global uint *bins, int n) {
  __local uint counts[256];
  counts[TX] = 0;
  BARRIER;
  for (int i = get_global_id(0); i < n; i += get_global_size(0))
    atomic_inc(&counts[data[i]]);
  BARRIER;
  atomic_add(&bins[TX], counts[TX]);
}
