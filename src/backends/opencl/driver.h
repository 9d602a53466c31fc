#pragma once
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>

namespace rlx::opencl {

/// The functions of OpenCL 1.2 that are used, of the loader that this machine has. Nothing is linked, so that one binary runs without it.
struct Driver {
  decltype(&clGetPlatformIDs) GetPlatformIDs;
  decltype(&clGetPlatformInfo) GetPlatformInfo;
  decltype(&clGetDeviceIDs) GetDeviceIDs;
  decltype(&clGetDeviceInfo) GetDeviceInfo;
  decltype(&clCreateContext) CreateContext;
  decltype(&clCreateCommandQueue) CreateCommandQueue;
  decltype(&clReleaseContext) ReleaseContext;
  decltype(&clReleaseCommandQueue) ReleaseCommandQueue;
  decltype(&clCreateBuffer) CreateBuffer;
  decltype(&clReleaseMemObject) ReleaseMemObject;
  decltype(&clSetMemObjectDestructorCallback) SetMemObjectDestructorCallback;
  decltype(&clCreateProgramWithSource) CreateProgramWithSource;
  decltype(&clCreateProgramWithBinary) CreateProgramWithBinary;
  decltype(&clBuildProgram) BuildProgram;
  decltype(&clGetProgramInfo) GetProgramInfo;
  decltype(&clGetProgramBuildInfo) GetProgramBuildInfo;
  decltype(&clReleaseProgram) ReleaseProgram;
  decltype(&clCreateKernel) CreateKernel;
  decltype(&clGetKernelInfo) GetKernelInfo;
  decltype(&clGetKernelWorkGroupInfo) GetKernelWorkGroupInfo;
  decltype(&clSetKernelArg) SetKernelArg;
  decltype(&clReleaseKernel) ReleaseKernel;
  decltype(&clEnqueueNDRangeKernel) EnqueueNDRangeKernel;
  decltype(&clEnqueueWriteBuffer) EnqueueWriteBuffer;
  decltype(&clEnqueueReadBuffer) EnqueueReadBuffer;
  decltype(&clEnqueueCopyBuffer) EnqueueCopyBuffer;
  decltype(&clEnqueueFillBuffer) EnqueueFillBuffer;
  decltype(&clGetEventInfo) GetEventInfo;
  decltype(&clGetEventProfilingInfo) GetEventProfilingInfo;
  decltype(&clWaitForEvents) WaitForEvents;
  decltype(&clReleaseEvent) ReleaseEvent;
  decltype(&clFinish) Finish;
};

/// Opens a loader by the name of its file; null, and why in `reason`, where it is not there or lacks a function.
std::shared_ptr<const Driver> open_driver(const char* file, std::string& reason);

}  // namespace rlx::opencl
