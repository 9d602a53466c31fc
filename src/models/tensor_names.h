#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/flow.h"

namespace rlx {

/// What a tensor's name says: the parameters of a model that it holds, by the names without layer and ending.
struct TensorName {
  std::int64_t layer = -1;               // -1: of none
  std::vector<std::string_view> params;  // several: their rows lie one below the other
  std::string ending;                    // ".weight", ".bias" or nothing
  std::optional<std::int64_t> expert;    // one of a stack
  bool transposed = false;
};

/// `name` as the tables of `names` read it; nothing where no line fits.
std::optional<TensorName> parse_tensor_name(std::string_view name, const WeightNames& names);

/// The name that the tables of `names` give to such a tensor, the expert apart; nothing where they have no line for these parameters.
std::optional<std::string> spell_tensor_name(const TensorName& tensor, const WeightNames& names);

/// True for `name` or a part of it before a dot that `names` lists as of no use.
bool is_unused_tensor(std::string_view name, const WeightNames& names);

}  // namespace rlx
