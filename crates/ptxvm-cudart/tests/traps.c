// Effects of a trap in the runtime: a sticky error, `cudaDeviceReset`, and three tests of a suite in one
// process. The first argument tells whether contexts recover. Prints wrong results; exits with 0 if there are
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

static char stub;

// cudaErrorIllegalAddress, cudaErrorInvalidConfiguration or cudaErrorInvalidValue
enum { ILLEGAL = 700 };

static int launch(void *at, unsigned by, unsigned threads) {
    void *values[] = {&at, &by};
    dim3 one = {1, 1, 1}, block = {threads, 1, 1};
    // C++ passes each size in registers: twelve bytes in two words.
    return ((int (*)(void *, dim3, dim3, void **, size_t, void *))find("cudaLaunchKernel"))(&stub, one, block, values, 0, NULL);
}

// A test of a suite: a buffer, a kernel, the result. The kernel's address argument may be wrong.
static int test(unsigned first, unsigned by, int wrong, unsigned *result) {
    unsigned *at;
    int status = CALL(cudaMalloc, &at, (size_t)256);
    if (status) return status;
    if ((status = CALL(cudaMemcpy, at, &first, (size_t)4, 1))) return status;
    if ((status = launch(wrong ? (void *)64 : at, by, 1))) return status;
    if ((status = CALL(cudaDeviceSynchronize))) return status;
    if ((status = CALL(cudaMemcpy, result, at, (size_t)4, 2))) return status;
    return CALL(cudaFree, at);
}

int main(int count, char **arguments) {
    int recovers = count > 1 && !strcmp(arguments[1], "recovers");
    open_runtime();
    void *(*reg)(const void *) = (void *(*)(const void *))find("__cudaRegisterFatBinary");
    void *binary = reg(text);
    CALL(__cudaRegisterFunction, binary, &stub, "add", "add", -1, NULL, NULL, NULL, NULL, NULL);

    // There is nothing to reset yet.
    OK(cudaDeviceReset);
    unsigned result = 0, *at;
    IS(test(30, 12, 0, &result), 0);
    IS(result, 42);
    // An invalid launch leaves no sticky error.
    IS(launch(NULL, 0, 4096) != 0, 1);
    IS(CALL(cudaGetLastError) != 0, 1);
    OK(cudaGetLastError);
    IS(test(1, 1, 0, &result), 0);

    IS(test(1, 1, 1, &result), ILLEGAL);
    IS(CALL(cudaPeekAtLastError), ILLEGAL);
    if (recovers) {
        // The call returned the error, and `cudaGetLastError` returns it once, like any error.
        IS(CALL(cudaGetLastError), ILLEGAL);
        OK(cudaGetLastError);
        result = 0;
        IS(test(5, 6, 0, &result), 0);
        IS(result, 11);
        OK(cudaGetLastError);
        IS(test(1, 1, 1, &result), ILLEGAL);
        OK(cudaDeviceReset);
    } else {
        // The error is sticky.
        for (int turn = 0; turn < 3; turn++) {
            IS(CALL(cudaGetLastError), ILLEGAL);
            IS(CALL(cudaMalloc, &at, (size_t)256), ILLEGAL);
            IS(test(5, 6, 0, &result), ILLEGAL);
            IS(CALL(cudaDeviceSynchronize), ILLEGAL);
        }
        // The reset clears everything.
        OK(cudaDeviceReset);
    }
    OK(cudaGetLastError);
    result = 0;
    IS(test(5, 7, 0, &result), 0);
    IS(result, 12);
    // The reset returns the error of a trap that no call has returned yet.
    OK(cudaMalloc, &at, (size_t)256);
    OK(cudaDeviceSynchronize);
    int status = launch((void *)64, 1, 1);
    IS(status, 0);
    IS(CALL(cudaDeviceReset), ILLEGAL);
    result = 0;
    IS(test(5, 8, 0, &result), 0);
    IS(result, 13);
    if (failures) printf("%d wrong\n", failures);
    return failures != 0;
}
