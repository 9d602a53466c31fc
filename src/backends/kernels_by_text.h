#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "emit/emit.h"
#include "rlx/session.h"

namespace rlx {

/// Kernels that a device has loaded, once for each text that something holds. Thread-safe.
template <class Kernel>
class KernelsByText {
 public:
  using Texts = std::span<const KernelText* const>;

  /// One kernel for each text. `make(Texts)` gives one for each of those that are not loaded; not called where there are none.
  template <class Make>
  std::vector<std::shared_ptr<const Kernel>> load(std::span<const KernelText> texts, CompileCounters& counters, const Make& make) {
    const std::lock_guard lock(mutex_);
    std::erase_if(kernels_, [](const auto& entry) { return entry.second.expired(); });
    std::unordered_map<std::string_view, std::shared_ptr<const Kernel>> by_text;
    std::vector<const KernelText*> missing;
    for (const KernelText& text : texts) {
      const auto [entry, is_new] = by_text.try_emplace(text.text);
      if (!is_new) continue;
      if (const auto loaded = kernels_.find(text.text); loaded != kernels_.end()) entry->second = loaded->second.lock();
      if (!entry->second) missing.push_back(&text);
    }
    counters.kernels_shared += std::ssize(texts) - std::ssize(missing);
    if (!missing.empty()) {
      const std::vector<std::shared_ptr<const Kernel>> made = make(Texts(missing));
      for (std::size_t i = 0; i < missing.size(); ++i) kernels_[missing[i]->text] = by_text[missing[i]->text] = made[i];
    }
    std::vector<std::shared_ptr<const Kernel>> kernels;
    for (const KernelText& text : texts) kernels.push_back(by_text.at(text.text));
    return kernels;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<const Kernel>> kernels_;
};

}  // namespace rlx
