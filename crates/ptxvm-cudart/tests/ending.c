// Calls of the runtime and the driver when a program, a thread or a library ends, and after `fork`. The first
// argument selects when. Each call prints its name and its status; `ending.rs` checks them.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *ptx =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .entry one(.param .u64 at) {\n"
    "  .reg .b64 %rd; .reg .b32 %r; ld.param.u64 %rd, [at]; mov.u32 %r, 1; st.global.u32 [%rd], %r; ret; }\n"
    ".visible .entry spin(.param .u64 at) {\n"
    "  .reg .b64 %rd; .reg .b32 %r; .reg .pred %p; ld.param.u64 %rd, [at];\n"
    "again: ld.volatile.global.u32 %r, [%rd]; setp.eq.u32 %p, %r, 0; @%p bra again; ret; }\n";

static void *cuda, *runtime;
static size_t memory, stream, event, module, one, spin, context;
static const char *mode;

typedef int (*function)(size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t);
typedef struct { unsigned x, y, z; } dim3;

static function find(const char *name) {
    void *found = dlsym(strncmp(name, "cuda", 4) && name[0] != '_' ? cuda : runtime, name);
    if (!found) { printf("%s missing\n", name); exit(9); }
    return (function)found;
}

#define CALL(name, ...) say(#name, find(#name)(__VA_ARGS__))
#define WORD(value) ((size_t)(value))

static void say(const char *name, int status) {
    printf("%s %d\n", name, status);
    fflush(stdout);
}

static int launch(size_t kernel, size_t in) {
    void *params[] = {&memory};
    return find("cuLaunchKernel")(kernel, 1, 1, 1, 1, 1, 1, 0, in, WORD(params), 0);
}

static void open_libraries(void) {
    cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    runtime = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!cuda || !runtime) { printf("dlopen: %s\n", dlerror()); exit(9); }
}

static void begin(void) {
    CALL(cudaMalloc, WORD(&memory), 256, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaStreamCreate, WORD(&stream), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaEventCreate, WORD(&event), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaMemset, memory, 0, 256, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuModuleLoadData, WORD(&module), WORD(ptx), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuModuleGetFunction, WORD(&one), module, WORD("one"), 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuModuleGetFunction, WORD(&spin), module, WORD("spin"), 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuCtxGetCurrent, WORD(&context), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaMemsetAsync_ptsz, memory, 0, 256, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuCtxPushCurrent_v2, context, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    say("launch", launch(one, stream));
    CALL(cudaStreamSynchronize, stream, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static void use(void) {
    unsigned value = 7;
    size_t more = 0, count = 0;
    int status = 0;
    float milliseconds;
    say("launch", launch(one, stream));
    CALL(cudaEventRecord, event, stream, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaMemcpy, WORD(&value), memory, 4, 2, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaMalloc, WORD(&more), 256, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaMemsetAsync_ptsz, memory, 0, 256, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaStreamSynchronize_ptsz, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuCtxPushCurrent_v2, context, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuCtxPopCurrent_v2, WORD(&count), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuCtxSetCurrent, context, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuStreamIsCapturing, stream, WORD(&status), 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaEventSynchronize, event, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaEventElapsedTime, WORD(&milliseconds), event, event, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaEventDestroy, event, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaStreamDestroy, stream, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaFree, more, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaFree, memory, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaDeviceSynchronize, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    dim3 size = {1, 1, 1}, grid, block;
    say("__cudaPushCallConfiguration",
        ((int (*)(dim3, dim3, size_t, size_t))find("__cudaPushCallConfiguration"))(size, size, 0, 0));
    CALL(__cudaPopCallConfiguration, WORD(&grid), WORD(&block), WORD(&more), WORD(&count), 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaGetLastError, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cuModuleUnload, module, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    printf("used\n");
    fflush(stdout);
}

static void late(void *nothing) {
    (void)nothing;
    use();
}

static void at_exit(void) { use(); }

__attribute__((destructor)) static void destructor(void) {
    if (mode && !strcmp(mode, "destructor")) use();
}

extern int __cxa_thread_atexit_impl(void (*)(void *), void *, void *);
extern void *__dso_handle;

static pthread_key_t key;

static void *thread(void *nothing) {
    if (!strcmp(mode, "thread")) __cxa_thread_atexit_impl(late, NULL, &__dso_handle);
    else pthread_setspecific(key, &key);
    begin();
    return nothing;
}

// A kernel runs on another thread during the fork, and until the parent ends it.
static int fork_while_busy(void) {
    unsigned yes = 1;
    begin();
    CALL(cudaMemset, memory, 0, 256, 0, 0, 0, 0, 0, 0, 0, 0);
    say("launch", launch(spin, stream));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        printf("child\n");
        use();
        exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    printf("parent\n");
    say("child", status);
    size_t other;
    CALL(cudaStreamCreateWithFlags, WORD(&other), 1, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    CALL(cudaMemcpyAsync, memory, WORD(&yes), 4, 1, other, 0, 0, 0, 0, 0, 0);
    CALL(cudaStreamSynchronize, stream, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    use();
    return 0;
}

static int is_mapped(const char *name) {
    char line[1000];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps)) found |= strstr(line, name) != NULL;
    fclose(maps);
    return found;
}

int main(int count, char **arguments) {
    mode = count > 1 ? arguments[1] : "";
    alarm(60);
    if (!strcmp(mode, "atexit")) atexit(at_exit);
    open_libraries();
    if (!strcmp(mode, "thread") || !strcmp(mode, "key")) {
        pthread_t other;
        pthread_key_create(&key, late);
        pthread_create(&other, NULL, thread, NULL);
        pthread_join(other, NULL);
        return 0;
    }
    if (!strcmp(mode, "fork")) return fork_while_busy();
    if (!strcmp(mode, "first")) {
        pid_t child = fork();
        int status = 0;
        if (child > 0) waitpid(child, &status, 0);
        begin();
        use();
        return status;
    }
    begin();
    if (!strcmp(mode, "dlclose")) {
        say("launch", launch(one, stream));
        dlclose(runtime);
        dlclose(cuda);
        say("unmapped", !is_mapped("libptxvm_cuda.so") || !is_mapped("libptxvm_cudart.so"));
        open_libraries();
        use();
    }
    return 0;
}
