#include "models/weights/sentence_dense.h"

#include <utility>

#include <fmt/format.h>

#include "formats/checkpoint.h"

namespace rlx {

NamedArrays load_dense(const std::vector<SentenceDense>& layers) {
  NamedArrays arrays;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i].weights.empty()) continue;
    const Checkpoint file = Checkpoint::open(layers[i].weights);
    for (std::string_view part : {"weight", "bias"}) {
      if (part == "bias" && !layers[i].bias) continue;
      const Array stored = file.array(fmt::format("linear.{}", part));
      Array wide(f32, stored.shape());
      for (std::int64_t k = 0; k < stored.size(); ++k) wide.set_double(k, stored.get_double(k));
      arrays.emplace(fmt::format("dense.{}.{}", i, part), std::move(wide));
    }
  }
  return arrays;
}

}  // namespace rlx
