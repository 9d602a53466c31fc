#pragma once
#include <filesystem>
#include <vector>

#include "formats/checkpoint.h"
#include "rlx/sampling.h"

namespace rlx {

/// One number of SamplingOptions that a model's makers recommend.
struct RecommendedNumber {
  void (*set)(SamplingOptions&, double);
  double value;
};

/// What general.sampling.* of a GGUF file, or generation_config.json of the folder `path`, say; perhaps nothing. Throws Error naming the
/// field for a value that is not allowed.
std::vector<RecommendedNumber> recommended_sampling(const std::filesystem::path& path, const Checkpoint& checkpoint);

}  // namespace rlx
