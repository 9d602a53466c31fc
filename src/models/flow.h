#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/checkpoint.h"
#include "rlx/graph.h"
#include "rlx/io.h"

namespace rlx {

/// The layer that models are built with: blocks that declare their own parameters, under the names that checkpoints give them.
/// A scope is the prefix of those names; the scopes of one model share its graph.
///
///     Flow layer = flow.scope("encoder.layer.0");
///     Value q = layer.linear("attention.self.query", x, 384);   // encoder.layer.0.attention.self.query.weight and .bias
class Flow {
 public:
  /// `dtype` is the element type of all parameters, and so of the computation.
  explicit Flow(Graph graph, DType dtype = f32) : graph_(std::move(graph)), dtype_(dtype) {}

  Flow scope(std::string_view name) const;
  Graph& graph() { return graph_; }
  DType dtype() const { return dtype_; }

  /// The parameter `<scope>.<name>`. Throws Error when the name is taken.
  Value param(std::string_view name, Dims shape);
  /// x (..., in) -> (..., out) with <name>.weight (out, in) and <name>.bias (out).
  Value linear(std::string_view name, Value x, std::int64_t out, bool bias = true);
  /// ids, any integer shape -> (ids..., width), rows of <name>.weight (rows, width).
  Value embedding(std::string_view name, Value ids, std::int64_t rows, std::int64_t width);
  /// Normalises the last axis, with <name>.weight and <name>.bias.
  Value layer_norm(std::string_view name, Value x, double eps);

 private:
  std::string path(std::string_view name) const;

  Graph graph_;
  DType dtype_;
  std::string prefix_;  // empty, or ends with a dot
};

/// How the names in a checkpoint differ from those of a graph's parameters.
struct WeightNames {
  std::string_view prefix;                                             // removed when any name begins with it
  std::vector<std::pair<std::string_view, std::string_view>> endings;  // older spellings of the ends of names, and today's
  std::vector<std::string_view> unused;  // names, or parts before a dot, that a file may have and a graph need not
};

/// The value of every parameter of `graph`: the file's own mapped bytes where the types agree, else converted (bf16 and f16 to f32).
/// Throws Error that lists the tensors that are missing, the ones that nothing takes, or the one whose shape differs.
NamedArrays load_weights(const Graph& graph, const Checkpoint& checkpoint, const WeightNames& names);

}  // namespace rlx
