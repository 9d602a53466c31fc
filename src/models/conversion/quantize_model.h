#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/conversion/importance_matrix.h"
#include "models/conversion/model_source.h"
#include "models/conversion/type_mix.h"
#include "rlx/convert.h"

namespace rlx {

struct QuantizeOptions {
  bool pure = false;  ///< one type for all that is quantized
  std::vector<TypeOverride> overrides;
  const ImportanceMatrix* importance = nullptr;
  int threads = 1;
  std::function<void(std::size_t done, std::size_t total)> progress;  ///< in values
};

/// Writes `source` as a GGUF file with the types of `mix`, or with the types that its tensors have where there is none. Rows are encoded by
/// several threads and written as they come, so that memory does not grow with the model. The bytes do not depend on the number of threads.
/// Throws Error naming the tensor and the row that hold a value which is not finite and which the type cannot hold; the target is then as
/// it was.
QuantizeReport quantize_model(const ModelSource& source, const std::filesystem::path& target, const TypeMix* mix,
                              const QuantizeOptions& options);

}  // namespace rlx
