// Calls functions of the runtime, whose names are read from standard input, with wrong arguments: null,
// implausible numbers, unmapped memory, freed device memory, addresses that were never allocated, random
// structures and sizes, and handles of other kinds. Prints each name before its first call, and results that
// must not occur.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

typedef int (*function)(size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t, size_t,
                        size_t, size_t, size_t, size_t);

static void *runtime;
static size_t memory, freed, stream, event, array;
// Structures whose first words are random in each call, with room for results.
static size_t given[512];
static unsigned long state = 0x9e3779b97f4a7c15;

static unsigned long next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static function find(const char *name) {
    void *found = dlsym(runtime, name);
    if (!found) { printf("%s is not exported\n", name); exit(9); }
    return (function)found;
}

static int simple(const char *name, size_t a, size_t b) {
    return find(name)(a, b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static void begin(void) {
    size_t large = 0;
    int channels[] = {32, 0, 0, 0, 2};
    simple("cudaDeviceReset", 0, 0);
    simple("cudaMalloc", (size_t)&memory, 1 << 16);
    simple("cudaMalloc", (size_t)&large, 64 << 20);
    simple("cudaFree", large, 0);
    freed = large + (60 << 20);
    simple("cudaStreamCreate", (size_t)&stream, 0);
    simple("cudaEventCreate", (size_t)&event, 0);
    find("cudaMallocArray")((size_t)&array, (size_t)channels, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
}

static size_t word(int structures) {
    size_t values[] = {
        0, 1, 2, 3, 4, 8, 16, 64, 255, 0x1000, 0xfff8, 1 << 16, 0x7fffffff, 0x80000000, 0xffffffff, 1UL << 33, 1UL << 47, 1UL << 48,
        1UL << 60, (size_t)-1, (size_t)-8, 0x0ff000000000, memory, memory + 4096, memory + 1, freed, memory + (9UL << 30),
        stream, event, array, 0x100010, structures ? (size_t)given : 0, structures ? (size_t)(given + 32) : 0,
    };
    return values[next() % (sizeof values / sizeof values[0])];
}

int main(int count, char **arguments) {
    char name[100];
    int turns = count > 1 ? atoi(arguments[1]) : 300;
    long calls = 0;
    alarm(120);
    runtime = dlopen("libcudart.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!runtime) { printf("dlopen: %s\n", dlerror()); return 9; }
    while (fgets(name, sizeof name, stdin)) {
        name[strcspn(name, "\n")] = 0;
        printf("%s\n", name);
        fflush(stdout);
        function called = find(name);
        // These return nothing, a text, or a number that is not a status.
        int no_status = strstr(name, "Name") || strstr(name, "ErrorString") || strstr(name, "ChannelDesc") || strstr(name, "LastError") ||
                        strstr(name, "InitModule") || strstr(name, "Register") || strstr(name, "Unregister");
        // Function pointers and the values of a launch must be valid by the caller's promise.
        int structures = !strstr(name, "HostFunc") && !strstr(name, "Callback") && !strstr(name, "LaunchKernel") && !strstr(name, "LaunchCooperative");
        begin();
        for (int turn = 0; turn < turns; turn++) {
            size_t a[16];
            for (int i = 0; i < 64; i++) given[i] = word(structures);
            for (int i = 0; i < 16; i++) a[i] = word(structures);
            // In every second turn most arguments are valid.
            if (turn % 2) for (int i = 0; i < 16; i++) if (next() % 4) a[i] = (size_t[]){memory, stream, 64, 1}[next() % 4];
            struct timespec before, after;
            clock_gettime(CLOCK_MONOTONIC, &before);
            int status = called(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
            clock_gettime(CLOCK_MONOTONIC, &after);
            calls++;
            // A panic becomes 999.
            if (!no_status && (status < 0 || status >= 999)) printf("! %s gave %d in turn %d\n", name, status, turn);
            if (after.tv_sec - before.tv_sec > 5) printf("! %s took too long in turn %d\n", name, turn);
        }
    }
    printf("! calls %ld\n", calls);
    return 0;
}
