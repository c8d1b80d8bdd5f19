// CUB's device-wide selections against the host: select, partition, unique; also differences of neighbours.
#include <algorithm>
#include <cub/device/device_adjacent_difference.cuh>
#include <cub/device/device_for.cuh>
#include <cub/device/device_partition.cuh>
#include <cub/device/device_select.cuh>
#include "expect.h"

struct Below {
  int limit;
  template <typename T>
  __host__ __device__ bool operator()(const T &value) const {
    return value < (T)limit;
  }
};

template <typename T>
void select(size_t n) {
  auto values = few_values<T>(n, n + sizeof(T), 100);
  auto flags = few_values<uint8_t>(n, n + 1, 2);
  std::vector<T> small, flagged, parted(n);
  std::vector<T> rest;
  for (size_t i = 0; i < n; i++) {
    if (flags[i]) flagged.push_back(values[i]);
    (Below{30}(values[i]) ? small : rest).push_back(values[i]);
  }
  Device<T> in(values), out(n);
  Device<uint8_t> marks(flags);
  Device<int> count(1);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceSelect::If(t, b, in.data, out.data, count.data, (int)n, Below{30});
  });
  EXPECT((size_t)count.one() == small.size() && out.host(small.size()) == small, "DeviceSelect::If", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceSelect::Flagged(t, b, in.data, marks.data, out.data, count.data, (int)n);
  });
  EXPECT((size_t)count.one() == flagged.size() && out.host(flagged.size()) == flagged, "DeviceSelect::Flagged", n);
  // What is not selected is at the end, in reverse.
  cub_call([&](void *t, size_t &b) {
    return cub::DevicePartition::If(t, b, in.data, out.data, count.data, (int)n, Below{30});
  });
  parted = small;
  parted.insert(parted.end(), rest.rbegin(), rest.rend());
  EXPECT((size_t)count.one() == small.size() && out.host() == parted, "DevicePartition::If", n);
  // In place.
  cub_call([&](void *t, size_t &b) { return cub::DeviceSelect::If(t, b, in.data, count.data, (int)n, Below{30}); });
  EXPECT((size_t)count.one() == small.size() && in.host(small.size()) == small, "DeviceSelect::If in place", n);
}

void three_ways(size_t n) {
  // Without items CUB writes no counts.
  if (n == 0) return;
  auto values = few_values<int>(n, n + 2, 100);
  std::vector<int> first, second, rest;
  for (int value : values) (value < 20 ? first : value < 60 ? second : rest).push_back(value);
  Device<int> in(values), small(n), middle(n), large(n), counts(2);
  cub_call([&](void *t, size_t &b) {
    return cub::DevicePartition::If(t, b, in.data, small.data, middle.data, large.data, counts.data, (int)n, Below{20},
                                    Below{60});
  });
  auto found = counts.host();
  EXPECT((size_t)found[0] == first.size() && (size_t)found[1] == second.size(), "DevicePartition::If three ways", n);
  EXPECT(small.host(first.size()) == first && middle.host(second.size()) == second && large.host(rest.size()) == rest,
         "DevicePartition::If three ways", n);
}

void unique(size_t n) {
  auto keys = runs_of_values<short>(n, n + 3);
  std::vector<short> expected;
  std::vector<int> firsts, places(n);
  for (size_t i = 0; i < n; i++) {
    places[i] = (int)i;
    if (i == 0 || keys[i] != keys[i - 1]) expected.push_back(keys[i]), firsts.push_back((int)i);
  }
  Device<short> in(keys), out(n);
  Device<int> values(places), kept(n), count(1);
  cub_call([&](void *t, size_t &b) { return cub::DeviceSelect::Unique(t, b, in.data, out.data, count.data, (int)n); });
  EXPECT((size_t)count.one() == expected.size() && out.host(expected.size()) == expected, "DeviceSelect::Unique", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceSelect::UniqueByKey(t, b, in.data, values.data, out.data, kept.data, count.data, (int)n);
  });
  EXPECT((size_t)count.one() == expected.size() && out.host(expected.size()) == expected &&
             kept.host(expected.size()) == firsts,
         "DeviceSelect::UniqueByKey", n);
}

struct Square {
  uint32_t *out;
  __device__ void operator()(uint32_t i) const { out[i] = i * i; }
};

void neighbours(size_t n) {
  auto values = any_values<uint32_t>(n, n + 4);
  auto expected = values;
  for (size_t i = 1; i < n; i++) expected[i] = values[i] - values[i - 1];
  Device<uint32_t> in(values), out(n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceAdjacentDifference::SubtractLeftCopy(t, b, in.data, out.data, (int)n);
  });
  EXPECT(out.host() == expected, "DeviceAdjacentDifference::SubtractLeftCopy", n);
  CHECK(cub::DeviceFor::Bulk((int)n, Square{out.data}));
  for (size_t i = 0; i < n; i++) expected[i] = (uint32_t)i * (uint32_t)i;
  EXPECT(out.host() == expected, "DeviceFor::Bulk", n);
}

int main() {
  for (size_t n : SIZES) {
    select<uint8_t>(n);
    select<int>(n);
    select<double>(n);
    three_ways(n);
    unique(n);
    neighbours(n);
  }
  select<uint64_t>(400000);
  puts("CUB's selections work");
}
