#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rlx {

/// The name of a layer's tensor in its parts.
struct LayerName {
  std::int64_t layer;
  std::string_view number;  // as it stands there
  std::string_view rest;    // behind the number
};

/// Of "layers.3.attention.q" and `layers` "layers" 3 and "attention.q"; nothing for names of other forms and numbers beyond 63 bits.
std::optional<LayerName> layer_name(std::string_view name, std::string_view layers);

/// The number in a GGUF file's "blk.3.attn_q.weight" or "enc.blk.3.attn_q.weight".
std::optional<std::int64_t> gguf_layer(std::string_view name);

}  // namespace rlx
