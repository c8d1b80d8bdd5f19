// What a benchmark is given: arrays that it reads and writes in place, and numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct Array {
  void *data;
  size_t bytes;
  std::vector<char> fresh; // its content before each run; empty: what the last one left
};

struct Job {
  std::vector<Array> arrays;
  std::vector<double> numbers;

  template <typename T> T *array(size_t i) const { return static_cast<T *>(arrays[i].data); }
  template <typename T = int> T number(size_t i) const { return static_cast<T>(numbers[i]); }
};

// One way to do the work, and all of them: the fastest counts.
using Body = void (*)(Job &);
struct Entry {
  const char *name;
  std::vector<Body> bodies;
};

// A function of the zoo enters itself here. Functions of the same name are ways to do the same work.
std::vector<Entry> &zoo();
struct Registered {
  Registered(const char *name, Body body) {
    for (Entry &entry : zoo())
      if (!strcmp(entry.name, name)) {
        entry.bodies.push_back(body);
        return;
      }
    zoo().push_back({name, {body}});
  }
};
#define NATIVE_WAY(NAME, WAY)                        \
  static void NAME##_##WAY(Job &);                   \
  static Registered NAME##_##WAY##_entry{#NAME, NAME##_##WAY}; \
  static void NAME##_##WAY(Job &job)
#define NATIVE(NAME) NATIVE_WAY(NAME, native)

// By file.
std::vector<Entry> streaming(), shared_memory(), pictures(), matrix(), integers(), approximate();

// Vectors of 16 lanes; where the processor has narrower ones the compiler splits them.
typedef float f32x16 __attribute__((vector_size(64)));
typedef int32_t s32x16 __attribute__((vector_size(64)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef float f32x16_unaligned __attribute__((vector_size(64), aligned(4)));
