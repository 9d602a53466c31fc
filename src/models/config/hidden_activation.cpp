#include "models/config/hidden_activation.h"

#include "formats/json/json_field.h"

namespace rlx {

HiddenActivation read_activation(const JsonField& field) {
  using enum HiddenActivation;
  constexpr HiddenActivation by_name[] = {gelu, gelu_tanh, gelu_tanh, gelu_tanh, quick_gelu, relu, relu_squared, silu, silu, tanh};
  return by_name[field.as_one_of(
      {"gelu", "gelu_new", "gelu_pytorch_tanh", "gelu_fast", "quick_gelu", "relu", "relu2", "silu", "swish", "tanh"})];
}

std::string activation_name(HiddenActivation kind) {
  switch (kind) {
    case HiddenActivation::gelu: return "gelu";
    case HiddenActivation::gelu_tanh: return "gelu_pytorch_tanh";
    case HiddenActivation::quick_gelu: return "quick_gelu";
    case HiddenActivation::relu: return "relu";
    case HiddenActivation::relu_squared: return "relu2";
    case HiddenActivation::silu: return "silu";
    case HiddenActivation::tanh: return "tanh";
  }
  fail_internal("activation {} is not in the enumeration", static_cast<int>(kind));
}

}  // namespace rlx
