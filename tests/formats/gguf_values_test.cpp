// Tensors of GGUF files against values that another implementation decoded.
#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/checkpoint.h"
#include "formats/gguf_fixture.h"
#include "quant/block_format.h"

namespace rlx {
namespace {

using test::fixture;
using test::open_fixture;

/// The values as the recorded file has them: f32 where the type is packed or a narrow float.
Array values_of(const TensorView& tensor, DType recorded) {
  if (tensor.dtype == recorded) return to_array(tensor, nullptr);
  Array decoded(f32, tensor.shape);
  tensor.format->decode(tensor.data.data(), decoded.mutable_values<float>().data(), decoded.size());
  return decoded;
}

void expect_recorded_values(const GgufFile& file, std::string_view recorded_name) {
  const SafetensorsFile recorded = SafetensorsFile::open(fixture(recorded_name));
  ASSERT_EQ(file.tensors().size(), recorded.tensors().size());
  for (const TensorView& wanted : recorded.tensors()) {
    const TensorView& tensor = file.at(wanted.name);
    EXPECT_EQ(tensor.shape, wanted.shape) << wanted.name;
    EXPECT_EQ(values_of(tensor, wanted.dtype), recorded.array(wanted.name)) << wanted.name;
  }
}

TEST(GgufValues, ContainersOfEveryKindHoldTheSameTensors) {
  for (std::string_view name : {"alignment64.gguf", "alignment8.gguf", "version2.gguf", "big_endian.gguf", "split-00001-of-00002.gguf",
                                "split-00002-of-00002.gguf"}) {
    SCOPED_TRACE(name);
    expect_recorded_values(open_fixture(name), "gguf/containers.safetensors");
  }
}

TEST(GgufValues, EveryTensorTypeAndRankIsRead) { expect_recorded_values(open_fixture("all_types.gguf"), "gguf/all_types.safetensors"); }

TEST(GgufValues, ACheckpointDecodesPackedTensors) {
  const Checkpoint checkpoint = Checkpoint::open(fixture("gguf/alignment64.gguf"));
  EXPECT_EQ(checkpoint.array("w.q4_0"), SafetensorsFile::open(fixture("gguf/containers.safetensors")).array("w.q4_0"));
}

}  // namespace
}  // namespace rlx
