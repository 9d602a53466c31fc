// Models with weights in blocks on an OpenCL device, beside the CPU.
#include <algorithm>
#include <cmath>

#include "backends/opencl_device.h"
#include "fixture.h"
#include "rlx/convert.h"
#include "rlx/model.h"

namespace rlx::test {
namespace {

class QuantizedOnOpenCl : public OpenClTest {};

/// The logits behind a prompt, and behind each of the tokens that follow it greedily.
std::vector<std::vector<float>> logits_of(const std::filesystem::path& path, Device device) {
  SessionOptions options;
  options.cache_folder = std::filesystem::path();
  options.round_activations = false;
  Model model = Model::open(path, Session(std::move(device), options), {.cache = CacheType::f32});
  std::vector<std::int32_t> ids{1, 7, 30, 5, 90, 11};
  std::vector<std::vector<float>> all;
  for (int token = 0; token < 8; ++token) {
    all.push_back(model.append(ids));
    ids = {static_cast<std::int32_t>(std::ranges::max_element(all.back()) - all.back().begin())};
  }
  return all;
}

TEST_F(QuantizedOnOpenCl, HaveTheNumbersOfTheCpu) {
  const TemporaryFolder folder;
  quantize(fixture("gguf_models/llama.gguf"), folder / "blocks.gguf", {.type = "Q4_0"});
  const auto seen = logits_of(folder / "blocks.gguf", Device(backend())), wanted = logits_of(folder / "blocks.gguf", Device::cpu());
  for (std::size_t token = 0; token < wanted.size(); ++token)
    for (std::size_t i = 0; i < wanted[token].size(); ++i)
      ASSERT_NEAR(seen[token][i], wanted[token][i], 1e-4) << "token " << token << ", logit " << i;
}

}  // namespace
}  // namespace rlx::test
