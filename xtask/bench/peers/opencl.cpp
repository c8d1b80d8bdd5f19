// A peer: OpenCL C on the CPU. Takes the first CPU device of any platform; arrays are used where they lie.
#define CL_TARGET_OPENCL_VERSION 120
#include "job.h"
#include <CL/cl.h>
#include <map>

struct OpenCl : Peer {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  std::vector<cl_mem> buffers;
  std::map<std::string, cl_kernel> kernels;

  std::string start() {
    cl_platform_id platforms[16];
    cl_uint count = 0;
    if (clGetPlatformIDs(16, platforms, &count) != CL_SUCCESS)
      return "no OpenCL platform";
    for (cl_uint i = 0; i < count && !device; i++)
      if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, nullptr) != CL_SUCCESS)
        device = nullptr;
    if (!device)
      return "no OpenCL device is a CPU";
    cl_int error;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
    if (error == CL_SUCCESS)
      queue = clCreateCommandQueue(context, device, 0, &error);
    return said("clCreateCommandQueue", error);
  }

  static std::string said(const char *what, cl_int error) {
    return error == CL_SUCCESS ? "" : std::string(what) + " answers " + std::to_string(error);
  }

  void close() {
    for (auto &kernel : kernels)
      clReleaseKernel(kernel.second);
    for (cl_mem buffer : buffers)
      clReleaseMemObject(buffer);
    if (program)
      clReleaseProgram(program);
    kernels.clear();
    buffers.clear();
    program = nullptr;
  }

  std::string open(Job &job) override {
    close();
    const char *text = job.text.c_str();
    cl_int error;
    program = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
    if (error == CL_SUCCESS)
      error = clBuildProgram(program, 1, &device, "", nullptr, nullptr);
    if (error != CL_SUCCESS) {
      char log[2000] = "";
      clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, sizeof log - 1, log, nullptr);
      fprintf(stderr, "%s\n", log);
      return said("clBuildProgram", error);
    }
    for (Array &array : job.arrays) {
      buffers.push_back(clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, array.bytes, array.data, &error));
      if (error != CL_SUCCESS)
        return said("clCreateBuffer", error);
    }
    for (Step &step : job.steps)
      if (!kernels.count(step.kernel)) {
        cl_kernel kernel = clCreateKernel(program, step.kernel.c_str(), &error);
        if (error != CL_SUCCESS)
          return said("clCreateKernel", error);
        kernels[step.kernel] = kernel;
      }
    return "";
  }

  void fill(Job &job, size_t a) override {
    clEnqueueWriteBuffer(queue, buffers[a], CL_TRUE, 0, job.arrays[a].bytes, job.arrays[a].data, 0, nullptr, nullptr);
  }

  void fetch(Job &job, size_t a) override {
    clEnqueueReadBuffer(queue, buffers[a], CL_TRUE, 0, job.arrays[a].bytes, job.arrays[a].data, 0, nullptr, nullptr);
  }

  std::string run(Job &job) override {
    for (Step &step : job.steps) {
      cl_kernel kernel = kernels[step.kernel];
      cl_uint index = 0;
      for (Arg &arg : step.args) {
        if (arg.kind == 'a')
          clSetKernelArg(kernel, index++, sizeof(cl_mem), &buffers[arg.array]);
        else if (arg.kind == 'i')
          clSetKernelArg(kernel, index++, sizeof arg.integer, &arg.integer);
        else
          clSetKernelArg(kernel, index++, sizeof arg.real, &arg.real);
      }
      size_t global[3];
      for (int d = 0; d < 3; d++)
        global[d] = step.grid[d] * step.block[d];
      cl_int error = clEnqueueNDRangeKernel(queue, kernel, 3, nullptr, global, step.block, 0, nullptr, nullptr);
      if (error != CL_SUCCESS)
        return said("clEnqueueNDRangeKernel", error);
    }
    return said("clFinish", clFinish(queue));
  }
};

int main() {
  OpenCl peer;
  std::string why = peer.start();
  char name[200] = "";
  if (why.empty())
    clGetDeviceInfo(peer.device, CL_DEVICE_NAME, sizeof name - 1, name, nullptr);
  printf("%s\n", why.empty() ? (std::string("ready ") + name).c_str() : why.c_str());
  fflush(stdout);
  return why.empty() ? serve(peer) : 1;
}
