// What the programs beside this file share: checks of calls and results, arrays of the device, and repeatable numbers.
#pragma once
#include <cuda_runtime.h>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    cudaError_t error_ = (call);                                                                   \
    if (error_ != cudaSuccess) {                                                                   \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error_));      \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

// Says which algorithm gave something else than the host's, and for how many elements.
#define EXPECT(what, name, n)                                                                      \
  do {                                                                                             \
    if (!(what)) {                                                                                 \
      fprintf(stderr, "%s:%d: %s of %zu elements differs from the host's\n", __FILE__, __LINE__, name, (size_t)(n)); \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

// An array on the device.
template <typename T>
struct Device {
  T *data = nullptr;
  size_t size;

  explicit Device(size_t size) : size(size) { CHECK(cudaMalloc(&data, size * sizeof(T) + 1)); }
  explicit Device(const std::vector<T> &from) : Device(from.size()) {
    CHECK(cudaMemcpy(data, from.data(), size * sizeof(T), cudaMemcpyHostToDevice));
  }
  Device(const Device &) = delete;
  ~Device() { cudaFree(data); }

  operator T *() const { return data; }
  std::vector<T> host() const { return host(size); }
  std::vector<T> host(size_t count) const {
    std::vector<T> to(count);
    CHECK(cudaMemcpy(to.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
  }
  T one() const { return host(1)[0]; }
};

// Calls an algorithm of CUB as all of them are called: for the size of its temporary memory, and with that memory.
template <typename Call>
void cub_call(Call call) {
  size_t bytes = 0;
  CHECK(call(nullptr, bytes));
  void *temporary = nullptr;
  CHECK(cudaMalloc(&temporary, bytes + 1));
  CHECK(call(temporary, bytes));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(temporary));
}

// Numbers that are the same in every run.
struct Numbers {
  uint64_t state;
  uint64_t next() {
    state = state * 6364136223846793005u + 1442695040888963407u;
    uint64_t mixed = (state ^ (state >> 29)) * 0xbf58476d1ce4e5b9u;
    return mixed ^ (mixed >> 32);
  }
};

// Values of any bits for integers, and finite ones of both signs for floating point.
template <typename T>
std::vector<T> any_values(size_t n, uint64_t seed) {
  Numbers numbers{seed};
  std::vector<T> values(n);
  for (T &value : values) {
    if constexpr (std::is_floating_point<T>::value) value = (T)((int64_t)numbers.next() >> 20) / (T)3;
    else value = (T)numbers.next();
  }
  return values;
}

// Values below a limit, so that many are equal and sums are exact.
template <typename T>
std::vector<T> few_values(size_t n, uint64_t seed, uint64_t limit) {
  Numbers numbers{seed};
  std::vector<T> values(n);
  for (T &value : values) value = (T)(numbers.next() % limit);
  return values;
}

// Values in runs of 1 to 40 equal ones.
template <typename T>
std::vector<T> runs_of_values(size_t n, uint64_t seed) {
  Numbers numbers{seed};
  std::vector<T> values;
  while (values.size() < n) values.insert(values.end(), 1 + numbers.next() % 40, (T)(numbers.next() % 100));
  values.resize(n);
  return values;
}

// Where segments begin and end: some are empty, some are long.
inline std::vector<int> segments_of(size_t n, uint64_t seed) {
  Numbers numbers{seed};
  std::vector<int> offsets{0};
  while (offsets.back() < (int)n) {
    uint64_t kind = numbers.next() % 10;
    int length = kind == 0 ? 0 : kind == 1 ? (int)(numbers.next() % 6000) : (int)(numbers.next() % 90);
    offsets.push_back(std::min<int>((int)n, offsets.back() + length));
  }
  return offsets;
}

// Less than a warp, a tile, some tiles; and none.
constexpr size_t SIZES[] = {0, 1, 31, 1000, 30011};
