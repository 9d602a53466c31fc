#include "backends/metal/kernels.h"

#include "lowering/object_cache.h"
#include "rlx/error.h"

namespace rlx::metal {
namespace {

using Texts = std::span<const KernelText* const>;

Pipelines compile(Gpu& gpu, Texts texts, const std::string& archive) {
  std::string all;
  std::vector<std::string> names;
  for (const KernelText* text : texts) {
    all += text->text;
    names.push_back(text->name);
  }
  return gpu.compile(all, names, archive);
}

/// Throws Error: names the kernel that is refused alone, or all that are refused together.
[[noreturn]] void refuse(Gpu& gpu, const std::string& device, Texts texts, const std::string& log) {
  for (const KernelText* const& text : texts) {
    if (texts.size() == 1) break;
    const Pipelines alone = compile(gpu, {&text, 1}, {});
    if (!alone.error.empty()) refuse(gpu, device, {&text, 1}, alone.error);
    for (void* kernel : alone.handles) gpu.let_go_kernel(kernel);
  }
  fail("{} ({}): the compiler refuses kernel {}: {} (rlx dump --stage kernels --device {} shows it)", device, gpu.title,
       texts.front()->name, log, device);
}

}  // namespace

std::string fingerprint(const Gpu& gpu) { return fmt::format("metal; {}; {}; safe math", gpu.title, gpu.version); }

std::vector<std::shared_ptr<const LoadedKernel>> make_kernels(Gpu& gpu, const std::string& device, Texts texts,
                                                              const std::filesystem::path& cache, CompileCounters& counters) {
  ObjectCache objects(cache);
  std::string key = fingerprint(gpu), archive;
  for (const KernelText* text : texts) key += "\n" + text->text;
  if (const auto kept = objects.find(key, counters.cache_error)) archive.assign(reinterpret_cast<const char*>(kept->data()), kept->size());
  const Pipelines made = compile(gpu, texts, archive);
  if (!made.error.empty()) refuse(gpu, device, texts, made.error);
  if (made.archive.empty() && !archive.empty()) counters.kernels_from_disk += std::ssize(texts);
  else counters.kernels_compiled += std::ssize(texts);
  if (!made.archive.empty() && !cache.empty()) objects.store(key, made.archive, counters.cache_error);
  std::vector<std::shared_ptr<const LoadedKernel>> kernels;
  for (std::size_t i = 0; i < texts.size(); ++i) kernels.push_back(std::make_shared<const LoadedKernel>(gpu, made.handles[i], *texts[i]));
  return kernels;
}

}  // namespace rlx::metal
