// Weights in blocks meet activations as they are, where a session says so.
#include <cmath>

#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/temporary_folder.h"
#include "rlx/convert.h"
#include "rlx/model.h"

namespace rlx::test {
namespace {

std::vector<float> logits_of(const std::filesystem::path& path, bool round_activations) {
  Model model = Model::open(path, Session(Device::cpu(), {.round_activations = round_activations}), {.cache = CacheType::f32});
  const std::vector<std::int32_t> ids{1, 7, 30, 5, 90, 11};
  return model.append(ids);
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, static_cast<double>(std::fabs(a[i] - b[i])));
  return most;
}

TEST(Activations, ProductsWithBlocksAreThoseWithTheirDecodedValues) {
  const TemporaryFolder folder;
  for (const char* type : {"Q8_0", "Q4_0", "IQ4_NL"}) {
    quantize(fixture("gguf_models/llama.gguf"), folder / "blocks.gguf", {.type = type});
    quantize(folder / "blocks.gguf", folder / "decoded.gguf", {.type = "F32"});
    const std::vector<float> decoded = logits_of(folder / "decoded.gguf", true), exact = logits_of(folder / "blocks.gguf", false);
    ASSERT_EQ(exact.size(), decoded.size());
    EXPECT_LT(largest_difference(exact, decoded), 1e-5) << type;                                    // the order of sums is left
    EXPECT_GT(largest_difference(logits_of(folder / "blocks.gguf", true), decoded), 1e-4) << type;  // 8 bits of activations
  }
}

}  // namespace
}  // namespace rlx::test
