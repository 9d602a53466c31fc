#include "backends/opencl/programs.h"

#include <algorithm>

#include "lowering/object_cache.h"

namespace rlx::opencl {

struct BuiltProgram {
  BuiltProgram(const DeviceFacts& on, cl_program made) : device(on), handle(made) {}
  ~BuiltProgram() { device.driver->ReleaseProgram(handle); }
  BuiltProgram(const BuiltProgram&) = delete;
  BuiltProgram& operator=(const BuiltProgram&) = delete;

  cl_int build() const;
  std::string log() const;
  std::string binary() const;

  const DeviceFacts& device;
  cl_program handle;
};

namespace {

/// Denormal numbers are zeros, see Executable.
std::string options_for(const DeviceFacts& device) {
  std::string options = "-cl-std=CL1.2 -cl-denorms-are-zero -w";
  if (device.divides_exactly) options += " -cl-fp32-correctly-rounded-divide-sqrt";
  return options;
}

std::string key_of(const DeviceFacts& device, std::span<const KernelText* const> texts) {
  std::string key = fingerprint(device);
  for (const KernelText* text : texts) key += "\n" + text->text;
  return key;
}

}  // namespace

std::string fingerprint(const DeviceFacts& device) {
  return fmt::format("opencl; {}; {}; {}; {}; {}", device.platform, device.platform_version, device.title, device.version,
                     options_for(device));
}

cl_int BuiltProgram::build() const {
  return device.driver->BuildProgram(handle, 1, &device.id, options_for(device).c_str(), nullptr, nullptr);
}

std::string BuiltProgram::log() const {
  std::size_t bytes = 0;
  device.driver->GetProgramBuildInfo(handle, device.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
  std::string text(bytes, '\0');
  device.driver->GetProgramBuildInfo(handle, device.id, CL_PROGRAM_BUILD_LOG, bytes, text.data(), nullptr);
  text.resize(std::min(text.size(), text.find('\0')));
  text.erase(text.find_last_not_of(" \n") + 1);
  constexpr std::size_t most = 2000;
  if (text.size() > most) text.replace(most, std::string::npos, " ...");
  return text;
}

/// Empty where the driver gives none.
std::string BuiltProgram::binary() const {
  std::size_t bytes = 0;
  if (device.driver->GetProgramInfo(handle, CL_PROGRAM_BINARY_SIZES, sizeof bytes, &bytes, nullptr) != CL_SUCCESS) return {};
  std::string binary(bytes, '\0');
  char* into = binary.data();
  if (device.driver->GetProgramInfo(handle, CL_PROGRAM_BINARIES, sizeof into, static_cast<void*>(&into), nullptr) != CL_SUCCESS) return {};
  return binary;
}

LoadedKernel::LoadedKernel(const DeviceFacts& on, std::shared_ptr<const BuiltProgram> from, const KernelText& text)
    : device(on), program(std::move(from)), name(text.name), element_bytes(text.element_bytes) {
  cl_int code = CL_SUCCESS;
  handle = device.driver->CreateKernel(program->handle, name.c_str(), &code);
  check(device, code, "making kernel {}", name);
  cl_uint count = 0;
  check(device, device.driver->GetKernelInfo(handle, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr), "kernel {}", name);
  arguments = count;
  std::size_t items = 0;
  device.driver->GetKernelWorkGroupInfo(handle, device.id, CL_KERNEL_WORK_GROUP_SIZE, sizeof items, &items, nullptr);
  largest_group = std::max<std::int64_t>(static_cast<std::int64_t>(items), 1);
}

LoadedKernel::~LoadedKernel() { device.driver->ReleaseKernel(handle); }

std::vector<std::shared_ptr<const LoadedKernel>> Programs::load(std::span<const KernelText> texts, const std::filesystem::path& cache,
                                                                CompileCounters& counters) {
  return kernels_.load(texts, counters, [&](std::span<const KernelText* const> missing) {
    const auto program = program_of(missing, cache, counters);
    std::vector<std::shared_ptr<const LoadedKernel>> kernels;
    for (const KernelText* text : missing) kernels.push_back(std::make_shared<const LoadedKernel>(device_, program, *text));
    return kernels;
  });
}

std::shared_ptr<const BuiltProgram> Programs::program_of(std::span<const KernelText* const> texts, const std::filesystem::path& cache,
                                                         CompileCounters& counters) const {
  ObjectCache objects(cache);
  const std::string key = key_of(device_, texts);
  if (const auto binary = objects.find(key, counters.cache_error))
    if (auto program = built_from_binary(*binary)) return counters.kernels_from_disk += std::ssize(texts), program;
  auto program = built_from_source(texts);
  counters.kernels_compiled += std::ssize(texts);
  if (!cache.empty())
    if (const std::string binary = program->binary(); !binary.empty()) objects.store(key, binary, counters.cache_error);
  return program;
}

/// Null where the driver does not take it.
std::shared_ptr<const BuiltProgram> Programs::built_from_binary(std::span<const std::byte> binary) const {
  const std::size_t bytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int code = CL_SUCCESS;
  const cl_program handle = device_.driver->CreateProgramWithBinary(context_, 1, &device_.id, &bytes, &data, nullptr, &code);
  if (code != CL_SUCCESS) return nullptr;
  auto program = std::make_shared<const BuiltProgram>(device_, handle);
  return program->build() == CL_SUCCESS ? program : nullptr;
}

std::shared_ptr<const BuiltProgram> Programs::built_from_source(std::span<const KernelText* const> texts) const {
  std::vector<const char*> sources;
  for (const KernelText* text : texts) sources.push_back(text->text.c_str());
  cl_int code = CL_SUCCESS;
  const cl_program handle =
      device_.driver->CreateProgramWithSource(context_, static_cast<cl_uint>(sources.size()), sources.data(), nullptr, &code);
  check(device_, code, "taking the texts of {} kernels", sources.size());
  auto program = std::make_shared<const BuiltProgram>(device_, handle);
  code = program->build();
  if (code == CL_SUCCESS) return program;
  if (texts.size() > 1)
    for (const KernelText* const& text : texts) built_from_source({&text, 1});  // the one that is refused alone throws
  fail("{} ({}): the driver refuses kernel {}: {} (rlx dump --stage kernels --device {} shows it)\n{}", device_.name, device_.title,
       texts.front()->name, code_name(code), device_.name, program->log());
}

}  // namespace rlx::opencl
