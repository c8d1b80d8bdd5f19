#!/usr/bin/env bash
# Makes every NAME.ptx anew from NAME.cu, here or in the folder ZOO=../zoo. The benchmarks read the committed .ptx and need no clang.
# The prelude in place of the headers of CUDA is the one of the fixtures.
set -euo pipefail
cd "$(dirname "$0")/${ZOO:-.}"
CLANG=${CLANG:-clang-22}
for source in ${1:-*.cu}; do
  extra=$(sed -n 's|^// flags: ||p' "$source")
  # shellcheck disable=SC2086 # flags are words
  "$CLANG" -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_70 --cuda-feature=+ptx64 -std=c++17 \
    -fdeclspec -Wall -Wno-unused-function -S -O3 $extra -I ../../../tests/fixtures/kernels "$source" -o "${source%.cu}.ptx"
done
