// CUB's device-wide scans and reductions against loops of the host; also of segments, by key, histograms and run lengths.
#include <algorithm>
#include <cub/device/device_histogram.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_reduce.cuh>
#include <numeric>
#include "expect.h"

struct Larger {
  template <typename T>
  __host__ __device__ T operator()(const T &a, const T &b) const {
    return a < b ? b : a;
  }
};

// Neither commutes nor is as wide as a register: the composition of functions x -> a * x + b.
struct Line {
  uint32_t a, b;
  bool operator==(const Line &other) const { return a == other.a && b == other.b; }
};

struct Compose {
  __host__ __device__ Line operator()(const Line &first, const Line &then) const {
    return {then.a * first.a, then.a * first.b + then.b};
  }
};

template <typename T>
void scans(size_t n) {
  auto values = few_values<T>(n, n + sizeof(T), 100);
  Device<T> in(values), out(n);
  std::vector<T> inclusive(n), exclusive(n), largest(n);
  T sum = 0, most = 7;
  for (size_t i = 0; i < n; i++) {
    exclusive[i] = sum;
    largest[i] = most;
    inclusive[i] = sum = (T)(sum + values[i]);
    most = std::max(most, values[i]);
  }
  cub_call([&](void *t, size_t &b) { return cub::DeviceScan::InclusiveSum(t, b, in.data, out.data, (int)n); });
  EXPECT(out.host() == inclusive, "DeviceScan::InclusiveSum", n);
  cub_call([&](void *t, size_t &b) { return cub::DeviceScan::ExclusiveSum(t, b, in.data, out.data, (int)n); });
  EXPECT(out.host() == exclusive, "DeviceScan::ExclusiveSum", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceScan::ExclusiveScan(t, b, in.data, out.data, Larger(), (T)7, (int)n);
  });
  EXPECT(out.host() == largest, "DeviceScan::ExclusiveScan", n);
}

void scan_of_lines(size_t n) {
  auto a = any_values<uint32_t>(n, n + 1), b = any_values<uint32_t>(n, n + 2);
  std::vector<Line> lines(n), expected(n);
  for (size_t i = 0; i < n; i++) {
    lines[i] = {a[i], b[i]};
    expected[i] = i ? Compose()(expected[i - 1], lines[i]) : lines[i];
  }
  Device<Line> in(lines), out(n);
  cub_call([&](void *t, size_t &bytes) {
    return cub::DeviceScan::InclusiveScan(t, bytes, in.data, out.data, Compose(), (int)n);
  });
  EXPECT(out.host() == expected, "DeviceScan::InclusiveScan", n);
}

void by_key(size_t n) {
  auto keys = runs_of_values<int>(n, n + 3);
  auto values = few_values<int>(n, n + 4, 1000);
  std::vector<int> scanned(n), unique, sums, lengths;
  for (size_t i = 0; i < n; i++) {
    bool begins = i == 0 || keys[i] != keys[i - 1];
    scanned[i] = values[i] + (begins ? 0 : scanned[i - 1]);
    if (begins) unique.push_back(keys[i]), sums.push_back(0), lengths.push_back(0);
    sums.back() += values[i];
    lengths.back()++;
  }
  Device<int> in_keys(keys), in(values), out(n), out_keys(n), counts(n), count(1);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceScan::InclusiveSumByKey(t, b, in_keys.data, in.data, out.data, (int)n);
  });
  EXPECT(out.host() == scanned, "DeviceScan::InclusiveSumByKey", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceReduce::ReduceByKey(t, b, in_keys.data, out_keys.data, in.data, out.data, count.data,
                                          cuda::std::plus<>(), (int)n);
  });
  size_t found = count.one();
  EXPECT(found == unique.size() && out_keys.host(found) == unique && out.host(found) == sums,
         "DeviceReduce::ReduceByKey", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceRunLengthEncode::Encode(t, b, in_keys.data, out_keys.data, counts.data, count.data, (int)n);
  });
  found = count.one();
  EXPECT(found == unique.size() && out_keys.host(found) == unique && counts.host(found) == lengths,
         "DeviceRunLengthEncode::Encode", n);
  std::vector<int> begins, longer;
  for (size_t run = 0, at = 0; run < lengths.size(); at += lengths[run++])
    if (lengths[run] > 1) begins.push_back((int)at), longer.push_back(lengths[run]);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceRunLengthEncode::NonTrivialRuns(t, b, in_keys.data, out_keys.data, counts.data, count.data, (int)n);
  });
  found = count.one();
  EXPECT(found == begins.size() && out_keys.host(found) == begins && counts.host(found) == longer,
         "DeviceRunLengthEncode::NonTrivialRuns", n);
}

template <typename T>
void reductions(size_t n) {
  auto values = few_values<T>(n, n + sizeof(T) + 5, 10007);
  Device<T> in(values), out(1);
  T sum = 0;
  for (T value : values) sum = (T)(sum + value);
  cub_call([&](void *t, size_t &b) { return cub::DeviceReduce::Sum(t, b, in.data, out.data, (int)n); });
  EXPECT(out.one() == sum, "DeviceReduce::Sum", n);
  if (n == 0) return;
  auto least = std::min_element(values.begin(), values.end());
  auto most = std::max_element(values.begin(), values.end());
  cub_call([&](void *t, size_t &b) { return cub::DeviceReduce::Min(t, b, in.data, out.data, (int)n); });
  EXPECT(out.one() == *least, "DeviceReduce::Min", n);
  cub_call([&](void *t, size_t &b) { return cub::DeviceReduce::Max(t, b, in.data, out.data, (int)n); });
  EXPECT(out.one() == *most, "DeviceReduce::Max", n);
  Device<int64_t> place(1);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceReduce::ArgMax(t, b, in.data, out.data, place.data, (int64_t)n);
  });
  EXPECT(place.one() == most - values.begin() && out.one() == *most, "DeviceReduce::ArgMax", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceReduce::ArgMin(t, b, in.data, out.data, place.data, (int64_t)n);
  });
  EXPECT(place.one() == least - values.begin() && out.one() == *least, "DeviceReduce::ArgMin", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceReduce::Reduce(t, b, in.data, out.data, (int)n, Larger(), (T)3);
  });
  EXPECT(out.one() == std::max(*most, (T)3), "DeviceReduce::Reduce", n);
}

void segments(size_t n) {
  auto values = few_values<int>(n, n + 6, 1000);
  auto offsets = segments_of(n, n + 1);
  int count = (int)offsets.size() - 1;
  std::vector<int> sums(count), most(count);
  for (int s = 0; s < count; s++) {
    sums[s] = std::accumulate(values.begin() + offsets[s], values.begin() + offsets[s + 1], 0);
    most[s] = std::accumulate(values.begin() + offsets[s], values.begin() + offsets[s + 1], -5, Larger());
  }
  Device<int> in(values), out(count), borders(offsets);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceSegmentedReduce::Sum(t, b, in.data, out.data, count, borders.data, borders.data + 1);
  });
  EXPECT(out.host() == sums, "DeviceSegmentedReduce::Sum", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceSegmentedReduce::Reduce(t, b, in.data, out.data, count, borders.data, borders.data + 1, Larger(),
                                              -5);
  });
  EXPECT(out.host() == most, "DeviceSegmentedReduce::Reduce", n);
}

void histograms(size_t n) {
  auto samples = few_values<uint8_t>(n, n + 7, 200);
  std::vector<int> expected(50), ranges(4);
  std::vector<int> borders{0, 3, 50, 51, 190};
  for (uint8_t sample : samples) {
    if (sample >= 100) expected[(sample - 100) / 2]++;
    for (int bin = 0; bin < 4; bin++) ranges[bin] += sample >= borders[bin] && sample < borders[bin + 1];
  }
  Device<uint8_t> in(samples);
  Device<int> out(50), levels(borders);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceHistogram::HistogramEven(t, b, in.data, out.data, 51, 100, 200, (int)n);
  });
  EXPECT(out.host() == expected, "DeviceHistogram::HistogramEven", n);
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceHistogram::HistogramRange(t, b, in.data, out.data, 5, levels.data, (int)n);
  });
  EXPECT(out.host(4) == ranges, "DeviceHistogram::HistogramRange", n);
  // Three of four channels.
  auto pixels = any_values<uint8_t>(4 * n, n + 8);
  std::vector<int> colours[3] = {std::vector<int>(256), std::vector<int>(256), std::vector<int>(256)};
  for (size_t i = 0; i < n; i++)
    for (int c = 0; c < 3; c++) colours[c][pixels[4 * i + c]]++;
  Device<uint8_t> picture(pixels);
  Device<int> red(256), green(256), blue(256);
  int *bins[3] = {red.data, green.data, blue.data};
  int counts[3] = {257, 257, 257};
  int lower[3] = {0, 0, 0}, upper[3] = {256, 256, 256};
  cub_call([&](void *t, size_t &b) {
    return cub::DeviceHistogram::MultiHistogramEven<4, 3>(t, b, picture.data, bins, counts, lower, upper, (int)n);
  });
  EXPECT(red.host() == colours[0] && green.host() == colours[1] && blue.host() == colours[2],
         "DeviceHistogram::MultiHistogramEven", n);
}

int main() {
  for (size_t n : SIZES) {
    scans<uint8_t>(n);
    scans<int>(n);
    scans<double>(n);
    scan_of_lines(n);
    by_key(n);
    reductions<short>(n);
    reductions<int>(n);
    reductions<uint64_t>(n);
    reductions<float>(std::min<size_t>(n, 1000)); // The sum must be exact.
    segments(n);
    histograms(n);
  }
  scans<uint64_t>(400000);
  puts("CUB's scans and reductions work");
}
