#pragma OPENCL FP_CONTRACT OFF
KERNEL mandelbrot(__global uchar *image, int width, int height, float x0, float y0, float step, int limit) {
  int px = get_global_id(0), py = get_global_id(1);
  if (px >= width || py >= height)
    return;
  float cx = x0 + px * step, cy = y0 + py * step;
  float x = 0.0f, y = 0.0f;
  int i = 0;
  while (i < limit) {
    float xx = x * x, yy = y * y;
    if (xx + yy > 4.0f)
      break;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
    i++;
  }
  image[py * width + px] = (uchar)i;
}
