#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "formats/gguf/gguf.h"
#include "rlx/error.h"

namespace rlx {

/// The metadata of a file whose keys begin with the architecture's name, and which tensors it has. What is missing or not allowed throws
/// Error naming the file and the key.
class GgufConfig {
 public:
  static constexpr std::int64_t largest_size = std::numeric_limits<std::int32_t>::max();

  GgufConfig(const GgufFile& file, std::string_view architecture) : file_(file), architecture_(architecture) {}

  const GgufValue* find(std::string_view key) const { return file_.find_value(path(key)); }
  std::int64_t size(std::string_view key, std::int64_t least = 1, std::int64_t most = largest_size) const {
    return file_.value(path(key)).integer(least, most);
  }
  std::int64_t size_or(std::string_view key, std::int64_t otherwise) const {
    const GgufValue* value = find(key);
    return value != nullptr ? value->integer(0, largest_size) : otherwise;
  }
  double number(std::string_view key) const {
    const double number = file_.value(path(key)).number();
    if (!std::isfinite(number)) refuse(key, "is {} (allowed: finite numbers)", number);
    return number;
  }
  double number_or(std::string_view key, double otherwise) const { return find(key) != nullptr ? number(key) : otherwise; }
  double non_negative_or(std::string_view key, double otherwise) const {
    const double number = number_or(key, otherwise);
    if (number < 0) refuse(key, "is {} (allowed: not below 0)", number);
    return number;
  }
  double positive_or(std::string_view key, double otherwise) const {
    const double number = number_or(key, otherwise);
    if (!(number > 0)) refuse(key, "is {} (allowed: above 0)", number);
    return number;
  }
  bool has(std::string_view tensor) const { return file_.find(tensor) != nullptr; }
  bool flag_or(std::string_view key, bool otherwise) const {
    const GgufValue* value = find(key);
    return value != nullptr ? value->boolean() : otherwise;
  }
  std::int64_t blocks() const { return size("block_count", 1, 1024); }
  bool layer_has(std::size_t layer, std::string_view tensor) const { return has(fmt::format("blk.{}.{}", layer, tensor)); }
  /// The tensor of the first layer that has it, or null; else the one of its like where no layer has it.
  const TensorView* find_in_layers(std::string_view tensor, std::string_view like = "") const {
    const std::int64_t layers = blocks();
    for (std::int64_t i = 0; i < layers; ++i)
      if (const TensorView* found = file_.find(fmt::format("blk.{}.{}", i, tensor))) return found;
    return like.empty() ? nullptr : find_in_layers(like);
  }
  bool any_layer_has(std::string_view tensor) const { return find_in_layers(tensor) != nullptr; }
  const GgufFile& file() const { return file_; }

  template <class... Args>
  [[noreturn]] void refuse(std::string_view key, fmt::format_string<Args...> text, Args&&... args) const {
    fail("{}: key '{}' {}", file_.name(), path(key), fmt::format(text, std::forward<Args>(args)...));
  }

 private:
  std::string path(std::string_view key) const { return fmt::format("{}.{}", architecture_, key); }

  const GgufFile& file_;
  std::string_view architecture_;
};

}  // namespace rlx
