#include "formats/checkpoint.h"

#include <sys/stat.h>

#include "fixture.h"
#include "formats/temporary_folder.h"

namespace rlx {
namespace {

using test::error_of;
using test::TemporaryFolder;

constexpr std::string_view index_name = "model.safetensors.index.json";

/// A file of one u8[1] tensor per name, whose value is `value`.
void write_shard(const std::filesystem::path& path, std::initializer_list<std::string> names, int value) {
  const std::byte byte{static_cast<unsigned char>(value)};
  std::vector<TensorView> tensors;
  for (const std::string& name : names) tensors.push_back({name, u8, {1}, std::span(&byte, 1)});
  write_safetensors(path, tensors);
}

int value_of(const Checkpoint& checkpoint, std::string_view name) { return std::to_integer<int>(checkpoint.at(name).data[0]); }

/// Two shards with an index whose weight_map is `weight_map`.
void write_sharded(const TemporaryFolder& folder, std::string_view weight_map) {
  write_shard(folder / "model-1.safetensors", {"b", "a"}, 1);
  write_shard(folder / "model-2.safetensors", {"c"}, 2);
  test::write_text(folder / index_name, fmt::format("{{\"metadata\": {{}}, \"weight_map\": {}}}", weight_map));
}

constexpr std::string_view right_map = R"({"a": "model-1.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"})";

TEST(Checkpoint, OpensOneFile) {
  const TemporaryFolder folder;
  write_shard(folder / "any.safetensors", {"x"}, 7);
  EXPECT_EQ(value_of(Checkpoint::open(folder / "any.safetensors"), "x"), 7);
  EXPECT_EQ(value_of(Checkpoint::open(folder.path()), "x"), 7);
}

TEST(Checkpoint, OpensAllShardsOfAnIndex) {
  const TemporaryFolder folder;
  write_sharded(folder, right_map);
  for (const auto& path : {folder.path(), folder / index_name}) {
    const Checkpoint checkpoint = Checkpoint::open(path);
    EXPECT_EQ(checkpoint.files().size(), 2u);
    EXPECT_EQ(checkpoint.names(), (std::vector<std::string_view>{"b", "a", "c"}));
    EXPECT_EQ(value_of(checkpoint, "a"), 1);
    EXPECT_EQ(value_of(checkpoint, "c"), 2);
    EXPECT_EQ(checkpoint.find("d"), nullptr);
    EXPECT_EQ(checkpoint.array("c").owner(), checkpoint.files()[1].owner);
  }
}

TEST(Checkpoint, OpensAGgufFileWithAllItsParts) {
  for (std::string_view name : {"gguf/split-00001-of-00002.gguf", "gguf/alignment64.gguf"}) {
    const Checkpoint checkpoint = Checkpoint::open(test::fixture(name));
    EXPECT_EQ(checkpoint.files().size(), 1u);
    EXPECT_EQ(checkpoint.names().size(), 9u);
    ASSERT_NE(checkpoint.gguf(), nullptr);
    EXPECT_EQ(checkpoint.gguf()->value("general.architecture").string(), "rlx-test");
    EXPECT_EQ(checkpoint.array("w.i32").bytes().data(), checkpoint.at("w.i32").data.data());
  }
}

TEST(Checkpoint, PrefersTheSingleFile) {
  const TemporaryFolder folder;
  write_sharded(folder, right_map);
  write_shard(folder / "model.safetensors", {"a"}, 9);
  EXPECT_EQ(value_of(Checkpoint::open(folder.path()), "a"), 9);
}

TEST(Checkpoint, RefusesANameInTwoFiles) {
  const TemporaryFolder folder;
  write_shard(folder / "p.safetensors", {"x"}, 1);
  write_shard(folder / "q.safetensors", {"y", "x"}, 2);
  EXPECT_EQ(error_of([&] { Checkpoint::open(folder.path()); }),
            fmt::format("{}: tensor 'x' is also in {}", (folder / "q.safetensors").string(), (folder / "p.safetensors").string()));
}

TEST(Checkpoint, RefusesFilesOutsideTheFolder) {
  for (std::string_view file :
       {"../model-1.safetensors", "/etc/passwd", "..", ".", "", "sub/model-1.safetensors", "..\\\\m", "a\\u0000b"}) {
    const TemporaryFolder folder;
    write_sharded(folder, fmt::format("{{\"a\": \"{}\"}}", file));
    EXPECT_NE(error_of([&] { Checkpoint::open(folder.path()); }).find("not the name of a file in this folder"), std::string::npos) << file;
  }
}

TEST(Checkpoint, RefusesAnIndexThatPromisesMoreThanTheShardsHold) {
  const TemporaryFolder folder;
  const auto message = [&](std::string_view weight_map) {
    write_sharded(folder, weight_map);
    return error_of([&] { Checkpoint::open(folder.path()); });
  };
  EXPECT_NE(message(R"({"d": "model-1.safetensors"})").find("'model-1.safetensors' has no tensor 'd'"), std::string::npos);
  EXPECT_NE(message(R"({"a": "model-1.safetensors", "b": "model-2.safetensors"})").find("'model-2.safetensors' has no tensor 'b'"),
            std::string::npos);
  EXPECT_NE(message(R"({"a": "model-3.safetensors"})").find("model-3.safetensors: cannot open: No such file"), std::string::npos);
  EXPECT_NE(message(R"({"a": 1})").find("a string is needed"), std::string::npos);
  EXPECT_NE(message("{}").find("weight_map is empty"), std::string::npos);
  EXPECT_NE(message("[]").find("'weight_map'"), std::string::npos);
  EXPECT_NE(message(R"({"a": "model-1.safetensors", "a": "model-2.safetensors"})").find("duplicate key 'a'"), std::string::npos);
}

TEST(Checkpoint, RefusesPipesWithoutWaiting) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(error_of([&] { Checkpoint::open(folder / "pipe"); }).find("pipe: neither a GGUF file"), std::string::npos);
}

TEST(Checkpoint, NamesFoldersWithoutWeightsAndUnknownTensors) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { Checkpoint::open(folder.path()); }),
            folder.path().string() + ": no safetensors file in this folder (a GGUF file in one is named itself)");
  EXPECT_NE(error_of([&] { Checkpoint::open(folder / "none"); }).find("No such file"), std::string::npos);
  write_shard(folder / "a.safetensors", {"model.bias"}, 1);
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(error_of([&] { checkpoint.at("bias"); }), folder.path().string() + ": no tensor 'bias' among 1 (near: 'model.bias')");
}

}  // namespace
}  // namespace rlx
