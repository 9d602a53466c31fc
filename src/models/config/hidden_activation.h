#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace rlx {

class JsonField;

/// The functions between the two halves of a feed-forward block that configs name.
enum class HiddenActivation : std::uint8_t {
  gelu,
  gelu_clipped,  // to -10..10
  gelu_tanh,
  quick_gelu,
  hard_swish,
  laplace,  // of mean 0.707107 and deviation 0.282095 (Ma et al. 2022)
  leaky_relu,
  linear,
  mish,
  relu,
  relu_squared,
  relu6,
  root_softplus,
  sigmoid,
  silu,
  tanh
};

/// By its name in Hugging Face's configs. Throws Error naming the field and the allowed names.
HiddenActivation read_activation(const JsonField& field);
/// The same by a name that is a part of the field's text.
HiddenActivation read_activation(const JsonField& field, std::string_view name);
/// The name that configs have for it today.
std::string activation_name(HiddenActivation kind);

}  // namespace rlx
