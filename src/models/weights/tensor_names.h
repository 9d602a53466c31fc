#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.h"
#include "models/families/weight_names.h"
#include "rlx/array.h"
#include "rlx/graph.h"

namespace rlx {

/// A parameter's size along its first axis: of experts, how many there are.
std::int64_t first_size(const Input& param);

/// Some rows of each of the groups that a tensor's rows come in; all counts are of the groups together.
struct RowRange {
  std::int64_t first, count, of;
  std::int64_t groups;

  /// Where in the tensor a row of the range is.
  std::int64_t in_tensor(std::int64_t row) const {
    const std::int64_t each = count / groups;
    return row / each * (of / groups) + first / groups + row % each;
  }
};
/// The rows of a parameter, which has `rows` of them, in its tensor. `graph` has all that share it.
RowRange range_of(const Graph& graph, std::string_view param, std::int64_t rows, const TensorPlace& place);
/// The range's rows of a tensor; without a copy where they lie together.
Array rows_of(const Array& tensor, const RowRange& range);
/// A matrix (rows, columns) as (columns, rows).
Array transposed_matrix(const Array& matrix);

/// The names of a file's tensors as the tables spell them, each with the one that it has there. Throws Error for two of one spelling.
std::map<std::string, std::string> spelled_names(std::span<const std::string_view> in_file, const WeightNames& names);

/// Throws Error that lists which tensors of `wanted` are missing, and which of the checkpoint's a model has no use for. `spelled` is of
/// spelled_names.
void check_tensors(const Checkpoint& checkpoint, const std::map<std::string, std::string>& spelled, const std::set<std::string>& wanted,
                   const WeightNames& names);

/// True where a tensor holds a parameter's values: their shapes agree but for axes of one, or for matrices one below the other where one
/// of both stacks them.
bool same_but_for_axes(std::vector<std::int64_t> stored, const Dims& shape);

}  // namespace rlx
