// Arguments: the name of the runtime's library, and the major version of CUDA that it stands for. Sizes and
// parameters are those of the headers of CUDA 11.8, 12.9 and 13.5.
#include "support/runtime.h"
#include <string.h>

static const char *text =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry nothing() { ret; }\n";

typedef struct { int bits[4], kind; } channels;
typedef struct { int kind, pad; union { void *array; struct { void *at; channels format; size_t bytes; } linear; char all[128]; } of; unsigned flags; } resource;
typedef struct { int address[3], filter, read, srgb; float border[4]; int normalized; unsigned anisotropy; int level_filter; float bias, clamp[2]; int trilinear, seamless; } sampling;

static unsigned char room[2048];
static char nothing;

// The room, filled with a number that no structure ends with.
static void *fresh(void) { return memset(room, 0xa5, sizeof room); }

// The number of bytes that were written to the room.
static int written(void) {
    int bytes = sizeof room;
    while (bytes && room[bytes - 1] == 0xa5) bytes--;
    return bytes;
}

int main(int count, char **arguments) {
    if (count < 3) return 9;
    int major = atoi(arguments[2]);
    open_named(arguments[1]);
    void *(*reg)(const void *) = (void *(*)(const void *))find("__cudaRegisterFatBinary");
    CALL(__cudaRegisterFunction, reg(text), &nothing, "nothing", "nothing", -1, NULL, NULL, NULL, NULL, NULL);

    // Properties, attributes.
    OK(cudaGetDeviceProperties, fresh(), 0);
    IS(written(), major == 13 ? 1008 : 728);
    OK(cudaGetDeviceProperties_v2, fresh(), 0);
    IS(written(), 1032);
    OK(cudaFuncGetAttributes, fresh(), &nothing);
    IS(written() <= (major == 11 ? 56 : 144), 1);
    IS(written() >= 52, 1);
    float *device;
    OK(cudaMalloc, &device, (size_t)64);
    OK(cudaPointerGetAttributes, fresh(), device);
    IS(written(), 24);

    // Descriptions of objects. The fields of CUDA 11 and 12 are followed by other memory.
    sampling how = {{0, 1, 2}, 0, 0, 0, {0}, 0, 4, 0, 0, {0, 0}, 1, 1}, same;
    resource linear = {2, 0, {.linear = {device, {{32, 0, 0, 0}, 2}, 64}}, 7};
    unsigned long long texture = 0, surface = 0;
    IS(CALL(cudaCreateTextureObject, &texture, &linear, &how, NULL), major == 13 ? 1 : 0);
    linear.flags = 0;
    OK(cudaCreateTextureObject, &texture, &linear, &how, NULL);
    OK(cudaGetTextureObjectTextureDesc, fresh(), texture);
    IS(written(), major == 11 ? 68 : 72);
    IS(memcmp(room, &how, 68), 0);
    OK(cudaGetTextureObjectTextureDesc_v2, &same, texture);
    IS(same.seamless, major == 11 ? 0 : 1);
    OK(cudaCreateTextureObject_v2, &texture, &linear, &how, NULL);
    OK(cudaGetTextureObjectTextureDesc_v2, fresh(), texture);
    IS(written(), 72);
    IS(memcmp(room, &how, 72), 0);
    int bytes = major == 13 ? 140 : 64;
    OK(cudaGetTextureObjectResourceDesc, fresh(), texture);
    IS(written() >= bytes && written() <= (major == 13 ? 144 : 64), 1);
    IS(memcmp(room, &linear, 64), 0);
    void *array;
    channels words = {{32, 0, 0, 0}, 1};
    OK(cudaMallocArray, &array, &words, (size_t)4, (size_t)2, 2);
    resource drawn = {0, 0, {.array = array}, 0};
    OK(cudaCreateSurfaceObject, &surface, &drawn);
    OK(cudaGetSurfaceObjectResourceDesc, fresh(), surface);
    IS(written() >= bytes && written() <= (major == 13 ? 144 : 64), 1);
    IS(memcmp(room + 8, &array, sizeof array), 0);

    // Graphs.
    void *graph, *first, *second, *executable, *wrong = room;
    int result = 99;
    OK(cudaGraphCreate, &graph, 0);
    OK(cudaGraphAddEmptyNode, &first, graph, NULL, (size_t)0);
    OK(cudaGraphAddEmptyNode, &second, graph, NULL, (size_t)0);
    size_t edges = 99, more = 99;
    if (major == 13) {
        OK(cudaGraphAddDependencies, graph, &first, &second, NULL, (size_t)1);
        OK(cudaGraphGetEdges, graph, NULL, NULL, NULL, &edges);
        OK(cudaGraphNodeGetDependencies, second, NULL, NULL, &more);
    } else {
        OK(cudaGraphAddDependencies, graph, &first, &second, (size_t)1);
        OK(cudaGraphGetEdges, graph, NULL, NULL, &edges);
        OK(cudaGraphNodeGetDependencies, second, NULL, &more);
    }
    IS(edges, 1);
    IS(more, 1);
    if (major == 11) {
        char log[16];
        OK(cudaGraphInstantiate, &executable, graph, &wrong, log, sizeof log);
        OK(cudaGraphExecUpdate, executable, graph, &wrong, &result);
        IS(result, 0);
    } else {
        OK(cudaGraphInstantiate, &executable, graph, 8ULL);
        OK(cudaGraphExecUpdate, executable, graph, fresh());
        IS(written() >= 16 && written() <= 24, 1);
        memcpy(&result, room, sizeof result);
        IS(result, 0);
    }

    // CUDA 11 has no parameter for the result.
    void *function = NULL;
    result = 99;
    OK(cudaGetDriverEntryPoint, "cuMemAlloc", &function, 0ULL, &result);
    IS(function != NULL, 1);
    IS(result, major == 11 ? 99 : 0);
    return failures != 0;
}
