// Declarations that a program compiled at run time finds without including anything. Each thread stores the
// number of its first failed test, or 0.
#define TEST(number, condition)                                                                                       \
  if (result == 0 && !(condition))                                                                                    \
  result = number

__constant__ int table[2] = {3, 4};
__device__ float4 wide;

template <class T> __device__ T identity(T x) { return x; }

extern "C" __global__ void __launch_bounds__(32) all(unsigned *data) {
  unsigned result = 0, lane = threadIdx.x;
  dim3 size = blockDim;
  uint3 place = threadIdx;
  TEST(1, data != NULL && size.x == 32 && size.y == 1 && place.x == lane && gridDim.z == 1 && warpSize == 32);
  float4 v = make_float4(1, 2, 3, 4);
  char2 c = make_char2(-1, 1);
  TEST(2, v.w == 4 && c.x == -1 && sizeof(float4) == 16 && alignof(float4) == 16 && sizeof(uchar3) == 3);
  TEST(3, min(3, 4u) == 3 && max(2.0f, 3.0f) == 3.0f && min(-1ll, 1ll) == -1 && max(1.0, 2.0f) == 2.0);
  TEST(4, abs(-3) == 3 && abs(-2.5f) == 2.5f && fabs(-1.0) == 1.0 && abs(-5ll) == 5);
  TEST(5, sqrt(16.0f) == 4.0f && sqrt(16) == 4.0 && rsqrtf(4.0f) == 0.5f && cbrt(27.0) == 3.0);
  TEST(6, pow(2.0f, 3) == 8.0f && pow(2.0, 10.0) == 1024.0 && powf(3.0f, 2.0f) == 9.0f && pow(2, 3) == 8.0);
  TEST(7, floor(-1.5) == -2.0 && ceilf(1.2f) == 2.0f && rint(2.5) == 2.0 && round(2.5) == 3.0 && trunc(-1.5f) == -1.0f);
  TEST(8, fma(2.0f, 3.0f, 1.0f) == 7.0f && fmod(7.0, 4.0) == 3.0 && remainder(7.0, 4.0) == -1.0 && hypot(3.0, 4.0) == 5.0);
  TEST(9, isnan(nanf("")) && isinf(1.0 / 0.0 * 1.0) && isfinite(1.0f) && signbit(-0.0) && !isnan(1));
  TEST(10, __float_as_int(1.0f) == 0x3f800000 && __hiloint2double(0x3ff00000, 0) == 1.0 && __double2hiint(2.0) == 0x40000000);
  TEST(11, __float2int_rd(-1.5f) == -2 && __double2uint_rz(3.9) == 3 && __int2float_rn(16777217) == 16777216.0f);
  TEST(12, __fadd_ru(1.0f, 1e-10f) > 1.0f && __fadd_rd(1.0f, 1e-10f) == 1.0f && __dmul_rn(2.0, 3.0) == 6.0);
  TEST(13, __clz(1) == 31 && __ffs(8) == 4 && __popcll(~0ull) == 64 && __brev(1u) == 0x80000000u && __clz(0) == 32);
  TEST(14, __byte_perm(0x33221100, 0x77665544, 0x6240) == 0x66224400 && __umulhi(1u << 31, 4) == 2 && __mul24(3, -4) == -12);
  TEST(15, __hadd(3, 6) == 4 && __rhadd(3, 6) == 5 && __sad(3, -4, 1) == 8 && __usad(3u, 4u, 1u) == 2);
  TEST(16, __shfl_sync(~0u, lane, 5) == 5 && __shfl_up_sync(~0u, 1.5, 1) == 1.5 && __any_sync(~0u, lane == 3));
  TEST(17, __ballot_sync(~0u, lane < 4) == 15 && __activemask() != 0 && __all_sync(~0u, 1));
  TEST(18, __funnelshift_l(0x80000000u, 1u, 1) == 3 && __ldg(&data[32]) == __ldg(data + 32));
  TEST(19, table[1] == 4 && identity(3) == 3);
  TEST(20, __isGlobal(data) && !__isShared(data));
  TEST(21, (int)sizeof(size_t) == 8 && sizeof(long long) == 8);
  double whole;
  int exponent;
  TEST(22, modf(2.25, &whole) == 0.25 && whole == 2.0 && frexp(8.0, &exponent) == 0.5 && exponent == 4 && ldexp(0.75f, 2) == 3.0f);
  float s, cs;
  sincosf(0.0f, &s, &cs);
  TEST(23, s == 0.0f && cs == 1.0f && __expf(0.0f) == 1.0f && __logf(1.0f) == 0.0f && __fdividef(6.0f, 3.0f) == 2.0f);
  TEST(24, nextafterf(1.0f, 2.0f) > 1.0f && ilogb(8.0) == 3 && copysign(2.0, -1.0) == -2.0 && llrint(2.5) == 2 && lround(2.5f) == 3);
  TEST(25, norm3df(2.0f, 3.0f, 6.0f) == 7.0f && fdim(3.0, 1.0) == 2.0 && exp10(2.0) == 100.0 && exp2(3) == 8.0);
  __syncwarp();
  __threadfence();
  atomicMax(&data[33], lane);
  atomicInc(&data[34], 100);
  atomicOr(&data[35], 1u << lane);
  atomicSub(&data[36], 1u);
  atomicExch(&data[37], 7u);
  atomicCAS(&data[38], 0u, 9u);
  float *sum = (float *)&data[40];
  atomicAdd(sum, 0.5f);
  __syncthreads();
  TEST(30, data[33] == 31 && data[34] == 32 && data[35] == ~0u && data[36] == -32u && data[37] == 7 && data[38] == 9);
  TEST(31, *sum == 16.0f);
#if __CUDA_ARCH__ >= 600
  atomicAdd((double *)&data[42], 0.25);
  atomicAdd_block(&data[44], 1u);
  __syncthreads();
  TEST(32, *(double *)&data[42] == 8.0 && data[44] == 32);
#endif
#if __CUDA_ARCH__ >= 610
  TEST(33, __dp4a(0x01020304, 0x01010101, 5) == 15);
#endif
#if __CUDA_ARCH__ >= 700
  TEST(34, __match_any_sync(~0u, lane & 1) == (lane & 1 ? 0xaaaaaaaau : 0x55555555u));
#endif
#if __CUDA_ARCH__ >= 800
  TEST(35, __reduce_add_sync(~0u, 1u) == 32 && __reduce_xor_sync(~0u, 1u << lane) == ~0u);
  TEST(38, __reduce_min_sync(~0u, (int)lane - 5) == -5 && __reduce_max_sync(~0u, lane) == 31);
#endif
#if !defined(__CUDACC_RTC__) || !defined(__CUDACC__) || __CUDACC_VER_MAJOR__ < 12 || !defined(__CUDA_ARCH__)
  result = 99;
#endif
  unsigned *heap = (unsigned *)malloc(16);
  TEST(36, heap != NULL);
  memset(heap, 0, 16);
  memcpy(heap, &lane, sizeof(lane));
  TEST(37, heap[0] == lane && heap[3] == 0);
  free(heap);
  assert(lane < 32);
  if (result == 99)
    printf("lane %u\n", lane);
  data[lane] = result;
}
