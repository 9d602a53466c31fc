#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/graph.h"
#include "rlx/io.h"

namespace rlx {

/// How the parameter of that name is stored: a type of GGUF files, such as Q4_K, BF16 or F32. Empty: in the elements of the model.
using WeightStorage = std::function<std::string(const std::string& param)>;

/// The low-rank change of a matrix that adapters bring (see adapters.h).
struct LowRankForm {
  std::int64_t rank = 0;  // of all adapters together; 0: the matrix stays as it is
  DType dtype = f32;      // of the two factors
};

/// How a matrix is used.
enum class MatrixUse : std::uint8_t { product, lookup, expert_products };

/// The change of the parameter of that name. `experts`: how many matrices are stacked there, of expert_products.
using LowRankForms = std::function<LowRankForm(const std::string& param, MatrixUse use, std::int64_t experts)>;

/// A matrix of parameters as it is stored.
struct StoredMatrix {
  Value values;      // (rows, columns), perhaps of bf16 or f16; of blocks their bytes, (rows, bytes)
  std::string type;  // of the blocks; empty: elements
};

/// x (..., columns) -> (..., rows). For a matrix in blocks x is rounded to 8 bits: see block_dot.
Value product(Value x, const StoredMatrix& matrix);
/// The rows of those numbers: ids -> (ids..., columns).
Value rows_of(const StoredMatrix& matrix, Value ids);

/// The layer that models are built with: blocks that declare their own parameters, under the names that checkpoints give them.
/// A scope is the prefix of those names; the scopes of one model share its graph.
///
///     Flow layer = flow.scope("encoder.layer.0");
///     Value q = layer.linear("attention.self.query", x, 384);   // encoder.layer.0.attention.self.query.weight and .bias
class Flow {
 public:
  /// `dtype` is the element type of the computation, and of all parameters but the matrices that `storage` has in another form.
  explicit Flow(Graph graph, DType dtype = f32, WeightStorage storage = {}, LowRankForms adapters = {})
      : graph_(std::move(graph)), dtype_(dtype), storage_(std::move(storage)), adapters_(std::move(adapters)) {}

  Flow scope(std::string_view name) const;
  Graph& graph() { return graph_; }
  DType dtype() const { return dtype_; }

  /// The parameter `<scope>.<name>`. Throws Error when the name is taken.
  Value param(std::string_view name, Dims shape);
  /// The same for a matrix, as it is stored.
  StoredMatrix matrix(std::string_view name, std::int64_t rows, std::int64_t columns);
  /// x (..., in) -> (..., out) with <name>.weight (out, in) and <name>.bias (out).
  Value linear(std::string_view name, Value x, std::int64_t out, bool bias = true);
  /// y (..., out), what a product of x (..., in) with <name>.weight gives, with what adapters add to it. Where there are any it has the
  /// parameters <name>.lora_a (rank, in), .lora_b (out, rank) and .lora_scale (rank): y + lora_b (lora_scale * lora_a x).
  Value adapted(std::string_view name, Value x, Value y);
  /// The same for y (ids..., width), the rows of <name>.weight (rows, width): <name>.lora_rows (rows, rank), .lora_b, .lora_scale.
  Value adapted_rows(std::string_view name, Value ids, std::int64_t rows, Value y);
  /// <name>.weight (rows, columns) in the elements of the model, with what adapters add to it.
  Value adapted_matrix(std::string_view name, std::int64_t rows, std::int64_t columns);
  /// ids, any integer shape -> (ids..., width), rows of <name>.weight (rows, width).
  Value embedding(std::string_view name, Value ids, std::int64_t rows, std::int64_t width);
  /// Normalises the last axis, with <name>.weight and <name>.bias.
  Value layer_norm(std::string_view name, Value x, double eps);
  /// Row m of x (M, in) through matrix expert[m] of <name>.weight (experts, out, in): (M, out).
  Value expert_linear(std::string_view name, Value x, Value expert, std::int64_t experts, std::int64_t out);

  /// The state `<scope>.<name>`, whose value for the next run is given to `keep` under the same name.
  Value state(std::string_view name, Dims shape, DType dtype = f32);
  void keep(std::string_view name, Value value);

 private:
  std::string path(std::string_view name) const;
  std::string stored_type(std::string_view name) const;
  /// The parameter <name> of values (..., columns) as their blocks, u8 (..., bytes).
  Value blocks(std::string_view name, Dims shape, const std::string& type);
  LowRankForm low_rank_form(MatrixUse use, std::int64_t experts = 0) const;
  /// y (M, out) of expert[m] with what adapters add: the parameters are stacked, (experts, ...).
  Value adapted_experts(Value x, Value expert, std::int64_t experts, Value y);

  Graph graph_;
  DType dtype_;
  WeightStorage storage_;
  LowRankForms adapters_;
  std::string prefix_;  // empty, or ends with a dot
};

}  // namespace rlx
