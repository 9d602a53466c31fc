#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/checkpoint.h"
#include "models/families/weight_names.h"
#include "models/weights/source_tensor.h"
#include "rlx/graph.h"

namespace rlx {

/// A model as a folder or a GGUF file holds it: the graph whose parameters the tensors are, and how these are called.
struct ModelForm {
  Graph graph;
  WeightNames names;
};

/// What a parameter's values in one form are in another. Its rows are those of a matrix, all axes but the last making one; each element of
/// a vector is a row.
struct ParamChange {
  std::string param;                                       // its name there
  std::function<std::int64_t(std::int64_t row)> row = {};  // the row there of a row here, below 0 for one of zeros; none: the same
  std::function<std::int64_t(std::int64_t column)> column = {};
  std::int64_t turned_rows = 0;     // not 0: each so many rows here are a matrix that is transposed there
  float (*value)(float) = nullptr;  // of a value there
};

/// The change from the other form to the one that has the parameter `param`.
using ParamChanges = std::function<ParamChange(const std::string& param)>;

/// The tensors that hold the parameters of `to`, in the order of those, which read what they are made of from a checkpoint in the form
/// `from`. Element types are those of the checkpoint's tensors, f32 for blocks and for tensors made of several types; rows that
/// are made (TensorView::make_rows) stay what they are, blocks included, where they are only put elsewhere. Of a tensor that is transposed
/// in `to` all rows are best read at once.
/// Throws Error for tensors that are missing, of no use, of another shape than `from` says, or of integers.
std::vector<SourceTensor> converted_tensors(std::shared_ptr<const Checkpoint> checkpoint, const ModelForm& from, const ModelForm& to,
                                            const ParamChanges& changes);

}  // namespace rlx
