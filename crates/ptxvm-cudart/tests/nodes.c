// Nodes of any type and copies of variables in graphs of the runtime. Prints wrong results; exits with 0 if there
// are none.
#include "support/runtime.h"
#include <string.h>

static const char *text =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .u32 number[4];\n"
    ".visible .entry add(.param .u64 at, .param .u32 by) {\n"
    ".reg .b32 %r<3>; .reg .b64 %rd1;\n"
    "ld.param.u64 %rd1, [at]; ld.param.u32 %r1, [by];\n"
    "ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, %r1; st.global.u32 [%rd1], %r2; ret; }\n";

typedef struct { unsigned x, y, z; } dim3;
typedef struct { void *func; dim3 grid, block; unsigned shared; void **params, **extra; void *context; int kind; } kernel_params;
typedef struct { void *at; size_t pitch, width, height; } pitched;
typedef struct { void *from_array; size_t from_at[3]; pitched from; void *to_array; size_t to_at[3]; pitched to; size_t extent[3]; int kind; } copy_params;
typedef struct { int flags, reserved; void *context; copy_params copy; } memcpy_params;
typedef struct { void *to; size_t pitch; unsigned value, element; size_t width, height; } set_params;
typedef struct { int kind, handles, place, device; void *security; size_t most; char rest[56]; const void *access; size_t accesses, bytes; void *at; } alloc_params;
// `cudaGraphNodeParams`
typedef struct {
    int type, reserved[3];
    union { long long words[29]; kernel_params kernel; memcpy_params memcpy; set_params set; void *event; alloc_params alloc; } of;
    long long last;
} node_params;

static char stub, shadow;

static unsigned read_one(void *at) {
    unsigned value = 0;
    OK(cudaMemcpy, &value, at, (size_t)4, 2);
    return value;
}

static void run(void *exec) {
    OK(cudaGraphLaunch, exec, NULL);
    OK(cudaDeviceSynchronize);
}

int main(void) {
    open_runtime();
    IS(sizeof(node_params), 256);
    IS(sizeof(alloc_params), 120);
    void *(*reg)(const void *) = (void *(*)(const void *))find("__cudaRegisterFatBinary");
    void *binary = reg(text);
    CALL(__cudaRegisterFunction, binary, &stub, "add", "add", -1, NULL, NULL, NULL, NULL, NULL);
    CALL(__cudaRegisterVar, binary, &shadow, "number", "number", 0, (size_t)16, 0, 0);

    unsigned *a, *b, by = 5, host[4] = {1, 2, 3, 4}, back[4] = {0};
    void *graph, *exec, *set, *kernel, *copy, *alloc, *release;
    OK(cudaMalloc, &a, (size_t)16);
    OK(cudaMalloc, &b, (size_t)16);
    OK(cudaGraphCreate, &graph, 0);
    node_params params = {2};
    params.of.set = (set_params){a, 0, 37, 4, 1, 1};
    OK(cudaGraphAddNode, &set, graph, NULL, (size_t)0, &params);
    void *values[] = {&a, &by};
    node_params launch = {0};
    launch.of.kernel = (kernel_params){&stub, {1, 1, 1}, {1, 1, 1}, 0, values, NULL};
    OK(cudaGraphAddNode_v2, &kernel, graph, &set, NULL, (size_t)1, &launch);
    IS(launch.of.kernel.func, &stub);
    node_params slice = {1};
    slice.of.memcpy.copy.from = (pitched){a, 4, 4, 1};
    slice.of.memcpy.copy.to = (pitched){b, 4, 4, 1};
    memcpy(slice.of.memcpy.copy.extent, (size_t[]){4, 1, 1}, sizeof slice.of.memcpy.copy.extent);
    slice.of.memcpy.copy.kind = 3;
    OK(cudaGraphAddNode, &copy, graph, &kernel, (size_t)1, &slice);
    node_params event = {7};
    OK(cudaEventCreate, &event.of.event);
    OK(cudaGraphAddNode, &release, graph, &copy, (size_t)1, &event);
    // An allocation's address is returned in the parameters.
    node_params memory = {10};
    memory.of.alloc.kind = 1; memory.of.alloc.place = 1; memory.of.alloc.bytes = 64;
    OK(cudaGraphAddNode, &alloc, graph, &copy, (size_t)1, &memory);
    IS(memory.of.alloc.at != NULL, 1);
    node_params freeing = {11};
    freeing.of.event = memory.of.alloc.at;
    OK(cudaGraphAddNode, &release, graph, &alloc, (size_t)1, &freeing);
    node_params wrong = {99};
    IS(CALL(cudaGraphAddNode, &release, graph, NULL, (size_t)0, &wrong), 1);
    wrong.type = 0; wrong.of.kernel.func = &binary;
    IS(CALL(cudaGraphAddNode, &release, graph, NULL, (size_t)0, &wrong), 98);
    OK(cudaGraphInstantiate, &exec, graph, 0ul);
    run(exec);
    IS(read_one(b), 42);

    // The parameters are those that were given.
    node_params found;
    memset(&found, 0xff, sizeof found);
    OK(cudaGraphNodeGetParams, kernel, &found);
    IS(found.type, 0);
    IS(found.of.kernel.func, &stub);
    IS(found.of.kernel.block.z, 1);
    IS(*(unsigned *)found.of.kernel.params[1], 5);
    OK(cudaGraphNodeGetParams, copy, &found);
    IS(found.type, 1);
    IS(found.of.memcpy.copy.from.at, a);
    IS(found.of.memcpy.copy.to.at, b);
    IS(found.of.memcpy.copy.extent[0], 4);
    IS(found.of.memcpy.copy.kind, 3);
    copy_params slices;
    OK(cudaGraphMemcpyNodeGetParams, copy, &slices);
    IS(slices.to.at, b);
    IS(CALL(cudaGraphMemcpyNodeGetParams, kernel, &slices), 1);
    by = 6;
    OK(cudaGraphExecNodeSetParams, exec, kernel, &launch);
    run(exec);
    IS(read_one(b), 43);
    params.of.set.value = 100;
    OK(cudaGraphNodeSetParams, set, &params);
    IS(CALL(cudaGraphNodeSetParams, kernel, &params), 1);
    void *second;
    OK(cudaGraphInstantiate, &second, graph, 0ul);
    run(second);
    IS(read_one(b), 105);
    unsigned id = 0, local = 99;
    void *within = NULL;
    OK(cudaGraphGetId, graph, &id);
    IS(id != 0, 1);
    OK(cudaGraphNodeGetLocalId, copy, &local);
    IS(local, 2);
    OK(cudaGraphNodeGetContainingGraph, copy, &within);
    IS(within, graph);
    OK(cudaGraphExecDestroy, second);
    OK(cudaGraphExecDestroy, exec);
    OK(cudaGraphDestroy, graph);

    // Copies to and from a variable.
    void *to, *from;
    OK(cudaGraphCreate, &graph, 0);
    OK(cudaGraphAddMemcpyNodeToSymbol, &to, graph, NULL, (size_t)0, &shadow, host, (size_t)16, (size_t)0, 1);
    OK(cudaGraphAddMemcpyNodeFromSymbol, &from, graph, &to, (size_t)1, back, &shadow, (size_t)8, (size_t)8, 2);
    OK(cudaGraphInstantiate, &exec, graph, 0ul);
    run(exec);
    IS(back[0], 3);
    IS(back[1], 4);
    OK(cudaGraphExecMemcpyNodeSetParamsToSymbol, exec, to, &shadow, host, (size_t)4, (size_t)12, 1);
    OK(cudaGraphExecMemcpyNodeSetParamsFromSymbol, exec, from, back, &shadow, (size_t)16, (size_t)0, 2);
    run(exec);
    IS(back[0], 1);
    IS(back[3], 1);
    OK(cudaGraphMemcpyNodeSetParamsToSymbol, to, &shadow, host + 1, (size_t)4, (size_t)4, 1);
    OK(cudaGraphMemcpyNodeSetParamsFromSymbol, from, back + 2, &shadow, (size_t)4, (size_t)4, 2);
    IS(CALL(cudaGraphMemcpyNodeSetParamsToSymbol, to, &shadow, host, (size_t)16, (size_t)4, 1), 1);
    OK(cudaGraphInstantiate, &second, graph, 0ul);
    run(second);
    IS(back[2], 2);

    // A launch with a cluster of several CTAs is refused, not run without clusters.
    struct { int id, pad; unsigned value[16]; } attribute = {4, 0, {2, 1, 1}};
    struct { dim3 grid, block; size_t shared; void *stream, *attributes; unsigned count; } config =
        {{2, 1, 1}, {1, 1, 1}, 0, NULL, &attribute, 1};
    IS(CALL(cudaLaunchKernelExC, &config, &stub, values), 801);
    attribute.value[0] = 1;
    OK(cudaLaunchKernelExC, &config, &stub, values);
    int clusters = 0;
    OK(cudaOccupancyMaxPotentialClusterSize, &clusters, &stub, &config);
    IS(clusters, 1);
    OK(cudaOccupancyMaxActiveClusters, &clusters, &stub, &config);
    IS(clusters > 0, 1);

    // Copies in batches, in a stream of the program.
    void *stream, *targets[] = {a, back}, *sources[] = {host, a};
    size_t sizes[] = {16, 8}, starts[] = {0}, failed = 0;
    struct { int order, places[4]; unsigned flags; } order = {1};
    OK(cudaStreamCreate, &stream);
    OK(cudaMemcpyBatchAsync, targets, sources, sizes, (size_t)2, &order, starts, (size_t)1, &failed, stream);
    OK(cudaStreamSynchronize, stream);
    IS(back[1], 2);
    sources[1] = (char *)a + 12;
    IS(CALL(cudaMemcpyBatchAsync, targets, sources, sizes, (size_t)2, &order, starts, (size_t)1, &failed, stream), 1);
    IS(failed, 1);
    return failures != 0;
}
