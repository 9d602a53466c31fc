#include "backends/opencl/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include <fmt/core.h>

namespace rlx::opencl {
namespace {

struct Library {
  void* handle;
  std::string lacks;  // the first function that it does not have

  template <class Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (!function && lacks.empty()) lacks = name;
  }
};

Driver functions_of(Library& library) {
  Driver driver{};
  const auto find = [&](const char* name, auto& function) { library.find(name, function); };
  find("clGetPlatformIDs", driver.GetPlatformIDs);
  find("clGetPlatformInfo", driver.GetPlatformInfo);
  find("clGetDeviceIDs", driver.GetDeviceIDs);
  find("clGetDeviceInfo", driver.GetDeviceInfo);
  find("clCreateContext", driver.CreateContext);
  find("clCreateCommandQueue", driver.CreateCommandQueue);
  find("clReleaseContext", driver.ReleaseContext);
  find("clReleaseCommandQueue", driver.ReleaseCommandQueue);
  find("clCreateBuffer", driver.CreateBuffer);
  find("clReleaseMemObject", driver.ReleaseMemObject);
  find("clSetMemObjectDestructorCallback", driver.SetMemObjectDestructorCallback);
  find("clCreateProgramWithSource", driver.CreateProgramWithSource);
  find("clCreateProgramWithBinary", driver.CreateProgramWithBinary);
  find("clBuildProgram", driver.BuildProgram);
  find("clGetProgramInfo", driver.GetProgramInfo);
  find("clGetProgramBuildInfo", driver.GetProgramBuildInfo);
  find("clReleaseProgram", driver.ReleaseProgram);
  find("clCreateKernel", driver.CreateKernel);
  find("clGetKernelInfo", driver.GetKernelInfo);
  find("clGetKernelWorkGroupInfo", driver.GetKernelWorkGroupInfo);
  find("clSetKernelArg", driver.SetKernelArg);
  find("clReleaseKernel", driver.ReleaseKernel);
  find("clEnqueueNDRangeKernel", driver.EnqueueNDRangeKernel);
  find("clEnqueueWriteBuffer", driver.EnqueueWriteBuffer);
  find("clEnqueueReadBuffer", driver.EnqueueReadBuffer);
  find("clEnqueueCopyBuffer", driver.EnqueueCopyBuffer);
  find("clEnqueueFillBuffer", driver.EnqueueFillBuffer);
  find("clGetEventInfo", driver.GetEventInfo);
  find("clGetEventProfilingInfo", driver.GetEventProfilingInfo);
  find("clWaitForEvents", driver.WaitForEvents);
  find("clReleaseEvent", driver.ReleaseEvent);
  find("clFinish", driver.Finish);
  return driver;
}

}  // namespace

std::shared_ptr<const Driver> open_driver(const char* file, std::string& reason) {
  // PoCL compiles a kernel anew for each size of its groups, and for small grids: two to three times what its one general form takes, which
  // was measured to be as fast.
  setenv("POCL_WORK_GROUP_SPECIALIZATION", "0", 0);
  Library library{dlopen(file, RTLD_NOW | RTLD_LOCAL), {}};
  if (!library.handle) return reason = fmt::format("{} (Debian: apt-get install ocl-icd-libopencl1, and a driver)", dlerror()), nullptr;
  const Driver driver = functions_of(library);
  if (!library.lacks.empty()) return reason = fmt::format("{} is there, but lacks {} of OpenCL 1.2", file, library.lacks), nullptr;
  return std::make_shared<const Driver>(driver);  // the library stays open for as long as the process runs
}

}  // namespace rlx::opencl
