// What a peer is told, and the loop that it sits in: arrays and launches of a case, in the words of `xtask/src/bench/peers.rs`.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

struct Array {
  void *data; // a whole number of pages
  size_t bytes;
  std::vector<char> fresh; // its content before each run; empty: what the last one left
};

struct Arg {
  char kind; // 'a': that array, 'i': an integer, 'f': a float
  size_t array;
  int32_t integer;
  float real;
};

struct Step {
  std::string kernel;
  size_t grid[3], block[3];
  std::vector<Arg> args;
};

struct Job {
  std::string text;
  std::vector<Array> arrays;
  std::vector<Step> steps;
};

// What a peer does. Each gives an empty string, or why it cannot.
struct Peer {
  virtual ~Peer() = default;
  virtual std::string open(Job &job) = 0;
  virtual void fill(Job &job, size_t array) = 0;  // hands the content of an array to kernels
  virtual void fetch(Job &job, size_t array) = 0; // brings it back
  virtual std::string run(Job &job) = 0;          // all steps; returns when they have ended
};

inline int64_t now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

inline bool read_job(Job &job) {
  for (Array &old : job.arrays)
    free(old.data);
  job = Job();
  size_t text, arrays, steps;
  if (scanf("%zu %zu %zu", &text, &arrays, &steps) != 3)
    return false;
  job.text.resize(text);
  job.arrays.resize(arrays);
  job.steps.resize(steps);
  for (Array &array : job.arrays) {
    int restore;
    if (scanf("%zu %d", &array.bytes, &restore) != 2)
      return false;
    array.data = aligned_alloc(4096, (array.bytes + 4095) / 4096 * 4096);
    array.fresh.resize(restore ? array.bytes : 0);
  }
  for (Step &step : job.steps) {
    char name[256];
    size_t args;
    size_t *g = step.grid, *b = step.block;
    if (scanf("%255s %zu %zu %zu %zu %zu %zu %zu", name, g, g + 1, g + 2, b, b + 1, b + 2, &args) != 8)
      return false;
    step.kernel = name;
    step.args.resize(args);
    for (Arg &arg : step.args) {
      bool read = scanf(" %c", &arg.kind) == 1;
      read = read && (arg.kind != 'a' || scanf("%zu", &arg.array) == 1);
      read = read && (arg.kind != 'i' || scanf("%d", &arg.integer) == 1);
      read = read && (arg.kind != 'f' || scanf("%f", &arg.real) == 1);
      if (!read || (arg.kind == 'a' && arg.array >= arrays))
        return false;
    }
  }
  if (getchar() != '\n' || fread(&job.text[0], 1, text, stdin) != text)
    return false;
  for (Array &array : job.arrays) {
    if (!array.data || fread(array.data, 1, array.bytes, stdin) != array.bytes)
      return false;
    memcpy(array.fresh.data(), array.data, array.fresh.size());
  }
  return true;
}

// Answers until the input ends.
inline int serve(Peer &peer) {
  Job job;
  char command[16];
  while (scanf("%15s", command) == 1) {
    std::string what = command;
    size_t n;
    if (what == "open") {
      if (!read_job(job))
        return 1;
      std::string why = peer.open(job);
      printf("%s\n", why.empty() ? "open" : why.c_str());
    } else if (what == "run" && scanf("%zu", &n) == 1) {
      std::string why;
      for (size_t i = 0; i < n && why.empty(); i++) {
        for (size_t a = 0; a < job.arrays.size(); a++)
          if (!job.arrays[a].fresh.empty()) {
            memcpy(job.arrays[a].data, job.arrays[a].fresh.data(), job.arrays[a].bytes);
            peer.fill(job, a);
          }
        int64_t wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        why = peer.run(job);
        printf("%lld %lld ", (long long)(now(CLOCK_MONOTONIC) - wall), (long long)(now(CLOCK_PROCESS_CPUTIME_ID) - cpu));
      }
      printf("%s\n", why.c_str());
    } else if (what == "array" && scanf("%zu", &n) == 1 && n < job.arrays.size()) {
      peer.fetch(job, n);
      fwrite(job.arrays[n].data, 1, job.arrays[n].bytes, stdout);
    } else {
      return 1;
    }
    fflush(stdout);
  }
  return 0;
}
