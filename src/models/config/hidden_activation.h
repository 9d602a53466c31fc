#pragma once
#include <cstdint>
#include <string>

namespace rlx {

class JsonField;

/// The functions between the two halves of a feed-forward block that configs name.
enum class HiddenActivation : std::uint8_t { gelu, gelu_tanh, quick_gelu, relu, relu_squared, silu, tanh };

/// By its name in Hugging Face's configs. Throws Error naming the field and the allowed names.
HiddenActivation read_activation(const JsonField& field);
/// The name that configs have for it today.
std::string activation_name(HiddenActivation kind);

}  // namespace rlx
