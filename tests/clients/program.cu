// A C++ program for the CUDA runtime: everything that it prints was checked on the host.
#include <cuda_runtime.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                             \
  do {                                                                                          \
    cudaError_t error = (call);                                                                 \
    if (error != cudaSuccess) {                                                                 \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorName(error));   \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)
#define EXPECT(what)                                                                            \
  do {                                                                                          \
    if (!(what)) {                                                                              \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                        \
      exit(1);                                                                                  \
    }                                                                                           \
  } while (0)

__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int counter;

template <typename T>
__global__ void polynomial(T *out, const T *in, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = weights[0] + in[i] * (weights[1] + in[i] * (weights[2] + in[i] * weights[3]));
}

__global__ void total(const int *in, int *out, int n) {
  extern __shared__ int part[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(out, part[0]);
  if (i == 0) atomicAdd(&counter, 1);
}

struct Pair {
  int first;
  double second;
  char text[12];
};

__global__ void by_value(Pair pair, dim3 shape, double *out) {
  out[0] = pair.first + pair.second + pair.text[2];
  out[1] = shape.x * 100 + shape.y * 10 + shape.z;
}

__global__ void hello() { printf("hello from thread %d of block %d\n", threadIdx.x, blockIdx.x); }

__global__ void sample(cudaTextureObject_t texture, float *out) {
  out[threadIdx.x] = tex2D<float>(texture, threadIdx.x % 4 + 0.5f, threadIdx.x / 4 + 0.5f);
}

__global__ void wild(int *at) { at[1 << 28] = 1; }

static void CUDART_CB note(void *flag) { *static_cast<int *>(flag) = 1; }

int main() {
  int count = 0, device = -1;
  CHECK(cudaGetDeviceCount(&count));
  EXPECT(count == 1);
  CHECK(cudaSetDevice(0));
  CHECK(cudaGetDevice(&device));
  EXPECT(device == 0);
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, 0));
  auto attribute = [](cudaDeviceAttr which) {
    int value = -1;
    CHECK(cudaDeviceGetAttribute(&value, which, 0));
    return value;
  };
  EXPECT(prop.warpSize == 32 && strlen(prop.name) > 0 && prop.totalGlobalMem > (1 << 20));
  EXPECT(prop.major == attribute(cudaDevAttrComputeCapabilityMajor));
  EXPECT(prop.maxThreadsDim[2] == attribute(cudaDevAttrMaxBlockDimZ));
  EXPECT(prop.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount));
  EXPECT((int)prop.sharedMemPerBlockOptin == attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  EXPECT(prop.memoryPoolsSupported == attribute(cudaDevAttrMemoryPoolsSupported));
  EXPECT(prop.unifiedFunctionPointers == attribute((cudaDeviceAttr)129));

  // Launches, constants, templates.
  const int n = 10000;
  std::vector<float> in(n), out(n);
  for (int i = 0; i < n; i++) in[i] = i % 17 - 8;
  float *a, *b;
  CHECK(cudaMalloc(&a, n * sizeof(float)));
  CHECK(cudaMalloc(&b, n * sizeof(float)));
  CHECK(cudaMemcpy(a, in.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  float other[4] = {5, -1, 2, 0.5};
  CHECK(cudaMemcpyToSymbol(weights, other, sizeof other));
  polynomial<<<(n + 255) / 256, 256>>>(b, a, n);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(out.data(), b, n * sizeof(float), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i++) EXPECT(out[i] == 5 + in[i] * (-1 + in[i] * (2 + in[i] * 0.5f)));
  cudaPointerAttributes what;
  CHECK(cudaPointerGetAttributes(&what, a));
  EXPECT(what.type == cudaMemoryTypeDevice && what.device == 0);

  // Streams, events, dynamic shared memory, variables.
  cudaStream_t stream;
  cudaEvent_t start, end;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&end));
  int *numbers, *sum, *pinned, flag = 0, result = 0;
  CHECK(cudaMallocHost(&pinned, n * sizeof(int)));
  long expected = 0;
  for (int i = 0; i < n; i++) expected += pinned[i] = i * 7 % 101;
  CHECK(cudaMallocAsync(&numbers, n * sizeof(int), stream));
  CHECK(cudaMalloc(&sum, sizeof(int)));
  CHECK(cudaEventRecord(start, stream));
  CHECK(cudaMemcpyAsync(numbers, pinned, n * sizeof(int), cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemsetAsync(sum, 0, sizeof(int), stream));
  total<<<(n + 127) / 128, 128, 128 * sizeof(int), stream>>>(numbers, sum, n);
  CHECK(cudaLaunchHostFunc(stream, note, &flag));
  CHECK(cudaMemcpyAsync(&result, sum, sizeof(int), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaEventRecord(end, stream));
  CHECK(cudaFreeAsync(numbers, stream));
  CHECK(cudaStreamSynchronize(stream));
  EXPECT(result == expected && flag == 1);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, start, end));
  EXPECT(milliseconds >= 0);
  CHECK(cudaMemcpyFromSymbol(&result, counter, sizeof result));
  EXPECT(result == 1);

  // Structures by value.
  double *values;
  CHECK(cudaMallocManaged(&values, 2 * sizeof(double)));
  by_value<<<1, 1>>>(Pair{3, 0.25, "abc"}, dim3(1, 2, 3), values);
  CHECK(cudaDeviceSynchronize());
  EXPECT(values[0] == 3.25 + 'c' && values[1] == 123);

  // Attributes and occupancy.
  cudaFuncAttributes attributes;
  CHECK(cudaFuncGetAttributes(&attributes, (const void *)total));
  EXPECT(attributes.maxThreadsPerBlock == 1024 && attributes.sharedSizeBytes == 0);
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, total, 128, 512));
  EXPECT(blocks > 0);

  // Rows, arrays, textures.
  float *pitched, texels[3][4], sampled[12];
  size_t pitch;
  CHECK(cudaMallocPitch(&pitched, &pitch, 4 * sizeof(float), 3));
  for (int y = 0; y < 3; y++)
    for (int x = 0; x < 4; x++) texels[y][x] = 10 * y + x;
  CHECK(cudaMemcpy2D(pitched, pitch, texels, 16, 16, 3, cudaMemcpyHostToDevice));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = pitched;
  resource.res.pitch2D.desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  resource.res.pitch2D.width = 4;
  resource.res.pitch2D.height = 3;
  resource.res.pitch2D.pitchInBytes = pitch;
  cudaTextureDesc how = {};
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  sample<<<1, 12>>>(texture, b);
  CHECK(cudaMemcpy(sampled, b, sizeof sampled, cudaMemcpyDeviceToHost));
  EXPECT(memcmp(sampled, texels, sizeof texels) == 0);
  CHECK(cudaDestroyTextureObject(texture));
  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  CHECK(cudaMallocArray(&array, &format, 4, 3));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, texels, 16, 16, 3, cudaMemcpyHostToDevice));
  resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  CHECK(cudaMemset(b, 0, sizeof sampled));
  sample<<<1, 12>>>(texture, b);
  CHECK(cudaMemcpy(sampled, b, sizeof sampled, cudaMemcpyDeviceToHost));
  EXPECT(memcmp(sampled, texels, sizeof texels) == 0);

  hello<<<1, 2>>>();
  CHECK(cudaDeviceSynchronize());

  // All but `sum`, so that memcheck finds no leak.
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
  for (void *memory : {(void *)a, (void *)b, (void *)values, (void *)pitched}) CHECK(cudaFree(memory));
  CHECK(cudaFreeHost(pinned));

  // Mistakes.
  hello<<<1, 5000>>>();
  EXPECT(cudaGetLastError() == cudaErrorInvalidConfiguration);
  EXPECT(cudaGetLastError() == cudaSuccess);
  EXPECT(cudaMemcpy(sum, &result, 4, (cudaMemcpyKind)9) == cudaErrorInvalidMemcpyDirection);
  EXPECT(cudaSetDevice(7) == cudaErrorInvalidDevice);
  (void)cudaGetLastError();
  wild<<<1, 1>>>(sum);
  const char *tool = getenv("PTXVM_TOOL");
  if (tool && strstr(tool, "memcheck")) {
    // It reports the access and leaves it out.
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(sum));
  } else {
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    EXPECT(cudaMalloc(&a, 4) == cudaErrorIllegalAddress);
  }
  puts("the program works");
}
