// A program or library with a runtime inside, and with device code that its constructor registers. A macro
// selects the variant: LIBRARY; LINKED (a program linked with that library); LOADS (a program without a
// runtime that loads a library); none of them (a program with a runtime that loads the library named as its
// argument).
#include <dlfcn.h>
#include <stdio.h>

#if defined(LINKED)
int work(void);
int main(void) { return work(); }
#elif defined(LOADS)
int main(int count, char **arguments) {
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) { printf("dlopen: %s\n", dlerror()); return 9; }
    return ((int (*)(void))dlsym(library, "work"))();
}
#else
int cudaGetDeviceCount(int *);
int cudaMalloc(void **, size_t);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaLaunchKernel(const void *, unsigned long long, unsigned, unsigned long long, unsigned, void **, size_t, void *);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);
int cudaOfLater(int);
int cudaOfLaterToo(int);
int cudaRuntimeGetVersion(int *);
void **__cudaRegisterFatBinary(void *);
void __cudaRegisterFunction(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *);

// The program's own function, although its name begins like the runtime's.
int cudaCheckOfMine(int status) { return status + 1; }

static const char *ptx =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 at, .param .u32 what) {\n"
    "  .reg .b64 %rd; .reg .b32 %r<3>; ld.param.u64 %rd, [at]; ld.param.u32 %r1, [what];\n"
    "  ld.global.u32 %r2, [%rd]; add.u32 %r2, %r2, %r1; st.global.u32 [%rd], %r2; ret; }\n";

static void stub(void) {}

__attribute__((constructor)) static void registers(void) {
    void **container = __cudaRegisterFatBinary((void *)ptx);
    __cudaRegisterFunction(container, (const char *)stub, "add", "add", -1, 0, 0, 0, 0, 0);
}

// Adds on the device.
static int use(const char *who) {
    unsigned value = 40, more = 2;
    int count = 0, version = 0;
    void *memory = 0;
    void *arguments[] = {&memory, &more};
    int status = cudaGetDeviceCount(&count);
    if (!status) status = cudaMalloc(&memory, 4);
    if (!status) status = cudaMemcpy(memory, &value, 4, 1);
    // A dim3 is passed in two registers.
    if (!status) status = cudaLaunchKernel((void *)stub, 1ull | 1ull << 32, 1, 1ull | 1ull << 32, 1, arguments, 0, 0);
    if (!status) status = cudaDeviceSynchronize();
    if (!status) status = cudaMemcpy(&value, memory, 4, 2);
    printf("%s: status %d, %d device, %u\n", who, status, count, value);
    status = cudaRuntimeGetVersion(&version);
    printf("short: %d, %d\n", status, version >= 12000);
    int later = cudaOfLater(7), other = cudaOfLaterToo(7);
    printf("later: %d %d %d\n", later, other, cudaGetLastError());
    printf("mine: %d\n", cudaCheckOfMine(4));
    fflush(stdout);
    return 0;
}

#ifdef LIBRARY
// Uses the device before the `dlopen` of this library returns.
__attribute__((constructor)) static void at_once(void) { use("constructor"); }
int work(void) { return use("library"); }
#else
int main(int count, char **arguments) {
    if (count < 2) return use("program");
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) { printf("dlopen: %s\n", dlerror()); return 9; }
    return ((int (*)(void))dlsym(library, "work"))();
}
#endif
#endif
