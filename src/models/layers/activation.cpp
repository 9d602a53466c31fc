#include "models/layers/activation.h"

#include <numbers>

#include "rlx/ops.h"

namespace rlx {
namespace {

/// The normal distribution of that mean and deviation up to x.
Value laplace(Value x) { return (1 + erf((x - 0.707107) / (0.282095 * std::numbers::sqrt2))) * 0.5; }

}  // namespace

Value activate(HiddenActivation kind, Value x) {
  switch (kind) {
    case HiddenActivation::gelu: return gelu(x);
    case HiddenActivation::gelu_clipped: return clamp(gelu(x), -10, 10);
    case HiddenActivation::gelu_tanh: return gelu_tanh(x);
    case HiddenActivation::quick_gelu: return x * sigmoid(x * 1.702);
    case HiddenActivation::hard_swish: return hardswish(x);
    case HiddenActivation::laplace: return laplace(x);
    case HiddenActivation::leaky_relu: return leaky_relu(x);
    case HiddenActivation::linear: return x;
    case HiddenActivation::mish: return mish(x);
    case HiddenActivation::relu: return relu(x);
    case HiddenActivation::relu_squared: return square(relu(x));
    case HiddenActivation::relu6: return relu6(x);
    case HiddenActivation::root_softplus: return sqrt(softplus(x));
    case HiddenActivation::sigmoid: return sigmoid(x);
    case HiddenActivation::silu: return silu(x);
    case HiddenActivation::tanh: return tanh(x);
  }
  fail_internal("activation {} is not in the enumeration", static_cast<int>(kind));
}

}  // namespace rlx
