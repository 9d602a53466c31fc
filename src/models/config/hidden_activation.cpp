#include "models/config/hidden_activation.h"

#include <span>
#include <vector>

#include <fmt/ranges.h>

#include "base/names.h"
#include "formats/json/json_field.h"

namespace rlx {
namespace {

struct NamedActivation {
  std::string_view name;
  HiddenActivation kind;
};

/// The names of transformers' ACT2FN but for `prelu` and `xielu`, which have weights. Of several for a function, configs have the first
/// today.
std::span<const NamedActivation> known_activations() {
  using enum HiddenActivation;
  static constexpr NamedActivation all[] = {{"gelu", gelu},
                                            {"gelu_python", gelu},
                                            {"gelu_10", gelu_clipped},
                                            {"gelu_pytorch_tanh", gelu_tanh},
                                            {"gelu_new", gelu_tanh},
                                            {"gelu_fast", gelu_tanh},
                                            {"gelu_accurate", gelu_tanh},
                                            {"gelu_python_tanh", gelu_tanh},
                                            {"quick_gelu", quick_gelu},
                                            {"hardswish", hard_swish},
                                            {"laplace", laplace},
                                            {"leaky_relu", leaky_relu},
                                            {"linear", linear},
                                            {"mish", mish},
                                            {"relu", relu},
                                            {"relu2", relu_squared},
                                            {"relu6", relu6},
                                            {"sigmoid", sigmoid},
                                            {"silu", silu},
                                            {"swish", silu},
                                            {"sqrtsoftplus", root_softplus},
                                            {"tanh", tanh}};
  return all;
}

}  // namespace

HiddenActivation read_activation(const JsonField& field, std::string_view name) {
  std::vector<std::string_view> names;
  for (const NamedActivation& each : known_activations()) {
    if (each.name == name) return each.kind;
    names.push_back(each.name);
  }
  field.refuse("{} is not known (allowed: {})", quote_name(name), fmt::join(names, ", "));
}

HiddenActivation read_activation(const JsonField& field) { return read_activation(field, field.as_string()); }

std::string activation_name(HiddenActivation kind) {
  for (const NamedActivation& each : known_activations())
    if (each.kind == kind) return std::string(each.name);
  fail_internal("activation {} is not in the table", static_cast<int>(kind));
}

}  // namespace rlx
