#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/tensors/safetensors.h"
#include "quant/block_format.h"

namespace rlx {
namespace {

class EveryType : public testing::TestWithParam<std::string> {};

/// The last bytes of a file that ends with the data of its only tensor.
std::vector<std::byte> tail(const std::string& name, std::size_t bytes) {
  std::ifstream file(test::fixture(name), std::ios::binary);
  const std::vector<char> all((std::istreambuf_iterator<char>(file)), {});
  EXPECT_GT(all.size(), bytes);
  std::vector<std::byte> data(bytes);
  std::memcpy(data.data(), all.data() + all.size() - bytes, bytes);
  return data;
}

// The values were made by gguf-py and agree in every bit with ggml's C code.
TEST_P(EveryType, DecodesToTheRecordedBits) {
  const BlockFormat* const format = find_block_format(GetParam());
  ASSERT_NE(format, nullptr);
  const SafetensorsFile file = SafetensorsFile::open(test::fixture(fmt::format("gguf/{}.safetensors", GetParam())));
  const Array array = file.array("w");
  const std::span<const float> expected = array.values<float>();
  const auto count = std::ssize(expected);
  const auto bytes = static_cast<std::size_t>(count / format->values * format->bytes);
  const std::vector<std::byte> blocks = tail(fmt::format("gguf/{}.gguf", GetParam()), bytes);
  std::vector<float> decoded(expected.size());
  format->decode(blocks.data(), decoded.data(), count);
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(decoded[i]), std::bit_cast<std::uint32_t>(expected[i]))
        << "value " << i << ": " << decoded[i] << " is not " << expected[i];
  }
}

// Under a sanitizer this reads no byte and looks up no entry outside.
TEST_P(EveryType, DecodesAnyBytes) {
  const BlockFormat* const format = find_block_format(GetParam());
  std::mt19937 random(1);
  constexpr int blocks = 4096;
  std::vector<std::byte> bytes(static_cast<std::size_t>(blocks * format->bytes));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  std::vector<float> once(static_cast<std::size_t>(blocks * format->values)), again(once.size());
  format->decode(bytes.data(), once.data(), std::ssize(once));
  for (int i = 0; i < blocks; ++i) format->decode(bytes.data() + i * format->bytes, again.data() + i * format->values, format->values);
  EXPECT_EQ(std::memcmp(once.data(), again.data(), once.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(Gguf, EveryType,
                         testing::Values("q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq1_s", "iq1_m",
                                         "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_nl", "iq4_xs", "tq1_0", "tq2_0", "mxfp4",
                                         "nvfp4", "f16", "bf16"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace rlx
