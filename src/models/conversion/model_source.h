#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_metadata.h"
#include "models/conversion/type_mix.h"

namespace rlx {

/// A tensor that is to be written, whose values are read row by row.
struct SourceTensor {
  /// Name, shape and format as GGUF has them. `data` are its bytes in that format, or empty where they must be computed.
  TensorView view;
  /// Reads rows first..first + count (of the last axis; all axes before it count as rows) as f32. Called by several threads at once.
  std::function<void(std::int64_t first, std::int64_t count, float* values)> read_rows;
};

/// A model that is to be written as a GGUF file: metadata and tensors in order. What it reads from stays open as long as it lives.
struct ModelSource {
  std::string name;  ///< for messages
  GgufMetadata metadata;
  ModelFacts facts;
  std::vector<SourceTensor> tensors;
  std::vector<std::string> losses = {};  ///< see QuantizeReport

  std::vector<TensorView> views() const;
};

ModelSource source_of(const GgufFile& file);

}  // namespace rlx
