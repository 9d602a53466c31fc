#include "backends/opencl/device.h"

#include <algorithm>
#include <cstdio>

namespace rlx::opencl {
namespace {

std::string trimmed(std::string text) {
  text.resize(std::min(text.size(), text.find('\0')));
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

/// What `ask(bytes, pointer, needed)` answers as text; empty where it does not.
template <class Ask>
std::string text_of(const Ask& ask) {
  std::size_t bytes = 0;
  if (ask(std::size_t{0}, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string text(bytes, '\0');
  if (ask(bytes, text.data(), nullptr) != CL_SUCCESS) return {};
  return trimmed(std::move(text));
}

std::string platform_text(const Driver& driver, cl_platform_id platform, cl_platform_info what) {
  return text_of(
      [&](std::size_t bytes, void* text, std::size_t* needed) { return driver.GetPlatformInfo(platform, what, bytes, text, needed); });
}

std::string device_text(const Driver& driver, cl_device_id device, cl_device_info what) {
  return text_of(
      [&](std::size_t bytes, void* text, std::size_t* needed) { return driver.GetDeviceInfo(device, what, bytes, text, needed); });
}

/// A number of any width; 0 where the device does not say.
template <class Number>
std::int64_t device_number(const Driver& driver, cl_device_id device, cl_device_info what) {
  Number number{};
  return driver.GetDeviceInfo(device, what, sizeof number, &number, nullptr) == CL_SUCCESS ? static_cast<std::int64_t>(number) : 0;
}

DeviceFacts facts_of(const std::shared_ptr<const Driver>& opened, cl_platform_id platform, cl_device_id id) {
  const Driver& driver = *opened;
  const auto text = [&](cl_device_info what) { return device_text(driver, id, what); };
  const auto wide = [&](cl_device_info what) { return device_number<cl_ulong>(driver, id, what); };
  const auto narrow = [&](cl_device_info what) { return device_number<cl_uint>(driver, id, what); };
  const std::string extensions = " " + text(CL_DEVICE_EXTENSIONS) + " ";
  DeviceFacts facts;
  facts.driver = opened;
  facts.id = id;
  facts.title = text(CL_DEVICE_NAME);
  facts.platform = platform_text(driver, platform, CL_PLATFORM_NAME);
  facts.platform_version = platform_text(driver, platform, CL_PLATFORM_VERSION);
  facts.version = text(CL_DRIVER_VERSION);
  facts.is_cpu = (wide(CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  facts.has_f64 = wide(CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
  facts.has_f16 = extensions.find(" cl_khr_fp16 ") != std::string::npos;
  facts.divides_exactly = (wide(CL_DEVICE_SINGLE_FP_CONFIG) & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
  facts.memory = wide(CL_DEVICE_GLOBAL_MEM_SIZE);
  facts.largest_buffer = wide(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  facts.memory_is_hosts = device_number<cl_bool>(driver, id, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0;
  facts.local_bytes = wide(CL_DEVICE_LOCAL_MEM_SIZE);
  facts.local_is_memory = narrow(CL_DEVICE_LOCAL_MEM_TYPE) == CL_GLOBAL;
  facts.registers = narrow(CL_DEVICE_NATIVE_VECTOR_WIDTH_INT);
  facts.units = narrow(CL_DEVICE_MAX_COMPUTE_UNITS);
  facts.largest_group = device_number<std::size_t>(driver, id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  facts.clock_mhz = narrow(CL_DEVICE_MAX_CLOCK_FREQUENCY);
  return facts;
}

/// Whether it takes kernels in OpenCL C 1.2.
bool is_of_use(const Driver& driver, cl_device_id id) {
  int major = 0, minor = 0;
  const std::string version = device_text(driver, id, CL_DEVICE_VERSION);
  if (std::sscanf(version.c_str(), "OpenCL %d.%d", &major, &minor) != 2 || major * 10 + minor < 12) return false;
  return device_number<cl_bool>(driver, id, CL_DEVICE_AVAILABLE) != 0 &&
         device_number<cl_bool>(driver, id, CL_DEVICE_COMPILER_AVAILABLE) != 0;
}

std::vector<cl_platform_id> platforms_of(const Driver& driver, std::string& missing) {
  cl_uint count = 0;
  const cl_int code = driver.GetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(code == CL_SUCCESS ? count : 0);
  if (platforms.empty()) {
    missing = fmt::format("the loader finds no driver: {} (Debian: apt-get install pocl-opencl-icd, or that of the device's maker)",
                          code_name(code));
    return {};
  }
  driver.GetPlatformIDs(count, platforms.data(), nullptr);
  return platforms;
}

std::vector<cl_device_id> devices_of(const Driver& driver, cl_platform_id platform) {
  cl_uint count = 0;
  constexpr cl_device_type types = CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR;
  if (driver.GetDeviceIDs(platform, types, 0, nullptr, &count) != CL_SUCCESS) return {};
  std::vector<cl_device_id> devices(count);
  if (count > 0 && driver.GetDeviceIDs(platform, types, count, devices.data(), nullptr) != CL_SUCCESS) return {};
  return devices;
}

}  // namespace

Devices find_devices(const char* file) {
  Devices devices;
  const auto driver = open_driver(file, devices.missing);
  if (!driver) return devices;
  for (const cl_platform_id platform : platforms_of(*driver, devices.missing))
    for (const cl_device_id id : devices_of(*driver, platform)) {
      if (!is_of_use(*driver, id)) continue;
      devices.found.push_back(facts_of(driver, platform, id));
      devices.found.back().name = fmt::format("opencl:{}", devices.found.size() - 1);
    }
  if (devices.found.empty() && devices.missing.empty()) devices.missing = "no driver has a device that takes kernels in OpenCL C 1.2";
  return devices;
}

}  // namespace rlx::opencl
