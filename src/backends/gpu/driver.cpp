#include "backends/gpu/driver.h"

#include <dlfcn.h>

#include <array>

#include <fmt/core.h>

namespace rlx::gpu {
namespace {

struct Library {
  Vendor vendor;
  void* handle = nullptr;
  std::string file, lacks;  // the first function that it does not have

  Library(Vendor of, const std::vector<std::string>& files, std::string& reason) : vendor(of) {
    for (const std::string& name : files) {
      handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
      file = name;
      if (handle) return;
      if (reason.empty()) reason = dlerror();
    }
  }
  template <class Entry>
  void find(const char* cuda, const char* rocm, Entry& entry) {
    const char* const name = vendor == Vendor::cuda ? cuda : rocm;
    entry = reinterpret_cast<Entry>(dlsym(handle, name));
    if (!entry && lacks.empty()) lacks = name;
  }
};

void find_functions(Library& library, Driver& driver) {
  const auto find = [&](const char* cuda, const char* rocm, auto& entry) { library.find(cuda, rocm, entry); };
  find("cuInit", "hipInit", driver.Init);
  find("cuDriverGetVersion", "hipDriverGetVersion", driver.GetVersion);
  find("cuDeviceGetCount", "hipGetDeviceCount", driver.GetDeviceCount);
  find("cuDeviceGet", "hipDeviceGet", driver.GetDevice);
  find("cuDeviceGetName", "hipDeviceGetName", driver.GetName);
  find("cuDeviceTotalMem_v2", "hipDeviceTotalMem", driver.GetTotalMemory);
  find("cuDeviceGetAttribute", "hipDeviceGetAttribute", driver.GetAttribute);
  find("cuDevicePrimaryCtxRetain", "hipDevicePrimaryCtxRetain", driver.RetainContext);
  find("cuDevicePrimaryCtxRelease_v2", "hipDevicePrimaryCtxRelease", driver.ReleaseContext);
  find("cuCtxSetCurrent", "hipCtxSetCurrent", driver.SetCurrent);
  find("cuDeviceGetDefaultMemPool", "hipDeviceGetDefaultMemPool", driver.GetPool);
  find("cuMemPoolSetAttribute", "hipMemPoolSetAttribute", driver.SetPoolAttribute);
  find("cuMemGetInfo_v2", "hipMemGetInfo", driver.GetFreeMemory);
  find("cuMemAllocAsync", "hipMallocAsync", driver.Allocate);
  find("cuMemFreeAsync", "hipFreeAsync", driver.Free);
  find("cuMemHostAlloc", "hipHostMalloc", driver.AllocateOnHost);
  find("cuMemFreeHost", "hipHostFree", driver.FreeOnHost);
  find("cuMemcpyHtoDAsync_v2", "hipMemcpyHtoDAsync", driver.Upload);
  find("cuMemcpyDtoHAsync_v2", "hipMemcpyDtoHAsync", driver.Download);
  find("cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync", driver.Copy);
  find("cuMemsetD8Async", "hipMemsetD8Async", driver.Fill);
  find("cuMemcpyPeerAsync", "hipMemcpyPeerAsync", driver.CopyFromPeer);
  find("cuStreamCreate", "hipStreamCreateWithFlags", driver.CreateStream);
  find("cuStreamDestroy_v2", "hipStreamDestroy", driver.DestroyStream);
  find("cuStreamSynchronize", "hipStreamSynchronize", driver.Synchronize);
  find("cuStreamWaitEvent", "hipStreamWaitEvent", driver.WaitFor);
  find("cuEventCreate", "hipEventCreateWithFlags", driver.CreateEvent);
  find("cuEventDestroy_v2", "hipEventDestroy", driver.DestroyEvent);
  find("cuEventRecord", "hipEventRecord", driver.RecordEvent);
  find("cuEventSynchronize", "hipEventSynchronize", driver.AwaitEvent);
  find("cuEventElapsedTime", "hipEventElapsedTime", driver.ElapsedTime);
  find("cuModuleLoadData", "hipModuleLoadData", driver.LoadModule);
  find("cuModuleUnload", "hipModuleUnload", driver.UnloadModule);
  find("cuModuleGetFunction", "hipModuleGetFunction", driver.GetFunction);
  find("cuFuncSetAttribute", "hipFuncSetAttribute", driver.SetFunctionAttribute);
  find("cuLaunchKernel", "hipModuleLaunchKernel", driver.Launch);
  find("cuGraphCreate", "hipGraphCreate", driver.CreateGraph);
  find("cuGraphDestroy", "hipGraphDestroy", driver.DestroyGraph);
  find("cuGraphAddKernelNode", "hipGraphAddKernelNode", driver.AddKernelNode);
  find("cuGraphInstantiate_v2", "hipGraphInstantiate", driver.Instantiate);
  find("cuGraphExecDestroy", "hipGraphExecDestroy", driver.DestroyInstance);
  find("cuGraphExecKernelNodeSetParams", "hipGraphExecKernelNodeSetParams", driver.SetKernelNode);
  find("cuGraphLaunch", "hipGraphLaunch", driver.LaunchGraph);
  find("cuGetErrorName", "hipDrvGetErrorName", driver.GetErrorName);
  find("cuGetErrorString", "hipDrvGetErrorString", driver.GetErrorText);
  driver.EncodeBoxes = reinterpret_cast<decltype(driver.EncodeBoxes)>(dlsym(library.handle, "cuTensorMapEncodeTiled"));
}

void find_functions(Library& library, Compiler& compiler) {
  const auto find = [&](const char* cuda, const char* rocm, auto& entry) { library.find(cuda, rocm, entry); };
  find("nvrtcVersion", "hiprtcVersion", compiler.GetVersion);
  find("nvrtcCreateProgram", "hiprtcCreateProgram", compiler.Create);
  find("nvrtcDestroyProgram", "hiprtcDestroyProgram", compiler.Destroy);
  find("nvrtcCompileProgram", "hiprtcCompileProgram", compiler.Compile);
  find("nvrtcGetProgramLogSize", "hiprtcGetProgramLogSize", compiler.GetLogBytes);
  find("nvrtcGetProgramLog", "hiprtcGetProgramLog", compiler.GetLog);
  find("nvrtcGetCUBINSize", "hiprtcGetCodeSize", compiler.GetBinaryBytes);
  find("nvrtcGetCUBIN", "hiprtcGetCode", compiler.GetBinary);
  find("nvrtcGetErrorString", "hiprtcGetErrorString", compiler.GetErrorText);
}

constexpr Attributes of_cuda{.units = 16, .major = 75, .minor = 76, .pools = 115};
constexpr Attributes of_rocm{.units = 63, .major = 23, .minor = 61, .pools = 88};

/// The library stays open for as long as the process runs.
template <class Functions>
std::shared_ptr<const Functions> functions_of(Vendor vendor, const std::vector<std::string>& files, std::string_view versions,
                                              std::string& reason) {
  Library library(vendor, files, reason);
  if (!library.handle) return nullptr;
  reason.clear();
  Functions functions{};
  functions.vendor = vendor;
  find_functions(library, functions);
  if (library.lacks.empty()) return std::make_shared<const Functions>(functions);
  reason = fmt::format("{} is there, but lacks {} (needed: {})", library.file, library.lacks, versions);
  return nullptr;
}

}  // namespace

std::string Driver::code_name(Code code) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (GetErrorName(code, &name) != 0 || !name) return fmt::format("code {}", code);
  if (GetErrorText(code, &text) != 0 || !text) return fmt::format("{} ({})", name, code);
  return fmt::format("{} ({}): {}", name, code, text);
}

std::shared_ptr<const Driver> open_driver(Vendor vendor, const std::vector<std::string>& files, std::string& reason) {
  const bool is_cuda = vendor == Vendor::cuda;
  const auto found = functions_of<Driver>(vendor, files, is_cuda ? "a driver for CUDA 11.2 or newer" : "ROCm 5.6 or newer", reason);
  if (!found) return nullptr;
  Driver driver = *found;
  driver.attributes = is_cuda ? of_cuda : of_rocm;
  return std::make_shared<const Driver>(driver);
}

std::shared_ptr<const Compiler> open_compiler(Vendor vendor, const std::vector<std::string>& files, std::string& reason) {
  return functions_of<Compiler>(vendor, files, vendor == Vendor::cuda ? "NVRTC 11.2 or newer" : "ROCm 5.6 or newer", reason);
}

std::vector<std::string> driver_files(Vendor vendor) {
  if (vendor == Vendor::cuda) return {"libcuda.so.1"};
  return {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"};
}

std::vector<std::string> compiler_files(Vendor vendor, int driver_version) {
  if (vendor == Vendor::cuda)
    return {fmt::format("libnvrtc.so.{}", driver_version / 1000), "libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"};
  std::vector<std::string> files{"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so"};
  for (std::string& file : driver_files(vendor)) files.push_back(std::move(file));  // HIP 5 has it inside
  return files;
}

}  // namespace rlx::gpu
