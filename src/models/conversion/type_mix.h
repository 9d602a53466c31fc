#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/tensors/tensor_view.h"
#include "quant/block_format.h"
#include "text/regex/regex.h"

namespace rlx {

/// Of types that llama.cpp writes no file of, so that they have no number.
inline constexpr std::uint32_t no_file_type = UINT32_MAX;

/// What `rlx quantize --type` may name: one block format for most tensors, better ones for those that matter most. The mixes are those that
/// llama.cpp writes under the same names.
struct TypeMix {
  std::string_view name;    ///< "Q4_K_M"
  std::uint32_t file_type;  ///< general.file_type, or no_file_type
  std::string_view format;  ///< of most tensors
};

std::span<const TypeMix> type_mixes();
/// Case does not matter; "Q3_K", "Q4_K" and "Q5_K" stand for their _M. Throws Error that lists all.
const TypeMix& find_type_mix(std::string_view name);

/// Whether an importance matrix decides much about the codes of that type, or mix.
bool needs_importance(std::string_view type);

/// What the rules of mixes ask of a model.
struct ModelFacts {
  std::int64_t layers = 0;
  std::int64_t heads_per_kv_head = 1;
  std::int64_t experts = 0;
  bool falcon = false;
  bool importance = false;  ///< an importance matrix is given
};

/// A type for the tensors whose name the pattern finds; the first that fits counts.
struct TypeOverride {
  std::string text;
  Regex pattern;  // of the text
  const BlockFormat* format;
};

struct TypeChoice {
  const BlockFormat* format = nullptr;
  bool fallback = false;  ///< rows are not whole blocks of the type that the mix asks for
};

/// The type for each tensor. Tensors that are no large matrices of weights keep theirs: vectors, norms, routers, small convolutions,
/// positions. `pure` leaves out the rules of the mix. Throws Error naming the pattern that counts for no tensor.
std::vector<TypeChoice> choose_types(const TypeMix& mix, std::span<const TensorView> tensors, const ModelFacts& facts,
                                     std::span<const TypeOverride> overrides, bool pure);

}  // namespace rlx
