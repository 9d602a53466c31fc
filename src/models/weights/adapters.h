#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/layers/flow.h"
#include "models/weights/adapter_file.h"
#include "models/weights/converted_tensors.h"

namespace rlx {

/// How an adapter's tensors stand for a model's parameters.
struct AdapterNames {
  WeightNames names;
  ParamChanges changes = {};  // from the form that the adapter is made for to that of the model; none: it is the same
};

/// What adapters add to the matrices of a model, which stay as they are stored; several add up.
class Adapters {
 public:
  /// Throws Error for two of the adapter's tensors that stand for the same.
  void add(AdapterFile file, double scale, AdapterNames names);

  /// For a graph's Flow, which declares the parameters that `load` gives values to.
  LowRankForms forms() const;
  /// The values of the parameters of the changes. Throws Error that names all tensors of an adapter that `graph` has no matrix for, or one
  /// of another shape.
  NamedArrays load(const Graph& graph) const;

  /// Calls `see` with the name, the factors and the scale of every change, always in the same order.
  template <class See>
  void for_each(See see) const {
    for (const auto& source : sources_)
      for (const auto& [tensor, change] : source->file.changes) see(tensor, change, source->scale);
  }

 private:
  struct Source {
    AdapterFile file;
    double scale;
    AdapterNames names;
    std::map<std::string, std::string> spelled;  // as the names spell them -> in the file
  };
  class Loader;
  struct Found;

  static Found find(const Source& source, std::string_view param, MatrixUse use, std::int64_t experts);
  LowRankForm form_of(std::string_view param, MatrixUse use, std::int64_t experts) const;

  std::vector<std::shared_ptr<const Source>> sources_;
};

}  // namespace rlx
