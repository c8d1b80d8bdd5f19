// Texture and surface objects and references of the runtime. Prints wrong results; exits with 0 if there are none.
#include "support/runtime.h"
#include <string.h>

static const char *text =
    ".version 6.4\n.target sm_70\n.address_size 64\n"
    ".visible .global .texref image;\n"
    ".visible .global .surfref plane;\n"
    ".visible .entry fetch(.param .u64 out) {\n"
    ".reg .b32 %r<3>; .reg .f32 %f<5>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
    "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [image, {%r1}]; st.global.f32 [%rd3], %f1; ret; }\n"
    // The same in two dimensions with coordinates of floating point, in the middle of row 1.
    ".visible .entry sample(.param .u64 out) {\n"
    ".reg .b32 %r<3>; .reg .f32 %f<8>; .reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd3, %rd1, %rd2;\n"
    "cvt.rn.f32.u32 %f5, %r1; add.f32 %f5, %f5, 0f3F000000; mov.f32 %f6, 0f3FC00000;\n"
    "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [image, {%f5, %f6}]; st.global.f32 [%rd3], %f1; ret; }\n"
    ".visible .entry store(.param .u32 value) {\n"
    ".reg .b32 %r<3>;\n"
    "ld.param.u32 %r1, [value]; mov.u32 %r2, 4; sust.b.2d.b32.trap [plane, {%r2, 1}], {%r1}; ret; }\n";

typedef struct { int bits[4], kind; } channels;
typedef struct { int normalized, filter, address[3]; channels format; int srgb; unsigned anisotropy; int level_filter; float bias, clamp[2]; int trilinear, reserved[14]; } texture_reference;
typedef struct { int kind, pad; union { void *array; struct { void *at; channels format; size_t bytes; } linear; struct { void *at; channels format; size_t width, height, pitch; } rows; size_t words[7]; } of; } resource;
typedef struct { int address[3], filter, read, srgb; float border[4]; int normalized; unsigned anisotropy; int level_filter; float bias, clamp[2]; int trilinear, seamless; } sampling;
typedef struct { unsigned x, y, z; } dim3;

static texture_reference image = {0, 0, {1, 1, 1}};
static channels plane;
static char fetch, sample, store;

static void launch(void *stub, void *value) {
    void *values[] = {value};
    OK(cudaLaunchKernel, stub, (dim3){1, 1, 1}, (dim3){stub == &store ? 1 : 4, 1, 1}, values, (size_t)0, NULL);
    OK(cudaDeviceSynchronize);
}

int main(void) {
    open_runtime();
    IS(sizeof image, 124);
    void *(*reg)(const void *) = (void *(*)(const void *))find("__cudaRegisterFatBinary");
    void *binary = reg(text);
    CALL(__cudaRegisterFunction, binary, &fetch, "fetch", "fetch", -1, NULL, NULL, NULL, NULL, NULL);
    CALL(__cudaRegisterFunction, binary, &sample, "sample", "sample", -1, NULL, NULL, NULL, NULL, NULL);
    CALL(__cudaRegisterFunction, binary, &store, "store", "store", -1, NULL, NULL, NULL, NULL, NULL);
    CALL(__cudaRegisterTexture, binary, &image, NULL, "image", 2, 0, 0);
    CALL(__cudaRegisterSurface, binary, &plane, NULL, "plane", 2, 0);

    channels single = {{32, 0, 0, 0}, 2};
    float numbers[] = {0.5f, 1.5f, 2.5f, 3.5f, 4.5f, 5.5f, 6.5f, 7.5f}, back[4] = {0};
    float *device, *out;
    size_t offset = 99;
    OK(cudaMalloc, &device, sizeof numbers);
    OK(cudaMalloc, &out, sizeof back);
    OK(cudaMemcpy, device, numbers, sizeof numbers, 1);
    IS(CALL(cudaGetTextureAlignmentOffset, &offset, &image), 19);
    OK(cudaBindTexture, &offset, &image, device + 2, &single, (size_t)16);
    IS(offset, 0);
    OK(cudaGetTextureAlignmentOffset, &offset, &image);
    launch(&fetch, &out);
    OK(cudaMemcpy, back, out, sizeof back, 2);
    for (int i = 0; i < 4; i++) IS(back[i] * 2, numbers[2 + i] * 2);
    // Rows, with coordinates that are clamped.
    OK(cudaBindTexture2D, NULL, &image, device, &single, (size_t)2, (size_t)4, (size_t)8);
    launch(&sample, &out);
    OK(cudaMemcpy, back, out, sizeof back, 2);
    float rows[] = {2.5f, 3.5f, 3.5f, 3.5f};
    for (int i = 0; i < 4; i++) IS(back[i] * 2, rows[i] * 2);
    // An array whose bytes are read as fractions, with linear filtering: halfway between texels it is their mean.
    void *array;
    channels bytes = {{8, 0, 0, 0}, 1};
    unsigned char texels[] = {0, 255, 51, 102, 0, 255, 51, 102};
    OK(cudaMallocArray, &array, &bytes, (size_t)4, (size_t)2, 0);
    OK(cudaMemcpyToArray, array, (size_t)0, (size_t)0, texels, sizeof texels, 1);
    CALL(__cudaRegisterTexture, binary, &image, NULL, "image", 2, 1, 0);
    OK(cudaBindTextureToArray, &image, array, &bytes);
    launch(&sample, &out);
    OK(cudaMemcpy, back, out, sizeof back, 2);
    int fifths[] = {0, 5, 1, 2};
    for (int i = 0; i < 4; i++) IS(back[i] * 5 + 0.25f, fifths[i]);
    void *found = NULL;
    OK(cudaGetTextureReference, &found, &image);
    IS(found, &image);
    OK(cudaUnbindTexture, &image);
    IS(CALL(cudaGetTextureAlignmentOffset, &offset, &image), 19);
    IS(CALL(cudaBindTexture, &offset, &single, device, &single, (size_t)16), 18);
    image.srgb = 1;
    IS(CALL(cudaBindTextureToArray, &image, array, &bytes), 801);

    // A surface reference.
    channels words = {{32, 0, 0, 0}, 1};
    unsigned value = 77, plain[8] = {0};
    void *surface;
    OK(cudaMallocArray, &surface, &words, (size_t)4, (size_t)2, 2);
    OK(cudaBindSurfaceToArray, &plane, surface, &words);
    launch(&store, &value);
    OK(cudaMemcpyFromArray, plain, surface, (size_t)0, (size_t)0, sizeof plain, 2);
    IS(plain[5], 77);
    IS(CALL(cudaBindSurfaceToArray, &image, surface, &words), 37);

    // Objects return what they were created with.
    resource linear = {2, 0, {.linear = {device, single, sizeof numbers}}}, seen;
    sampling how = {{0, 1, 2}, 0, 0, 0, {0}, 0, 4, 0, 0, {0, 0}, 1, 1}, same;
    unsigned long long object, other;
    OK(cudaCreateTextureObject, &object, &linear, &how, NULL);
    memset(&seen, 0xff, sizeof seen);
    OK(cudaGetTextureObjectResourceDesc, &seen, object);
    IS(seen.kind, 2);
    IS(seen.of.linear.at, device);
    IS(seen.of.linear.format.bits[0], 32);
    IS(seen.of.linear.format.kind, 2);
    IS(seen.of.linear.bytes, sizeof numbers);
    OK(cudaGetTextureObjectTextureDesc, &same, object);
    IS(memcmp(&same, &how, sizeof how), 0);
    IS(CALL(cudaGetTextureObjectResourceViewDesc, &seen, object), 1);
    resource pitched = {3, 0, {.rows = {device, {{16, 16, 0, 0}, 0}, 4, 2, 16}}};
    how.read = 1;
    how.normalized = 1;
    OK(cudaCreateTextureObject, &other, &pitched, &how, NULL);
    OK(cudaGetTextureObjectResourceDesc, &seen, other);
    IS(seen.kind, 3);
    IS(seen.of.rows.at, device);
    IS(memcmp(&seen.of.rows.format, &pitched.of.rows.format, sizeof(channels)), 0);
    IS(seen.of.rows.width, 4);
    IS(seen.of.rows.height, 2);
    IS(seen.of.rows.pitch, 16);
    OK(cudaGetTextureObjectTextureDesc, &same, other);
    IS(memcmp(&same, &how, sizeof how), 0);
    resource drawn = {0, 0, {.array = surface}};
    OK(cudaCreateSurfaceObject, &object, &drawn);
    OK(cudaGetSurfaceObjectResourceDesc, &seen, object);
    IS(seen.of.array, surface);
    IS(CALL(cudaGetSurfaceObjectResourceDesc, &seen, other), 1);
    return failures != 0;
}
