// A peer: a library with `ptx_run`, as gpuocelot has it. It runs the first kernel of a PTX text on host memory.
#include "job.h"
#include <dlfcn.h>

// The text, the arguments' values, threads of a CTA, CTAs of the grid, bytes of dynamic shared memory.
using PtxRun = int (*)(const char *, int, void **, int, int, int, int, int, int, int);

struct Library : Peer {
  PtxRun ptx_run = nullptr;

  std::string open(Job &job) override {
    size_t first = job.text.find(".entry ");
    for (Step &step : job.steps) {
      size_t name = first == std::string::npos ? first : first + 7;
      if (name == std::string::npos || job.text.compare(name, step.kernel.size() + 1, step.kernel + "(") != 0)
        return "ptx_run reaches only the first kernel of a text";
    }
    return "";
  }

  void fill(Job &, size_t) override {}
  void fetch(Job &, size_t) override {}

  std::string run(Job &job) override {
    for (Step &step : job.steps) {
      std::vector<void *> values;
      for (Arg &arg : step.args) {
        uint64_t value = 0;
        if (arg.kind == 'a')
          value = reinterpret_cast<uint64_t>(job.arrays[arg.array].data);
        else
          memcpy(&value, arg.kind == 'i' ? (void *)&arg.integer : (void *)&arg.real, 4);
        values.push_back(reinterpret_cast<void *>(value));
      }
      auto block = [&](int d) { return (int)step.block[d]; };
      auto grid = [&](int d) { return (int)step.grid[d]; };
      int error = ptx_run(job.text.c_str(), (int)values.size(), values.data(), block(0), block(1), block(2), grid(0), grid(1),
                          grid(2), 0);
      if (error != 0)
        return "ptx_run answers " + std::to_string(error);
    }
    return "";
  }
};

int main(int argc, char **argv) {
  Library peer;
  void *library = dlopen(argc > 1 ? argv[1] : "libgpuocelot.so", RTLD_NOW);
  if (library)
    peer.ptx_run = reinterpret_cast<PtxRun>(dlsym(library, "ptx_run"));
  printf("%s\n", peer.ptx_run ? "ready ptx_run" : dlerror());
  fflush(stdout);
  return peer.ptx_run ? serve(peer) : 1;
}
