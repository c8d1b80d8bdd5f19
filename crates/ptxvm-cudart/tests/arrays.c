// Copies of bytes and rows to, from and between arrays. Prints wrong results; exits with 0 if there are none.
#include "support/runtime.h"
#include <string.h>

int main(void) {
    open_runtime();
    unsigned from[12], to[12] = {0}, *device;
    for (int i = 0; i < 12; i++) from[i] = 100 + i;
    int channels[] = {32, 0, 0, 0, 1};
    void *first, *second, *stream;
    OK(cudaStreamCreateWithFlags, &stream, 1);
    OK(cudaMalloc, &device, sizeof from);
    // Three rows of four words.
    OK(cudaMallocArray, &first, channels, (size_t)4, (size_t)3, 0);
    OK(cudaMallocArray, &second, channels, (size_t)4, (size_t)3, 0);
    OK(cudaMemcpyToArray, first, (size_t)0, (size_t)0, from, sizeof from, 1);
    OK(cudaMemcpyFromArray, to, first, (size_t)0, (size_t)0, sizeof to, 2);
    for (int i = 0; i < 12; i++) IS(to[i], from[i]);
    // From the third word of the second row into the third row.
    OK(cudaMemcpyFromArray, to, first, (size_t)8, (size_t)1, (size_t)16, 2);
    for (int i = 0; i < 4; i++) IS(to[i], from[6 + i]);
    OK(cudaMemcpyFromArrayAsync, device, first, (size_t)0, (size_t)2, (size_t)16, 3, stream);
    OK(cudaMemcpyToArrayAsync, second, (size_t)0, (size_t)0, device, (size_t)16, 3, stream);
    OK(cudaStreamSynchronize, stream);
    OK(cudaMemcpyArrayToArray, second, (size_t)0, (size_t)1, first, (size_t)4, (size_t)0, (size_t)16, 3);
    OK(cudaMemcpy2DArrayToArray, second, (size_t)8, (size_t)2, first, (size_t)0, (size_t)1, (size_t)8, (size_t)1, 3);
    OK(cudaMemcpyFromArray, to, second, (size_t)0, (size_t)0, sizeof to, 2);
    unsigned right[12] = {108, 109, 110, 111, 101, 102, 103, 104, 0, 0, 104, 105};
    for (int i = 0; i < 12; i++) IS(to[i], right[i]);
    // Beyond the end, and in the wrong direction.
    IS(CALL(cudaMemcpyToArray, first, (size_t)4, (size_t)2, from, (size_t)16, 1), 1);
    IS(CALL(cudaMemcpyToArray, first, (size_t)0, (size_t)0, from, (size_t)16, 2), 21);
    OK(cudaCtxResetPersistingL2Cache, 0);
    return failures != 0;
}
