#include "backends/webgpu/driver.h"

#include <dlfcn.h>

#include <cstdlib>

#include <fmt/core.h>

namespace rlx::webgpu {
namespace {

struct Library {
  void* handle;
  std::string lacks;  // the first function that it does not have

  template <class Function>
  void find_optional(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle, name));
  }
  template <class Function>
  void find(const char* name, Function& function) {
    find_optional(name, function);
    if (!function && lacks.empty()) lacks = name;
  }
};

Driver functions_of(Library& library) {
  Driver driver{};
#define FIND(name) library.find("wgpu" #name, driver.name)
  FIND(CreateInstance);
  FIND(InstanceRequestAdapter);
  FIND(InstanceProcessEvents);
  FIND(AdapterGetInfo);
  FIND(AdapterInfoFreeMembers);
  FIND(AdapterGetLimits);
  FIND(AdapterHasFeature);
  FIND(AdapterRequestDevice);
  FIND(DeviceGetQueue);
  FIND(DeviceCreateBuffer);
  FIND(DeviceCreateBindGroup);
  FIND(DeviceCreateBindGroupLayout);
  FIND(DeviceCreatePipelineLayout);
  FIND(DeviceCreateShaderModule);
  FIND(DeviceCreateComputePipeline);
  FIND(DeviceCreateCommandEncoder);
  FIND(DeviceCreateQuerySet);
  FIND(DeviceDestroy);
  FIND(CommandEncoderBeginComputePass);
  FIND(CommandEncoderCopyBufferToBuffer);
  FIND(CommandEncoderClearBuffer);
  FIND(CommandEncoderResolveQuerySet);
  FIND(CommandEncoderFinish);
  FIND(ComputePassEncoderSetPipeline);
  FIND(ComputePassEncoderSetBindGroup);
  FIND(ComputePassEncoderDispatchWorkgroups);
  FIND(ComputePassEncoderEnd);
  FIND(QueueSubmit);
  FIND(QueueWriteBuffer);
  FIND(QueueOnSubmittedWorkDone);
  FIND(BufferMapAsync);
  FIND(BufferGetConstMappedRange);
  FIND(BufferUnmap);
  FIND(InstanceRelease);
  FIND(AdapterRelease);
  FIND(BufferRelease);
  FIND(BindGroupRelease);
  FIND(BindGroupLayoutRelease);
  FIND(PipelineLayoutRelease);
  FIND(ShaderModuleRelease);
  FIND(ComputePipelineRelease);
  FIND(ComputePassEncoderRelease);
  FIND(CommandEncoderRelease);
  FIND(CommandBufferRelease);
  FIND(QuerySetRelease);
  FIND(QueueRelease);
  FIND(DeviceRelease);
#undef FIND
  library.find_optional("wgpuInstanceEnumerateAdapters", driver.InstanceEnumerateAdapters);
  library.find_optional("wgpuDevicePoll", driver.DevicePoll);
  library.find_optional("wgpuQueueGetTimestampPeriod", driver.QueueGetTimestampPeriod);
  return driver;
}

}  // namespace

std::vector<std::string> driver_files() {
  if (const char* const file = std::getenv("RLX_WGPU")) return {file};
#ifdef __APPLE__
  return {"libwgpu_native.dylib", "libwebgpu_dawn.dylib"};
#else
  return {"libwgpu_native.so", "libwebgpu_dawn.so"};
#endif
}

std::shared_ptr<const Driver> open_driver(const std::vector<std::string>& files, std::string& reason) {
  for (const std::string& file : files) {
    Library library{dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), {}};
    if (!library.handle) {
      if (reason.empty())
        reason = fmt::format("{} (scripts/fetch_wgpu.sh FOLDER gets wgpu-native; RLX_WGPU names the file of a library)", dlerror());
      continue;
    }
    const Driver driver = functions_of(library);
    if (library.lacks.empty()) return reason.clear(), std::make_shared<const Driver>(driver);  // open as long as the process runs
    reason = fmt::format("{} is there, but lacks {}", file, library.lacks);
    return nullptr;
  }
  return nullptr;
}

}  // namespace rlx::webgpu
