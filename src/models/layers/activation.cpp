#include "models/layers/activation.h"

#include "rlx/ops.h"

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

Value activate(HiddenActivation kind, Value x) {
  switch (kind) {
    case HiddenActivation::gelu: return gelu(x);
    case HiddenActivation::gelu_tanh: return gelu_tanh(x);
    case HiddenActivation::quick_gelu: return x * sigmoid(x * 1.702);
    case HiddenActivation::relu: return relu(x);
    case HiddenActivation::relu_squared: return square(relu(x));
    case HiddenActivation::silu: return silu(x);
    case HiddenActivation::tanh: return tanh(x);
  }
  fail_internal("activation {} is not in the enumeration", static_cast<int>(kind));
}

}  // namespace rlx
