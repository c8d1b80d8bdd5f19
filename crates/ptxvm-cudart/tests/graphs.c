// Graphs of the runtime: built by hand, captured, updated. Prints wrong results; exits with 0 if there are
// none.
#include "support/runtime.h"
#include <string.h>

static const char *text =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 at, .param .u32 by) {\n"
    ".reg .b32 %r<3>; .reg .b64 %rd1;\n"
    "ld.param.u64 %rd1, [at]; ld.param.u32 %r1, [by];\n"
    "ld.global.u32 %r2, [%rd1]; add.u32 %r2, %r2, %r1; st.global.u32 [%rd1], %r2; ret; }\n";

typedef struct { unsigned x, y, z; } dim3;
typedef struct { void *func; dim3 grid, block; unsigned shared; void **params, **extra; } kernel_params;
typedef struct { void *to; size_t pitch; unsigned value, element; size_t width, height; } set_params;
typedef struct { void *at; size_t pitch, width, height; } pitched;
typedef struct { void *from_array; size_t from_at[3]; pitched from; void *to_array; size_t to_at[3]; pitched to; size_t extent[3]; int kind; } copy_params;

static char stub;

static void called(void *data) { ++*(int *)data; }

int main(void) {
    open_runtime();
    void *(*reg)(const void *) = (void *(*)(const void *))find("__cudaRegisterFatBinary");
    void *binary = reg(text);
    CALL(__cudaRegisterFunction, binary, &stub, "add", "add", -1, NULL, NULL, NULL, NULL, NULL);

    unsigned *a, *b, by = 5, host = 0, calls = 0;
    size_t count = 0;
    void *graph, *exec, *set, *kernel, *copy, *back, *node, *stream, *clone;
    OK(cudaMalloc, &a, (size_t)16);
    OK(cudaMalloc, &b, (size_t)16);
    OK(cudaStreamCreateWithFlags, &stream, 1);
    OK(cudaGraphCreate, &graph, 0);
    set_params fill = {a, 0, 37, 4, 1, 1};
    OK(cudaGraphAddMemsetNode, &set, graph, NULL, (size_t)0, &fill);
    void *values[] = {&a, &by};
    kernel_params launch = {&stub, {1, 1, 1}, {1, 1, 1}, 0, values, NULL};
    OK(cudaGraphAddKernelNode, &kernel, graph, &set, (size_t)1, &launch);
    copy_params slice = {0};
    slice.from = (pitched){a, 4, 4, 1};
    slice.to = (pitched){b, 4, 4, 1};
    slice.extent[0] = 4; slice.extent[1] = slice.extent[2] = 1; slice.kind = 3;
    OK(cudaGraphAddMemcpyNode, &copy, graph, &kernel, (size_t)1, &slice);
    OK(cudaGraphAddMemcpyNode1D, &back, graph, &copy, (size_t)1, &host, b, (size_t)4, 2);
    struct { void (*function)(void *); void *data; } call = {called, &calls};
    OK(cudaGraphAddHostNode, &node, graph, &back, (size_t)1, &call);
    OK(cudaGraphGetNodes, graph, NULL, &count);
    IS(count, 5);
    int kind = -1;
    OK(cudaGraphNodeGetType, kernel, &kind);
    IS(kind, 0);
    OK(cudaGraphInstantiate, &exec, graph, 0ul);
    for (int turn = 1; turn <= 2; turn++) {
        OK(cudaGraphLaunch, exec, stream);
        OK(cudaStreamSynchronize, stream);
        IS(host, 42);
        IS(calls, turn);
    }
    // The function of a node is the stub that was launched.
    kernel_params found;
    OK(cudaGraphKernelNodeGetParams, kernel, &found);
    IS(found.func, &stub);
    by = 6;
    OK(cudaGraphExecKernelNodeSetParams, exec, kernel, &launch);
    OK(cudaGraphLaunch, exec, stream);
    OK(cudaStreamSynchronize, stream);
    IS(host, 43);
    OK(cudaGraphClone, &clone, graph);
    OK(cudaGraphDestroy, clone);
    struct { int result; void *node, *from; } update;
    OK(cudaGraphExecUpdate, exec, graph, &update);
    IS(update.result, 0);
    OK(cudaGraphExecDestroy, exec);
    OK(cudaGraphDestroy, graph);

    // An unregistered stub is not a kernel; a `cudaKernel_t` is one.
    static char other;
    void *handle;
    IS(CALL(cudaLaunchKernel, &other, (dim3){1, 1, 1}, (dim3){1, 1, 1}, values, (size_t)0, stream), 98);
    IS(CALL(cudaGetLastError), 98);
    OK(cudaGetKernel, &handle, &stub);
    OK(cudaLaunchKernel, handle, (dim3){1, 1, 1}, (dim3){1, 1, 1}, values, (size_t)0, stream);

    // The captured work.
    OK(cudaStreamBeginCapture, stream, 0);
    OK(cudaMemsetAsync, a, 0, (size_t)4, stream);
    OK(cudaLaunchKernel, &stub, (dim3){1, 1, 1}, (dim3){1, 1, 1}, values, (size_t)0, stream);
    int state = 0;
    OK(cudaStreamGetCaptureInfo_v2, stream, &state, NULL, &graph, NULL, &count);
    IS(state, 1);
    IS(count, 1);
    OK(cudaStreamEndCapture, stream, &graph);
    OK(cudaGraphInstantiateWithFlags, &exec, graph, 0ul);
    OK(cudaGraphLaunch, exec, stream);
    OK(cudaStreamSynchronize, stream);
    OK(cudaMemcpy, &host, a, (size_t)4, 2);
    IS(host, 6);
    OK(cudaGraphDebugDotPrint, graph, "/dev/null", 0);
    return failures != 0;
}
