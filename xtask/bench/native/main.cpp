// The native side of `cargo xtask bench`: reads commands from standard input, answers on standard output.
//
//   open NAME ARRAYS NUMBERS (BYTES RESTORE)... NUMBER...   then the bytes of the arrays    -> ways to do it
//   run WAY TIMES                                                                 -> wall and CPU nanoseconds, for each time
//   array I                                                                       -> the array's bytes
//
// It ends with its input.
#include "job.h"
#include <cstdio>
#include <ctime>

static int64_t now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static bool open_job(const std::vector<Entry> &entries, const Entry *&entry, Job &job) {
  char name[64];
  size_t arrays, numbers;
  if (scanf("%63s %zu %zu", name, &arrays, &numbers) != 3)
    return false;
  for (Array &old : job.arrays)
    free(old.data);
  job = Job();
  job.arrays.resize(arrays);
  for (Array &array : job.arrays) {
    int restore;
    if (scanf("%zu %d", &array.bytes, &restore) != 2)
      return false;
    array.data = aligned_alloc(4096, (array.bytes + 4095) / 4096 * 4096);
    array.fresh.resize(restore ? array.bytes : 0);
  }
  job.numbers.resize(numbers);
  for (double &number : job.numbers)
    if (scanf("%lf", &number) != 1)
      return false;
  if (getchar() != '\n')
    return false;
  for (Array &array : job.arrays) {
    if (!array.data || fread(array.data, 1, array.bytes, stdin) != array.bytes)
      return false;
    memcpy(array.fresh.data(), array.data, array.fresh.size());
  }
  entry = nullptr;
  for (const Entry &candidate : entries)
    if (std::string(candidate.name) == name)
      entry = &candidate;
  printf("%zu\n", entry ? entry->bodies.size() : 0);
  return true;
}

std::vector<Entry> &zoo() {
  static std::vector<Entry> entries;
  return entries;
}

int main() {
  std::vector<Entry> entries = zoo();
  for (auto part : {streaming, shared_memory, pictures, matrix, integers, approximate})
    for (Entry &entry : part())
      entries.push_back(entry);
  const Entry *entry = nullptr;
  Job job;
  char command[16];
  while (scanf("%15s", command) == 1) {
    std::string what = command;
    size_t a, b;
    if (what == "open") {
      if (!open_job(entries, entry, job))
        return 1;
    } else if (what == "run" && scanf("%zu %zu", &a, &b) == 2 && entry && a < entry->bodies.size()) {
      for (size_t i = 0; i < b; i++) {
        for (Array &array : job.arrays)
          memcpy(array.data, array.fresh.data(), array.fresh.size());
        int64_t wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
        entry->bodies[a](job);
        printf("%lld %lld ", (long long)(now(CLOCK_MONOTONIC) - wall), (long long)(now(CLOCK_PROCESS_CPUTIME_ID) - cpu));
      }
      printf("\n");
    } else if (what == "array" && scanf("%zu", &a) == 1 && a < job.arrays.size()) {
      fwrite(job.arrays[a].data, 1, job.arrays[a].bytes, stdout);
    } else {
      return 1;
    }
    fflush(stdout);
  }
}
