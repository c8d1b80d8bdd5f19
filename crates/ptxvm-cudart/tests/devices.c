// Two devices of the runtime: numbers, memory, peer access, copies; and a handle that another process opens.
#include "support/runtime.h"
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct { char bytes[64]; } Name;
typedef struct { void *at; size_t pitch, width, height; } Pitched;
typedef struct { size_t width, height, depth; } Extent;
typedef struct { size_t x, y, z; } Position;
typedef struct {
    void *from_array; Position from; Pitched from_pointer; int from_device;
    void *to_array; Position to; Pitched to_pointer; int to_device;
    Extent extent;
} Peer;
typedef struct { int type, device; void *on_device, *on_host; size_t more[8]; } Attributes;

static int set(int device) { return TYPED(cudaSetDevice, (int), device); }

static void *allocate(size_t bytes) {
    void *at = 0;
    CHECK(0, TYPED(cudaMalloc, (void **, size_t), &at, bytes));
    return at;
}

static int device_of(void *at) {
    Attributes found;
    CHECK(0, TYPED(cudaPointerGetAttributes, (Attributes *, void *), &found, at));
    return found.device;
}

// The other process.
static int other(const char *file) {
    Name name;
    FILE *in = fopen(file, "rb");
    if (!in || fread(&name, 1, sizeof name, in) != sizeof name) return 2;
    fclose(in);
    void *at = 0;
    int words[4] = {0};
    CHECK(0, TYPED(cudaIpcOpenMemHandle, (void **, Name, unsigned), &at, name, 1u));
    CHECK(0, TYPED(cudaMemcpy, (void *, void *, size_t, int), words, at, sizeof words, 2));
    for (int i = 0; i < 4; i++) words[i] += 10;
    CHECK(0, TYPED(cudaMemcpy, (void *, void *, size_t, int), at, words, sizeof words, 1));
    CHECK(0, TYPED(cudaIpcCloseMemHandle, (void *), at));
    CHECK(1, TYPED(cudaIpcCloseMemHandle, (void *), at));
    return 0;
}

int main(int count, char **arguments) {
    open_runtime();
    if (count > 1) return other(arguments[1]);

    int number = 0, can = 0;
    CHECK(0, TYPED(cudaGetDeviceCount, (int *), &number));
    CHECK(2, number);
    CHECK(101, set(2));
    CHECK(0, set(0));
    void *first = allocate(16);
    CHECK(0, set(1));
    void *second = allocate(16);
    CHECK(0, device_of(first));
    CHECK(1, device_of(second));
    CHECK(0, TYPED(cudaDeviceCanAccessPeer, (int *, int, int), &can, 1, 0));
    CHECK(1, can);
    CHECK(101, TYPED(cudaDeviceEnablePeerAccess, (int, unsigned), 1, 0u));
    CHECK(705, TYPED(cudaDeviceDisablePeerAccess, (int), 0));
    CHECK(0, TYPED(cudaDeviceEnablePeerAccess, (int, unsigned), 0, 0u));
    CHECK(704, TYPED(cudaDeviceEnablePeerAccess, (int, unsigned), 0, 0u));
    CHECK(0, TYPED(cudaDeviceDisablePeerAccess, (int), 0));
    CHECK(0, TYPED(cudaDeviceGetP2PAttribute, (int *, int, int, int), &can, 2, 1, 0));
    CHECK(1, can);

    int words[4] = {1, 2, 3, 4}, found[4] = {0};
    CHECK(0, TYPED(cudaMemcpy, (void *, void *, size_t, int), first, words, 16, 1));
    CHECK(101, TYPED(cudaMemcpyPeer, (void *, int, void *, int, size_t), second, 2, first, 0, 16));
    CHECK(0, TYPED(cudaMemcpyPeer, (void *, int, void *, int, size_t), second, 1, first, 0, 8));
    Peer peer = {.from_pointer = {(char *)first, 8, 8, 2}, .from = {0, 1, 0}, .from_device = 0,
                 .to_pointer = {(char *)second, 8, 8, 2}, .to = {0, 1, 0}, .to_device = 1, .extent = {8, 1, 1}};
    CHECK(0, TYPED(cudaMemcpy3DPeer, (Peer *), &peer));
    CHECK(0, TYPED(cudaMemcpy, (void *, void *, size_t, int), found, second, 16, 2));
    CHECK(0, memcmp(words, found, 16));

    // A stream belongs to the device that was current when it was created.
    void *stream = 0;
    CHECK(0, TYPED(cudaStreamCreate, (void **), &stream));
    CHECK(0, set(0));
    CHECK(0, TYPED(cudaStreamGetDevice, (void *, int *), stream, &can));
    CHECK(1, can);

    Name name;
    CHECK(0, TYPED(cudaIpcGetMemHandle, (Name *, void *), &name, first));
    void *own = 0;
    CHECK(201, TYPED(cudaIpcOpenMemHandle, (void **, Name, unsigned), &own, name, 1u));
    char file[4096], command[8300];
    snprintf(file, sizeof file, "%s.name", arguments[0]);
    FILE *out = fopen(file, "wb");
    fwrite(&name, 1, sizeof name, out);
    fclose(out);
    snprintf(command, sizeof command, "'%s' '%s'", arguments[0], file);
    CHECK(0, system(command));
    remove(file);
    CHECK(0, TYPED(cudaMemcpy, (void *, void *, size_t, int), found, first, 16, 2));
    for (int i = 0; i < 4; i++) CHECK(words[i] + 10, found[i]);

    // Only the current device is reset.
    CHECK(0, set(1));
    CHECK(0, TYPED(cudaDeviceReset, (void)));
    CHECK(0, set(0));
    CHECK(0, TYPED(cudaMemcpy, (void *, void *, size_t, int), found, first, 16, 2));
    CHECK(1, TYPED(cudaMemcpy, (void *, void *, size_t, int), found, second, 16, 2));
    return 0;
}
