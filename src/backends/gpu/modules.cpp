#include "backends/gpu/modules.h"

#include "backends/gpu/compile.h"
#include "lowering/object_cache.h"

namespace rlx::gpu {

std::string fingerprint(const DeviceFacts& device) {
  std::string all = fmt::format("{}; {}; {}; {}", kind_of(device.driver->vendor), device.title, device.architecture(), device.version);
  for (const std::string& option : options_for(device.driver->vendor, device.architecture())) all += " " + option;
  return all;
}

namespace {

/// CUDA gives more than this only to a function for which it was asked.
constexpr int on_chip_unasked = 48 << 10;

void allow_on_chip(const DeviceFacts& device, const LoadedKernel& kernel) {
  if (device.driver->vendor != Vendor::cuda || kernel.on_chip_bytes <= on_chip_unasked) return;
  constexpr int most_dynamic_bytes = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  const Code code = device.driver->SetFunctionAttribute(kernel.function, most_dynamic_bytes, kernel.on_chip_bytes);
  check(device, code, "asking for {} bytes on chip for kernel {}", kernel.on_chip_bytes, kernel.name);
}

}  // namespace

LoadedModule::~LoadedModule() {
  device.driver->SetCurrent(context);
  device.driver->Synchronize(stream);
  device.driver->UnloadModule(handle);
}

std::vector<std::shared_ptr<const LoadedKernel>> Modules::load(std::span<const KernelText> texts, const std::filesystem::path& cache,
                                                               CompileCounters& counters) {
  return kernels_.load(texts, counters, [&](Texts missing) {
    const auto module = module_of(missing, cache, counters);
    std::vector<std::shared_ptr<const LoadedKernel>> kernels;
    for (const KernelText* text : missing) {
      LoadedKernel kernel{module, text->name, text->element_bytes, text->group, text->on_chip_bytes, text->maps, text->symbols};
      const Code code = device_.driver->GetFunction(&kernel.function, module->handle, text->name.c_str());
      check(device_, code, "finding kernel {}", text->name);
      allow_on_chip(device_, kernel);
      kernels.push_back(std::make_shared<const LoadedKernel>(std::move(kernel)));
    }
    return kernels;
  });
}

std::shared_ptr<const LoadedModule> Modules::module_of(Texts texts, const std::filesystem::path& cache, CompileCounters& counters) const {
  ObjectCache objects(cache);
  std::string key = fingerprint(device_);
  for (const KernelText* text : texts) key += "\n" + text->text;
  Code code = 0;
  if (const auto binary = objects.find(key, counters.cache_error))
    if (auto module = loaded(binary->data(), code)) return counters.kernels_from_disk += std::ssize(texts), module;
  const std::string binary = binary_of(texts);
  auto module = loaded(binary.data(), code);
  check(device_, code, "loading {} kernels that were compiled for {}", texts.size(), device_.architecture());
  counters.kernels_compiled += std::ssize(texts);
  if (!cache.empty()) objects.store(key, binary, counters.cache_error);
  return module;
}

std::string Modules::binary_of(Texts texts) const {
  CompiledTexts compiled = compile(*device_.compiler, texts, options_for(device_.driver->vendor, device_.architecture()));
  if (compiled.error.empty()) return std::move(compiled.binary);
  if (texts.size() > 1)
    for (const KernelText* const& text : texts) binary_of({&text, 1});  // the one that is refused alone throws
  fail("{} ({}): the compiler refuses kernel {} for {}: {} (rlx dump --stage kernels --device {} shows it)", device_.name, device_.title,
       texts.front()->name, device_.architecture(), compiled.error, device_.name);
}

/// Null, and why in `code`, where the driver does not take it.
std::shared_ptr<const LoadedModule> Modules::loaded(const void* binary, Code& code) const {
  ModuleHandle module = nullptr;
  code = device_.driver->LoadModule(&module, binary);
  return code == 0 ? std::make_shared<const LoadedModule>(device_, context_, stream_, module) : nullptr;
}

}  // namespace rlx::gpu
