// Written by coefficients.py, which describes the contents.
#pragma once
// (exp(x) - 1 - x) / x^2 on [-0.34657359027997264, 0.34657359027997264]: 1.4e-18
#define PTXVM_EXP 0x1.0000000000000p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.11111111100dfp-7, 0x1.6c16c16c162d6p-10, 0x1.a01a01abe62ddp-13, 0x1.a01a01a6d7808p-16, 0x1.71de02375656cp-19, 0x1.27e4db67b4303p-22, 0x1.af4ddd84882fep-26, 0x1.1f72fc730b4ffp-29
// (exp(x) - 1 - x) / x^2 on [-0.34657359027997264, 0.34657359027997264]: 1.4e-9
#define PTXVM_EXP_SHORT 0x1.0000000b8f62bp-1, 0x1.5555555a78232p-3, 0x1.5554e9114ecf9p-5, 0x1.1110e0f726534p-7, 0x1.6d431504c53d3p-10, 0x1.a124e3f154d32p-13
// (sin(x) - x) / x^3 by x^2 on [0.0, 0.6168502750680849]: 1.2e-20
#define PTXVM_SIN -0x1.5555555555555p-3, 0x1.1111111111110p-7, -0x1.a01a01a019938p-13, 0x1.71de3a546095bp-19, -0x1.ae645412c560cp-26, 0x1.61217f0b800d5p-33, -0x1.ab17d404de5b3p-41
// (sin(x) - x) / x^3 by x^2 on [0.0, 0.6168502750680849]: 2.8e-11
#define PTXVM_SIN_SHORT -0x1.555555545e0acp-3, 0x1.11110def2e1c9p-7, -0x1.a013a793b98cep-13, 0x1.6dbe0838a06e9p-19
// (cos(x) - 1 + x^2/2) / x^4 by x^2 on [0.0, 0.6168502750680849]: 6.4e-22
#define PTXVM_COS 0x1.5555555555555p-5, -0x1.6c16c16c16c16p-10, 0x1.a01a01a019d0ap-16, -0x1.27e4fb7712d65p-22, 0x1.1eed8deb97a97p-29, -0x1.9394ba0cd6ed5p-37, 0x1.ab785b00b4646p-45
// (cos(x) - 1 + x^2/2) / x^4 by x^2 on [0.0, 0.6168502750680849]: 2.3e-12
#define PTXVM_COS_SHORT 0x1.5555555502cf4p-5, -0x1.6c16bf54e7232p-10, 0x1.a015c47d920acp-16, -0x1.25244e23e6e3ap-22
// (atanh(x) / x - 1) / x^2 by x^2 on [0.0, 0.029437251522859413]: 7.0e-21
#define PTXVM_LOG 0x1.5555555555555p-2, 0x1.9999999999998p-3, 0x1.2492492492959p-3, 0x1.c71c71c64c8ccp-4, 0x1.745d17d35328cp-4, 0x1.3b137b347f3c2p-4, 0x1.111d273ca8a70p-4, 0x1.debedbffa1d9ep-5, 0x1.e6afc55fa9490p-5
// (atanh(x) / x - 1) / x^2 by x^2 on [0.0, 0.029437251522859413]: 5.8e-10
#define PTXVM_LOG_SHORT 0x1.5555554bb2b2cp-2, 0x1.9999eb5d84f14p-3, 0x1.245c438323e9ap-3, 0x1.ddced7078dd3ap-4
// (atanh(x) / x - 1 - x^2/3) / x^4 by x^2 on [0.0, 0.029437251522859413]: 9.4e-19
#define PTXVM_LOG_REST 0x1.999999999999ap-3, 0x1.2492492492521p-3, 0x1.c71c71c6eaa8dp-4, 0x1.745d177a8f200p-4, 0x1.3b1395d4f9e5fp-4, 0x1.1118c74823a2ep-4, 0x1.df7ce9a6bcccbp-5, 0x1.e02d197c00c78p-5
// (atan(x) / x - 1) / x^2 by x^2 on [0.0, 0.07179676972449082]: 3.5e-21
#define PTXVM_ATAN -0x1.5555555555555p-2, 0x1.9999999999999p-3, -0x1.24924924923a6p-3, 0x1.c71c71c7034a0p-4, -0x1.745d173ad3268p-4, 0x1.3b13ae6c44ea5p-4, -0x1.11109e4f75edep-4, 0x1.e1ca40f2ce7b6p-5, -0x1.ad95813896ac6p-5, 0x1.753128ec498c1p-5, -0x1.f3e5c9a666f46p-6
// (atan(x) / x - 1) / x^2 by x^2 on [0.0, 0.07179676972449082]: 2.4e-10
#define PTXVM_ATAN_SHORT -0x1.555555511a472p-2, 0x1.9999828db3e48p-3, -0x1.2488307054050p-3, 0x1.c3fd8d542ec68p-4, -0x1.411374494cc11p-4
// (asin(x) / x - 1) / x^2 by x^2 on [0.0, 0.25]: 2.8e-22
#define PTXVM_ASIN 0x1.5555555555555p-3, 0x1.3333333333333p-4, 0x1.6db6db6db6dd2p-5, 0x1.f1c71c71c51c8p-6, 0x1.6e8ba2e959486p-6, 0x1.1c4ec4ce5edf7p-6, 0x1.c999a102d9adep-7, 0x1.7a86e4c02a39dp-7, 0x1.3fe85421a1741p-7, 0x1.127bcc5d7b15ep-7, 0x1.e6ee29c5a2410p-8, 0x1.75d0fe427ea3ap-8, 0x1.2d74c86c45ea9p-7, -0x1.a650d4cec58ccp-8, 0x1.0208dc5976d84p-5, -0x1.1ff0ce3d8bce9p-5, 0x1.13ea2abace3cfp-5
// (asin(x) / x - 1) / x^2 by x^2 on [0.0, 0.25]: 1.5e-11
#define PTXVM_ASIN_SHORT 0x1.55555554ee47bp-3, 0x1.333334ceb6520p-4, 0x1.6db5cfb6af282p-5, 0x1.f208eb1ddd0fbp-6, 0x1.6a9e3262c37dbp-6, 0x1.3c5053c2afce1p-6, 0x1.64b97e009bd03p-8, 0x1.e0231588b1e55p-6
// erf(x) / x - 1 by x^2 on [0.0, 1.0]: 2.2e-21
#define PTXVM_ERF 0x1.06eba8214db69p-3, -0x1.812746b0379e7p-2, 0x1.ce2f21a042bdep-4, -0x1.b82ce312889bap-6, 0x1.565bcd0e6502dp-8, -0x1.c02db3feeb579p-11, 0x1.f9a326c233146p-14, -0x1.f4d2561aeafd4p-17, 0x1.b9e6509b9867dp-20, -0x1.5f6d925a0bc7ap-23, 0x1.fc4356498c2d9p-27, -0x1.4e607b41a6416p-30, 0x1.7f072188e194dp-34, -0x1.29b9f1b3df556p-38
// (1 + 2x) exp(x^2) erfc(x) by (x - 4) / (x + 4) on [-1.0, 1.0]: 4.0e-19
#define PTXVM_ERFCX 0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a28ep-3, 0x1.f7f5df66fd7bep-7, 0x1.16ecefcfa533fp-4, -0x1.9ddb23c3e9106p-4, 0x1.7fee004e13186p-4, -0x1.0fb06dfe48b0ep-4, 0x1.3079edf668f38p-5, -0x1.0962388548d8dp-6, 0x1.49c6728db72cdp-8, -0x1.8d4a9990c5199p-11, -0x1.a1df2ad41dddep-13, 0x1.3be032de511d3p-13, -0x1.9958a8c635c6bp-16, -0x1.788189c990557p-17, 0x1.7f235478fdcf6p-18, 0x1.385bb6c82456ap-22, -0x1.badf24e872985p-21, 0x1.5305495fa5317p-24, 0x1.d8d5b12b4bdebp-24, -0x1.78888d24fa8a1p-26, -0x1.f9443297365a1p-27, 0x1.117f492198859p-28, 0x1.ebb009434f4efp-30, -0x1.2d277a41632e3p-31, -0x1.2dbbbb75b6682p-33, 0x1.7d604a7f621f4p-35
// 1 / gamma(1 + x) on [-0.5, 0.5]: 3.0e-21
#define PTXVM_RGAMMA 0x1.0000000000000p+0, 0x1.2788cfc6fb619p-1, -0x1.4fcf4026afa2ep-1, -0x1.5815e8fa27048p-5, 0x1.5512320b43fc6p-3, -0x1.59af103c34090p-5, -0x1.3b4af284850c8p-7, 0x1.d919c527f5d97p-8, -0x1.317112cd7a27ep-10, -0x1.c364fe6e95eafp-13, 0x1.0c8a78883068ap-13, -0x1.51ce8b226bb1bp-16, -0x1.4fac55cca0e60p-20, 0x1.30251d452a251p-20, -0x1.b9b5b65df228fp-23, 0x1.a3ff2ef43665cp-28, 0x1.5f9d2c01100f6p-28, -0x1.42325eabf5d31p-30
// lgamma(1 + x) / x on [-0.3, 0.5]: 2.7e-21
#define PTXVM_LGAMMA_1 -0x1.2788cfc6fb619p-1, 0x1.a51a6625307d3p-1, -0x1.9a4d55beab2d7p-2, 0x1.151322ac7d846p-2, -0x1.a8b9c17aa6165p-3, 0x1.5b40cb100c66fp-3, -0x1.2703a1dce96dcp-3, 0x1.010b36af6d4efp-3, -0x1.c806706d999e2p-4, 0x1.9a01e39274185p-4, -0x1.748c331596079p-4, 0x1.556ad447876cfp-4, -0x1.3b1d93ff7fd2bp-4, 0x1.24970d379919bp-4, -0x1.1113b5ea2d86ep-4, 0x1.fffd03264004fp-5, -0x1.e1cced7b09d77p-5, 0x1.c73cb32c52e1fp-5, -0x1.b0380a7c5414dp-5, 0x1.9a0123298ce4dp-5, -0x1.7f0a944c557bdp-5, 0x1.67f4f41cbc3bdp-5, -0x1.7495115c249c0p-5, 0x1.9dc7db68f0d08p-5, -0x1.8061a8fc33456p-5, 0x1.c6ef541b561afp-6, -0x1.e69e10e2bce20p-8
// lgamma(2 + x) / x on [-0.5, 0.5]: 1.3e-22
#define PTXVM_LGAMMA_2 0x1.b0ee6072093cep-2, 0x1.4a34cc4a60fa6p-2, -0x1.13e001a557607p-4, 0x1.51322ac7d8483p-6, -0x1.e404fc218f5f1p-8, 0x1.7add6eadb6db0p-9, -0x1.38ac5c2bf8f79p-10, 0x1.0b36af862779cp-11, -0x1.d3fd4c76b079bp-13, 0x1.a127b10065589p-14, -0x1.78de5be61b1aap-15, 0x1.580dcb206e6a6p-16, -0x1.3cbc929c9b9a3p-17, 0x1.2598404a22dedp-18, -0x1.11b38202343f3p-19, 0x1.005435e98d027p-20, -0x1.e24029d3e50c0p-22, 0x1.c9b2c129fcfb7p-23, -0x1.b18a9e2280df3p-24, 0x1.80e98328e1056p-25, -0x1.6e55fdba877b1p-26, 0x1.04df7c55ec7f9p-26, -0x1.f3a6d608d5e35p-28
// log(2), its inverse, log10(e), log2(10), pi/2 and 2/pi, each as a sum of decreasing terms.
#define PTXVM_LN2 0x1.62e42fefa4000p-1, -0x1.8432a1b0e2000p-43, -0x1.8cff81a12a000p-85
#define PTXVM_LN2_2 0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56
#define PTXVM_LOG2_E 0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56
#define PTXVM_LOG10_E 0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57
#define PTXVM_LOG10_2 0x1.34413509f8000p-2, -0x1.80433b83b6000p-44, 0x1.9ac0b7c918000p-85
#define PTXVM_LOG2_10 0x1.a934f0979a371p+1, 0x1.7f2495fb7fa6dp-53
#define PTXVM_LN10 0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53
#define PTXVM_HALF_PI 0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110
// The bits of 2/pi after the binary point, from the first.
#define PTXVM_TWO_OVER_PI 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x6492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d
