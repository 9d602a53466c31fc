#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/flow.h"
#include "rlx/array.h"

namespace rlx {

/// True for `part` itself and for every name below it.
bool is_below(std::string_view name, std::string_view part);

/// "layers.3.attention.q.weight" -> "attention.q.weight", with `number` "3"; nothing for other names.
std::optional<std::string_view> behind_layer(std::string_view name, std::string_view layers, std::string_view& number);

/// The names of a file's tensors as the tables spell them, each with the name in the file. Throws Error for two that are spelled alike.
std::map<std::string, std::string> spelled_names(std::span<const std::string_view> in_file, const WeightNames& names);

/// Where a parameter's values lie.
struct WeightPlace {
  std::vector<std::string> tensors = {};
  bool stacked = false;                    // along a new first axis, even if it is one
  std::vector<std::string> siblings = {};  // the parameters that share the tensor's rows, in order; empty: it is alone
  std::int64_t groups = 1;
  bool transposed = false;
};

/// Where `names` say that a parameter lies. `experts`: how many a parameter of experts has.
WeightPlace place_of(std::string_view param, std::int64_t experts, const WeightNames& names);

/// Some rows of each of the groups that a tensor's rows come in.
struct RowRange {
  std::int64_t first, count, of;  // in all groups together
  std::int64_t groups;
};

/// Which of the rows of the tensor at `place` are those of the parameter `name` of `graph`, which has `rows`.
RowRange range_of(const Graph& graph, std::string_view name, std::int64_t rows, const WeightPlace& place);

/// The range's rows; without a copy where they lie together.
Array rows_of(const Array& from, const RowRange& range);

}  // namespace rlx
