// Libraries, mipmapped arrays, and attributes of streams.
#include "support/runtime.h"
#include <stdint.h>
#include <string.h>

static const char *text =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 seven = 7;\n"
    ".visible .entry fill(.param .u64 at, .param .u32 value) {\n"
    "  .reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
    "  ld.param.u64 %rd1, [at]; ld.param.u32 %r1, [value]; st.global.u32 [%rd1], %r1; ret; }\n";

typedef struct { unsigned x, y, z; } Dim;
typedef struct { size_t width, height, depth; } Extent;
typedef struct { int x, y, z, w, kind; } Channels;

static void libraries(void) {
    void *loaded = 0, *kernel = 0, *same = 0, *address = 0, *memory = 0;
    unsigned count = 0;
    size_t bytes = 0, offset = 0;
    CHECK(0, TYPED(cudaLibraryLoadData, (void **, const char *, void *, void *, unsigned, void *, void *, unsigned),
                  &loaded, text, 0, 0, 0u, 0, 0, 0u));
    CHECK(0, TYPED(cudaLibraryGetKernelCount, (unsigned *, void *), &count, loaded));
    CHECK(1, (int)count);
    CHECK(0, TYPED(cudaLibraryGetKernel, (void **, void *, const char *), &kernel, loaded, "fill"));
    CHECK(500, TYPED(cudaLibraryGetKernel, (void **, void *, const char *), &same, loaded, "none"));
    CHECK(0, TYPED(cudaLibraryEnumerateKernels, (void **, unsigned, void *), &same, 1u, loaded));
    CHECK(1, same == kernel);
    CHECK(0, TYPED(cudaFuncGetParamInfo, (void *, size_t, size_t *, size_t *), kernel, 1, &offset, &bytes));
    CHECK(1, offset == 8 && bytes == 4);
    CHECK(0, TYPED(cudaLibraryGetGlobal, (void **, size_t *, void *, const char *), &address, &bytes, loaded, "seven"));
    int found = 0, value = 99;
    CHECK(0, TYPED(cudaMemcpy, (void *, void *, size_t, int), &found, address, 4, 2));
    CHECK(7, found);
    CHECK(0, TYPED(cudaMalloc, (void **, size_t), &memory, 4));
    void *arguments[] = {&memory, &value};
    Dim one = {1, 1, 1};
    CHECK(0, TYPED(cudaLaunchKernel, (void *, Dim, Dim, void **, size_t, void *), kernel, one, one, arguments, 0, 0));
    CHECK(0, TYPED(cudaMemcpy, (void *, void *, size_t, int), &found, memory, 4, 2));
    CHECK(99, found);
    CHECK(0, TYPED(cudaLibraryUnload, (void *), loaded));
    CHECK(400, TYPED(cudaLibraryGetKernelCount, (unsigned *, void *), &count, loaded));
}

static void levels(void) {
    void *mipmap = 0, *level = 0;
    Channels channels = {32, 0, 0, 0, 2}, found;
    Extent extent = {16, 8, 0}, size;
    unsigned flags;
    CHECK(0, TYPED(cudaMallocMipmappedArray, (void **, Channels *, Extent, unsigned, unsigned), &mipmap, &channels, extent, 3u, 0u));
    CHECK(0, TYPED(cudaGetMipmappedArrayLevel, (void **, void *, unsigned), &level, mipmap, 2u));
    CHECK(0, TYPED(cudaArrayGetInfo, (Channels *, Extent *, unsigned *, void *), &found, &size, &flags, level));
    CHECK(1, size.width == 4 && size.height == 2 && found.x == 32 && found.kind == 2);
    CHECK(1, TYPED(cudaGetMipmappedArrayLevel, (void **, void *, unsigned), &level, mipmap, 9u));
    float in[8] = {1, 2, 3, 4, 5, 6, 7, 8}, out[8] = {0};
    CHECK(0, TYPED(cudaMemcpy2DToArray, (void *, size_t, size_t, void *, size_t, size_t, size_t, int), level, 0, 0, in, 16, 16, 2, 1));
    CHECK(0, TYPED(cudaMemcpy2DFromArray, (void *, size_t, void *, size_t, size_t, size_t, size_t, int), out, 16, level, 0, 0, 16, 2, 2));
    CHECK(0, memcmp(in, out, sizeof in));
    CHECK(0, TYPED(cudaFreeMipmappedArray, (void *), mipmap));
    CHECK(400, TYPED(cudaFreeMipmappedArray, (void *), mipmap));
}

static void attributes(void) {
    void *stream = 0, *other = 0;
    // 64 bytes. Most attributes are a number in the first word.
    long long value[8] = {0};
    CHECK(0, TYPED(cudaStreamCreate, (void **), &stream));
    CHECK(0, TYPED(cudaStreamCreate, (void **), &other));
    CHECK(0, TYPED(cudaStreamGetAttribute, (void *, int, void *), stream, 3, value));
    CHECK(1, (int)value[0]);
    value[0] = 2;
    CHECK(0, TYPED(cudaStreamSetAttribute, (void *, int, void *), stream, 3, value));
    CHECK(0, TYPED(cudaStreamCopyAttributes, (void *, void *), other, stream));
    CHECK(0, TYPED(cudaStreamGetAttribute, (void *, int, void *), other, 3, value));
    CHECK(2, (int)value[0]);
    value[0] = 9;
    CHECK(1, TYPED(cudaStreamSetAttribute, (void *, int, void *), stream, 3, value));
    CHECK(1, TYPED(cudaStreamSetAttribute, (void *, int, void *), stream, 77, value));
    // L2 has no persisting lines: the device reports none and rejects windows for them.
    int most = 9;
    CHECK(0, TYPED(cudaDeviceGetAttribute, (int *, int, int), &most, 108, 0));
    CHECK(0, most);
    long long window[8] = {4096, 4096};
    CHECK(801, TYPED(cudaStreamSetAttribute, (void *, int, void *), stream, 1, window));
    CHECK(0, TYPED(cudaDeviceSetLimit, (int, size_t), 6, 0));
    CHECK(215, TYPED(cudaDeviceSetLimit, (int, size_t), 6, 1));
}

int main(void) {
    open_runtime();
    libraries();
    levels();
    attributes();
    return 0;
}
