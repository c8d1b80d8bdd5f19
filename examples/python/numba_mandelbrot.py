"""numba-cuda: the Mandelbrot set, one thread for each pixel, compared with the same function on the host."""

import numpy as np
from numba import config, cuda

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # the picture is small


def steps(x, y, limit):
    """How many steps the point takes to leave the circle of radius 2."""
    a, b = 0.0, 0.0
    for step in range(limit):
        a, b = a * a - b * b + x, 2.0 * a * b + y
        if a * a + b * b > 4.0:
            return step
    return limit


on_device = cuda.jit(device=True)(steps)


@cuda.jit
def mandelbrot(picture, limit):
    row, column = cuda.grid(2)
    if row < picture.shape[0] and column < picture.shape[1]:
        picture[row, column] = on_device(column / 40 - 2, row / 20 - 1, limit)


on_gpu = cuda.to_device(np.zeros((41, 121), np.int32))
mandelbrot[(6, 8), (8, 16)](on_gpu, 50)
picture = on_gpu.copy_to_host()
expected = [[steps(column / 40 - 2, row / 20 - 1, 50) for column in range(121)] for row in range(41)]
# Contracted multiplications and additions round differently, which may change the count of single points.
print(f"{np.mean(picture == expected):.0%} of the pixels are as on the host")
assert np.mean(picture == expected) > 0.99
for row in picture[::4, ::2]:
    print("".join(" .:-=+*#%@"[min(9, steps * 10 // 51)] for steps in row).rstrip())
