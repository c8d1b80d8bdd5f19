// Thrust's algorithms on the device against std's on the host.
#include <algorithm>
#include <functional>
#include <numeric>
#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/permutation_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>
#include <thrust/unique.h>
#include "expect.h"

template <typename T>
using On = thrust::device_vector<T>;

template <typename T>
std::vector<T> host(const On<T> &from, size_t count) {
  std::vector<T> to(count);
  thrust::copy_n(from.begin(), count, to.begin());
  return to;
}

template <typename T>
std::vector<T> host(const On<T> &from) {
  return host(from, from.size());
}

struct Even {
  __host__ __device__ bool operator()(int value) const { return value % 2 == 0; }
};

struct Squared {
  __host__ __device__ long long operator()(int value) const { return (long long)value * value; }
};

struct Larger {
  __host__ __device__ bool operator()(int a, int b) const { return a > b; }
};

void sorts(size_t n) {
  auto values = few_values<int>(n, n, 500);
  On<int> keys = values, places(n);
  thrust::sequence(places.begin(), places.end());
  thrust::stable_sort_by_key(keys.begin(), keys.end(), places.begin());
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return values[a] < values[b]; });
  EXPECT(host(places) == order, "stable_sort_by_key", n);
  keys = values;
  // A comparison of its own makes it a merge sort.
  thrust::sort(thrust::device, keys.begin(), keys.end(), Larger());
  auto expected = values;
  std::sort(expected.begin(), expected.end(), Larger());
  EXPECT(host(keys) == expected, "sort", n);
  EXPECT(thrust::is_sorted(keys.begin(), keys.end(), Larger()), "is_sorted", n);
  auto numbers = any_values<double>(n, n + 1);
  On<double> sorted = numbers;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  thrust::sort(thrust::cuda::par_nosync.on(stream), sorted.begin(), sorted.end());
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
  std::sort(numbers.begin(), numbers.end());
  EXPECT(host(sorted) == numbers, "sort in a stream", n);
}

void reductions(size_t n) {
  auto values = few_values<int>(n, n + 2, 1000);
  On<int> in = values;
  long long squares = 0, weighted = 0;
  for (size_t i = 0; i < n; i++) squares += Squared()(values[i]), weighted += values[i] * (long long)i;
  EXPECT(thrust::reduce(in.begin(), in.end()) == std::accumulate(values.begin(), values.end(), 0), "reduce", n);
  EXPECT(thrust::transform_reduce(in.begin(), in.end(), Squared(), 0LL, thrust::plus<long long>()) == squares,
         "transform_reduce", n);
  thrust::counting_iterator<long long> from_zero(0);
  EXPECT(thrust::inner_product(in.begin(), in.end(), from_zero, 0LL) == weighted, "inner_product", n);
  EXPECT(thrust::count_if(in.begin(), in.end(), Even()) == std::count_if(values.begin(), values.end(), Even()),
         "count_if", n);
  auto ends = thrust::minmax_element(in.begin(), in.end());
  if (n > 0) {
    EXPECT(*ends.first == *std::min_element(values.begin(), values.end()), "minmax_element", n);
    EXPECT(*ends.second == *std::max_element(values.begin(), values.end()), "minmax_element", n);
    EXPECT(thrust::max_element(in.begin(), in.end()) - in.begin() ==
               std::max_element(values.begin(), values.end()) - values.begin(), "max_element", n);
  }
}

void scans(size_t n) {
  auto values = few_values<int>(n, n + 3, 1000);
  auto keys = runs_of_values<int>(n, n + 4);
  On<int> in = values, key = keys, out(n), key_out(n);
  std::vector<int> inclusive(n), exclusive(n), segments(n), unique, sums;
  int sum = 0;
  for (size_t i = 0; i < n; i++) {
    bool begins = i == 0 || keys[i] != keys[i - 1];
    exclusive[i] = sum + 5;
    inclusive[i] = sum += values[i];
    segments[i] = begins ? 0 : segments[i - 1] + values[i - 1];
    if (begins) unique.push_back(keys[i]), sums.push_back(0);
    sums.back() += values[i];
  }
  thrust::inclusive_scan(in.begin(), in.end(), out.begin());
  EXPECT(host(out) == inclusive, "inclusive_scan", n);
  thrust::exclusive_scan(in.begin(), in.end(), out.begin(), 5);
  EXPECT(host(out) == exclusive, "exclusive_scan", n);
  thrust::exclusive_scan_by_key(key.begin(), key.end(), in.begin(), out.begin());
  EXPECT(host(out) == segments, "exclusive_scan_by_key", n);
  size_t found = thrust::reduce_by_key(key.begin(), key.end(), in.begin(), key_out.begin(), out.begin()).second - out.begin();
  EXPECT(found == unique.size() && host(key_out, found) == unique && host(out, found) == sums, "reduce_by_key", n);
  found = thrust::unique_copy(key.begin(), key.end(), out.begin()) - out.begin();
  EXPECT(found == unique.size() && host(out, found) == unique, "unique_copy", n);
  found = thrust::unique_by_key(key.begin(), key.end(), in.begin()).first - key.begin();
  EXPECT(found == unique.size() && host(key, found) == unique, "unique_by_key", n);
  thrust::adjacent_difference(out.begin(), out.end(), key_out.begin());
}

void selections(size_t n) {
  auto values = any_values<int>(n, n + 5);
  On<int> in = values, out(n);
  std::vector<int> even, odd;
  for (int value : values) (Even()(value) ? even : odd).push_back(value);
  size_t found = thrust::copy_if(in.begin(), in.end(), out.begin(), Even()) - out.begin();
  EXPECT(found == even.size() && host(out, found) == even, "copy_if", n);
  out = in;
  found = thrust::remove_if(out.begin(), out.end(), Even()) - out.begin();
  EXPECT(found == odd.size() && host(out, found) == odd, "remove_if", n);
  found = thrust::stable_partition(in.begin(), in.end(), Even()) - in.begin();
  even.insert(even.end(), odd.begin(), odd.end());
  EXPECT(found == n - odd.size() && host(in) == even, "stable_partition", n);
}

void sets(size_t n) {
  auto first = few_values<int>(n, n + 6, 3 * n + 1), second = few_values<int>(n / 2, n + 7, 3 * n + 1);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  On<int> a = first, b = second, out(first.size() + second.size());
  std::vector<int> expected(out.size());
  auto check = [&](const char *name, On<int>::iterator end, std::vector<int>::iterator expected_end) {
    size_t count = expected_end - expected.begin();
    EXPECT((size_t)(end - out.begin()) == count, name, n);
    EXPECT(std::equal(expected.begin(), expected_end, host(out, count).begin()), name, n);
  };
  auto to = expected.begin();
  check("merge", thrust::merge(a.begin(), a.end(), b.begin(), b.end(), out.begin()),
        std::merge(first.begin(), first.end(), second.begin(), second.end(), to));
  check("set_union", thrust::set_union(a.begin(), a.end(), b.begin(), b.end(), out.begin()),
        std::set_union(first.begin(), first.end(), second.begin(), second.end(), to));
  check("set_intersection", thrust::set_intersection(a.begin(), a.end(), b.begin(), b.end(), out.begin()),
        std::set_intersection(first.begin(), first.end(), second.begin(), second.end(), to));
  check("set_difference", thrust::set_difference(a.begin(), a.end(), b.begin(), b.end(), out.begin()),
        std::set_difference(first.begin(), first.end(), second.begin(), second.end(), to));
  On<int> places(second.size());
  thrust::lower_bound(a.begin(), a.end(), b.begin(), b.end(), places.begin());
  std::vector<int> bounds(second.size());
  for (size_t i = 0; i < second.size(); i++)
    bounds[i] = (int)(std::lower_bound(first.begin(), first.end(), second[i]) - first.begin());
  EXPECT(host(places) == bounds, "lower_bound", n);
}

struct Sum {
  __host__ __device__ int operator()(const thrust::tuple<int, int> &pair) const {
    return thrust::get<0>(pair) + 2 * thrust::get<1>(pair);
  }
};

void iterators(size_t n) {
  auto values = few_values<int>(n, n + 8, 1000);
  std::vector<int> map(n), expected(n), gathered(n);
  for (size_t i = 0; i < n; i++) map[i] = (int)(n - 1 - i);
  for (size_t i = 0; i < n; i++) expected[i] = values[i] + 2 * (int)i, gathered[i] = values[map[i]];
  On<int> in = values, order = map, out(n);
  auto pairs = thrust::make_zip_iterator(thrust::make_tuple(in.begin(), thrust::counting_iterator<int>(0)));
  thrust::transform(pairs, pairs + n, out.begin(), Sum());
  EXPECT(host(out) == expected, "transform of a zip_iterator", n);
  auto permuted = thrust::make_permutation_iterator(in.begin(), order.begin());
  thrust::copy(permuted, permuted + n, out.begin());
  EXPECT(host(out) == gathered, "copy of a permutation_iterator", n);
  thrust::gather(order.begin(), order.end(), in.begin(), out.begin());
  EXPECT(host(out) == gathered, "gather", n);
  auto squares = thrust::make_transform_iterator(in.begin(), Squared());
  long long sum = thrust::reduce(squares, squares + n, 0LL), total = 0;
  for (int value : values) total += Squared()(value);
  EXPECT(sum == total, "reduce of a transform_iterator", n);
}

int main() {
  for (size_t n : SIZES) {
    sorts(n);
    reductions(n);
    scans(n);
    selections(n);
    sets(n);
    iterators(n);
  }
  puts("Thrust's algorithms work");
}
