// The runtime opened by a C test, calls of its functions by name, and checks of their results.
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *runtime;
static int failures;

// Opens the runtime by the name of its library, or ends the program.
static void open_named(const char *name) {
    runtime = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!runtime) { printf("dlopen: %s\n", dlerror()); exit(9); }
}

static void open_runtime(void) { open_named("libcudart.so.12"); }

// The address of a function, which must be exported.
static void *find(const char *name) {
    void *found = dlsym(runtime, name);
    if (!found) { printf("%s is not exported\n", name); exit(9); }
    return found;
}

// Calls a function that returns a status.
#define CALL(name, ...) ((int (*)())find(#name))(__VA_ARGS__)

// Calls a function with these parameter types.
#define TYPED(name, types, ...) ((int (*) types)find(#name))(__VA_ARGS__)

// Counts a failure unless both numbers are equal.
#define IS(found, right) \
    do { \
        long f = (long)(found), r = (long)(right); \
        if (f != r) { printf("line %d: expected %ld, found %ld\n", __LINE__, r, f); failures++; } \
    } while (0)

// Counts a failure unless a call succeeds.
#define OK(name, ...) \
    do { \
        int status = CALL(name, __VA_ARGS__); \
        if (status) { printf("line %d: %s returned %d\n", __LINE__, #name, status); failures++; } \
    } while (0)

// Ends the program unless both numbers are equal.
#define CHECK(right, found) \
    do { \
        int f = (found), r = (right); \
        if (f != r) { printf("line %d: expected %d, found %d\n", __LINE__, r, f); exit(1); } \
    } while (0)
