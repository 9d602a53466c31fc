#include "models/layers/activation.h"

#include "rlx/ops.h"

namespace rlx {

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
