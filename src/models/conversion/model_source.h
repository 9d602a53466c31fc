#pragma once
#include <string>
#include <vector>

#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_metadata.h"
#include "models/conversion/type_mix.h"
#include "models/weights/source_tensor.h"

namespace rlx {

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
