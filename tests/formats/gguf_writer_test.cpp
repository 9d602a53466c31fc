#include "formats/gguf/gguf_writer.h"

#include "fixture.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_json.h"
#include "formats/gguf_fixture.h"
#include "formats/temporary_folder.h"
#include "quant/block_format.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;
using test::open_fixture;
using test::TemporaryFolder;

void rewrite(const GgufFile& file, const std::filesystem::path& target) {
  GgufMetadata metadata;
  metadata.copy(file.metadata());
  GgufWriter writer(target, metadata, file.tensors());
  for (const TensorView& tensor : file.tensors()) {
    const std::size_t half = tensor.data.size() / 2;  // pieces of any size will do
    writer.write(tensor.data.first(half));
    writer.write(tensor.data.subspan(half));
  }
  writer.commit();
}

TEST(GgufWriter, WritesTheBytesThatWereRead) {
  const TemporaryFolder folder;
  for (std::string_view name : {"all_types.gguf", "alignment64.gguf", "alignment8.gguf", "edge_metadata.gguf",
                                "malformed/valid_no_tensors.gguf", "malformed/valid_empty.gguf"}) {
    rewrite(open_fixture(name), folder / "copy.gguf");
    EXPECT_EQ(test::read_text(folder / "copy.gguf"), test::read_text(fixture(fmt::format("gguf/{}", name)))) << name;
  }
}

TEST(GgufWriter, OtherVersionsAndByteOrdersKeepMetadataAndTensors) {
  const TemporaryFolder folder;
  for (std::string_view name : {"version2.gguf", "big_endian.gguf"}) {
    const GgufFile file = open_fixture(name);
    rewrite(file, folder / "copy.gguf");
    const GgufFile copy = GgufFile::open(folder / "copy.gguf");
    EXPECT_EQ(copy.version(), 3u);
    ASSERT_EQ(copy.metadata().size(), file.metadata().size());
    for (std::size_t i = 0; i < file.metadata().size(); ++i) {
      EXPECT_EQ(copy.metadata()[i].key(), file.metadata()[i].key());
      EXPECT_EQ(to_json(copy.metadata()[i]).dump(), to_json(file.metadata()[i]).dump());
    }
    ASSERT_EQ(copy.tensors().size(), file.tensors().size());
    for (const TensorView& tensor : file.tensors()) {
      const auto data = copy.at(tensor.name).data;
      EXPECT_TRUE(std::equal(data.begin(), data.end(), tensor.data.begin(), tensor.data.end())) << tensor.name;
    }
  }
}

TEST(GgufWriter, MetadataOfCppTypesRoundTrips) {
  const TemporaryFolder folder;
  GgufMetadata metadata;
  metadata.set("a", std::uint32_t{1});
  metadata.set("text", "x");
  metadata.set("flag", true);
  metadata.set("a", std::int8_t{-2});  // replaces the value, not the place
  metadata.set("gone", 1.5f);
  metadata.erase("gone");
  metadata.set_numbers<float>("scores", std::vector<float>{0.5f, -1});
  metadata.set_strings("tokens", std::vector<std::string>{"a", "", "ü"});
  metadata.set_booleans("pattern", {true, false});
  GgufWriter(folder / "f", metadata, {}).commit();
  const GgufFile file = GgufFile::open(folder / "f");
  ASSERT_EQ(file.metadata().size(), 6u);
  EXPECT_EQ(file.metadata()[0].key(), "a");
  EXPECT_EQ(file.value("a").type(), GgufType::i8);
  EXPECT_EQ(file.value("a").integer(-5), -2);
  EXPECT_EQ(file.value("text").string(), "x");
  EXPECT_TRUE(file.value("flag").boolean());
  EXPECT_EQ(file.value("scores").numbers(), (std::vector<double>{0.5, -1}));
  EXPECT_EQ(file.value("tokens").strings(), (std::vector<std::string_view>{"a", "", "ü"}));
  EXPECT_EQ(file.value("pattern").booleans(), (std::vector<bool>{true, false}));
}

TEST(GgufWriter, RefusesWhatTheFormatCannotHold) {
  const TemporaryFolder folder;
  const BlockFormat* plain = find_block_format("F32");
  const auto refusal = [&](std::vector<TensorView> tensors, const GgufMetadata& metadata = {}) {
    return error_of([&] { GgufWriter(folder / "f", metadata, tensors); });
  };
  EXPECT_NE(refusal({{"", f32, {1}, {}, plain}}).find("0 bytes"), std::string::npos);
  EXPECT_NE(refusal({{std::string(65, 'n'), f32, {1}, {}, plain}}).find("65 bytes (allowed: 1..64)"), std::string::npos);
  EXPECT_NE(refusal({{"w", f32, {1, 1, 1, 1, 1}, {}, plain}}).find("5 dimensions"), std::string::npos);
  EXPECT_NE(refusal({{"w", f32, {}, {}, plain}}).find("0 dimensions"), std::string::npos);
  EXPECT_NE(refusal({{"w", f32, {33}, {}, find_block_format("Q4_0")}}).find("33 values are no multiple of a block of Q4_0, 32"),
            std::string::npos);
  EXPECT_NE(refusal({{"w", f32, {INT64_MAX, 2}, {}, plain}}).find("64 bits"), std::string::npos);
  EXPECT_NE(refusal({{"w", f32, {1}, {}, plain}, {"w", f32, {1}, {}, plain}}).find("twice"), std::string::npos);
  GgufMetadata odd;
  odd.set("general.alignment", std::uint32_t{48});
  EXPECT_NE(refusal({}, odd).find("power of two"), std::string::npos);
  EXPECT_NE(error_of([&] { odd.set("", 1.0f); }).find("metadata key ''"), std::string::npos);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(GgufWriter, AnUnfinishedFileLeavesTheOldOne) {
  const TemporaryFolder folder;
  rewrite(open_fixture("malformed/valid.gguf"), folder / "f");
  const std::string before = test::read_text(folder / "f");
  {
    const std::vector<TensorView> tensors{{"w", f32, {8}, {}, find_block_format("F32")}};
    GgufWriter writer(folder / "f", {}, tensors);
    EXPECT_THROW(writer.commit(), InternalError);
    EXPECT_THROW(writer.write(std::vector<std::byte>(33)), InternalError);
  }
  EXPECT_EQ(test::read_text(folder / "f"), before);
  EXPECT_EQ(folder.entries(), 1);
}

}  // namespace
}  // namespace rlx
