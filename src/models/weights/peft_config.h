#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "text/regex/regex.h"

namespace rlx {

/// What adapter_config.json of PEFT says of a LoRA adapter.
class PeftConfig {
 public:
  /// Throws Error naming the field for what is missing or malformed, and for kinds of adapters that change a model otherwise: DoRA,
  /// trained biases, whole modules, layers used twice, and initial values that take something away from the model's own.
  static PeftConfig open(const std::filesystem::path& path);

  /// alpha / rank, or alpha / sqrt(rank) (rsLoRA), of the matrix of a module such as "model.layers.0.self_attn.q_proj". Throws Error naming
  /// `file` unless the rank is the one that the config gives the module.
  double scale_of(std::string_view module, std::int64_t rank, std::string_view file) const;

 private:
  /// Numbers of modules by patterns of their names, the first that matches counts.
  using Patterns = std::vector<std::pair<Regex, double>>;

  std::int64_t rank_ = 0;
  double alpha_ = 0;
  bool root_of_rank_ = false;
  Patterns ranks_, alphas_;
};

}  // namespace rlx
