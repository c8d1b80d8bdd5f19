// CUB's device-wide sorts against std::stable_sort: radix sort, merge sort, and both of segments.
#include <algorithm>
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>
#include <numeric>
#include "expect.h"

// The order in which a stable sort puts elements.
template <typename T, typename Less>
std::vector<int> order_of(const std::vector<T> &keys, Less less) {
  std::vector<int> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return less(keys[a], keys[b]); });
  return order;
}

template <typename T>
std::vector<T> in_order(const std::vector<T> &values, const std::vector<int> &order) {
  std::vector<T> sorted(values.size());
  for (size_t i = 0; i < values.size(); i++) sorted[i] = values[order[i]];
  return sorted;
}

template <typename Key>
void radix_sort(size_t n) {
  auto keys = any_values<Key>(n, n + sizeof(Key));
  Device<Key> in(keys), out(n);
  std::vector<int> places(n);
  std::iota(places.begin(), places.end(), 0);
  Device<int> values(places), moved(n);
  auto up = order_of(keys, [](Key a, Key b) { return a < b; });
  auto down = order_of(keys, [](Key a, Key b) { return a > b; });
  cub_call([&](void *t, size_t &b) { return cub::DeviceRadixSort::SortKeys(t, b, in.data, out.data, (int)n); });
  EXPECT(out.host() == in_order(keys, up), "DeviceRadixSort::SortKeys", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceRadixSort::SortPairsDescending(t, b, in.data, out.data, values.data, moved.data, (int)n);
  });
  EXPECT(out.host() == in_order(keys, down) && moved.host() == down, "DeviceRadixSort::SortPairsDescending", n);
  // Back and forth between two arrays.
  cub::DoubleBuffer<Key> both(in.data, out.data);
  cub::DoubleBuffer<int> both_values(values.data, moved.data);
  cub_call([&](void *t, size_t &b) { return cub::DeviceRadixSort::SortPairs(t, b, both, both_values, (int)n); });
  Device<Key> &current = both.Current() == in.data ? in : out;
  EXPECT(current.host() == in_order(keys, up), "DeviceRadixSort::SortPairs of buffers", n);
}

// Only bits 5 to 16 decide.
void radix_sort_of_bits(size_t n) {
  auto keys = any_values<uint32_t>(n, n + 3);
  Device<uint32_t> in(keys), out(n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceRadixSort::SortKeys(t, b, in.data, out.data, (int)n, 5, 17);
  });
  auto order = order_of(keys, [](uint32_t a, uint32_t b) { return (a >> 5 & 0xfff) < (b >> 5 & 0xfff); });
  EXPECT(out.host() == in_order(keys, order), "DeviceRadixSort::SortKeys of some bits", n);
}

struct Record {
  short group;
  double weight;
  bool operator==(const Record &other) const { return group == other.group && weight == other.weight; }
};

struct Lighter {
  __host__ __device__ bool operator()(const Record &a, const Record &b) const {
    return a.group != b.group ? a.group < b.group : a.weight < b.weight;
  }
};

void merge_sort(size_t n) {
  auto groups = few_values<short>(n, n, 20);
  auto weights = few_values<double>(n, n + 1, 50);
  std::vector<Record> records(n);
  for (size_t i = 0; i < n; i++) records[i] = {groups[i], weights[i]};
  std::vector<int> places(n);
  std::iota(places.begin(), places.end(), 0);
  Device<Record> keys(records);
  Device<int> values(places);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceMergeSort::StableSortPairs(t, b, keys.data, values.data, (int)n, Lighter());
  });
  auto order = order_of(records, Lighter());
  EXPECT(keys.host() == in_order(records, order) && values.host() == order, "DeviceMergeSort::StableSortPairs", n);
  auto numbers = any_values<int64_t>(n, n + 2);
  Device<int64_t> from(numbers), to(n);
  auto greater = [] __host__ __device__(int64_t a, int64_t b) { return a > b; };
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceMergeSort::SortKeysCopy(t, b, from.data, to.data, (int)n, greater);
  });
  EXPECT(to.host() == in_order(numbers, order_of(numbers, greater)), "DeviceMergeSort::SortKeysCopy", n);
}

void segments(size_t n) {
  auto keys = few_values<int>(n, n + 4, 1000);
  auto offsets = segments_of(n, n);
  int count = (int)offsets.size() - 1;
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int s = 0; s < count; s++)
    std::stable_sort(order.begin() + offsets[s], order.begin() + offsets[s + 1],
                     [&](int a, int b) { return keys[a] < keys[b]; });
  std::vector<int> places(n);
  std::iota(places.begin(), places.end(), 0);
  Device<int> in(keys), out(n), values(places), moved(n), borders(offsets);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceSegmentedRadixSort::SortPairs(t, b, in.data, out.data, values.data, moved.data, (int)n, count,
                                                    borders.data, borders.data + 1);
  });
  EXPECT(out.host() == in_order(keys, order) && moved.host() == order, "DeviceSegmentedRadixSort::SortPairs", n);
  CHECK(cudaMemset(out.data, 0, n * sizeof(int)));
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceSegmentedSort::StableSortPairs(t, b, in.data, out.data, values.data, moved.data, (int)n, count,
                                                     borders.data, borders.data + 1);
  });
  EXPECT(out.host() == in_order(keys, order) && moved.host() == order, "DeviceSegmentedSort::StableSortPairs", n);
}

int main() {
  for (size_t n : SIZES) {
    radix_sort<uint8_t>(n);
    radix_sort<int>(n);
    radix_sort<uint64_t>(n);
    radix_sort<float>(n);
    radix_sort<double>(n);
    radix_sort_of_bits(n);
    merge_sort(n);
    segments(n);
  }
  radix_sort<uint32_t>(400000);
  puts("CUB's sorts work");
}
