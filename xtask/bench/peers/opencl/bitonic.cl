void order(__local uint *a, __local uint *b, int up) {
  uint x = *a, y = *b;
  if ((x > y) == up) {
    *a = y;
    *b = x;
  }
}

KERNEL bitonic_pairs(__global uint *keys) {
  __local uint key[1024];
  uint t = TX, base = BX * 1024;
  key[t] = keys[base + t];
  key[t + 512] = keys[base + t + 512];
  for (uint size = 2; size < 1024; size <<= 1) {
    int up = (t & (size / 2)) == 0;
    for (uint stride = size / 2; stride > 0; stride >>= 1) {
      BARRIER;
      uint at = 2 * t - (t & (stride - 1));
      order(&key[at], &key[at + stride], up);
    }
  }
  for (uint stride = 512; stride > 0; stride >>= 1) {
    BARRIER;
    uint at = 2 * t - (t & (stride - 1));
    order(&key[at], &key[at + stride], 1);
  }
  BARRIER;
  keys[base + t] = key[t];
  keys[base + t + 512] = key[t + 512];
}

KERNEL bitonic_keys(__global uint *keys) {
  __local uint key[1024];
  uint t = TX, base = BX * 1024;
  key[t] = keys[base + t];
  BARRIER;
  for (uint size = 2; size <= 1024; size <<= 1)
    for (uint stride = size >> 1; stride > 0; stride >>= 1) {
      uint other = t ^ stride;
      if (other > t && (key[t] > key[other]) == ((t & size) == 0)) {
        uint k = key[t];
        key[t] = key[other];
        key[other] = k;
      }
      BARRIER;
    }
  keys[base + t] = key[t];
}
