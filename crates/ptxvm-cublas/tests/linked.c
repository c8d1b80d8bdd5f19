// A program linked with cuBLAS and cuBLASLt libraries that have symbol versions. It multiplies two matrices
// with each library and prints wrong results.
#include <stdio.h>
#include <stdlib.h>

typedef void *handle;
int cuInit(unsigned);
int cuMemAlloc_v2(void **, size_t);
int cuMemcpyHtoD_v2(void *, const void *, size_t);
int cuMemcpyDtoH_v2(void *, const void *, size_t);
int cublasCreate_v2(handle *);
int cublasDestroy_v2(handle);
int cublasSgemm_v2(handle, int, int, int, int, int, const float *, const float *, int, const float *, int,
                   const float *, float *, int);
const char *cublasGetStatusName(int);
int cublasLtMatmulDescCreate(handle *, int, int);
int cublasLtMatmulDescDestroy(handle);
int cublasLtMatrixLayoutCreate(handle *, int, unsigned long, unsigned long, long);
int cublasLtMatmul(handle, handle, const void *, const void *, handle, const void *, handle, const void *,
                   const void *, handle, void *, handle, const void *, void *, size_t, void *);

#define TRY(call) do { int status = (call); if (status) { printf("%s: %d\n", #call, status); return 1; } } while (0)

static int check(const char *name, float *device, const float *expected) {
    float found[4];
    TRY(cuMemcpyDtoH_v2(found, device, sizeof found));
    for (int i = 0; i < 4; i++) {
        if (found[i] != expected[i]) { printf("%s: %g at %d is not %g\n", name, found[i], i, expected[i]); return 1; }
    }
    return 0;
}

int main(void) {
    handle blas, operation, layout;
    void *a, *c;
    float values[4] = {1, 2, 3, 4}, squared[4] = {7, 10, 15, 22}, twice[4] = {14, 20, 30, 44}, one = 1, zero = 0;
    TRY(cublasCreate_v2(&blas));
    TRY(cuMemAlloc_v2(&a, sizeof values));
    TRY(cuMemAlloc_v2(&c, sizeof values));
    TRY(cuMemcpyHtoD_v2(a, values, sizeof values));
    TRY(cublasSgemm_v2(blas, 0, 0, 2, 2, 2, &one, a, 2, a, 2, &zero, c, 2));
    if (check("gemm", c, squared)) return 1;
    // A handle of one library is also a handle of the other.
    TRY(cublasLtMatmulDescCreate(&operation, 68, 0));
    TRY(cublasLtMatrixLayoutCreate(&layout, 0, 2, 2, 2));
    TRY(cublasLtMatmul(blas, operation, &one, a, layout, a, layout, &one, c, layout, c, layout, NULL, NULL, 0, NULL));
    if (check("matmul", c, twice)) return 1;
    TRY(cublasLtMatmulDescDestroy(operation));
    TRY(cublasDestroy_v2(blas));
    printf("well: %s\n", cublasGetStatusName(0));
    return 0;
}
