// What a launch costs.
#include "prelude.cuh"

KERNEL empty() {}
