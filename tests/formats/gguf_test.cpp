#include "formats/gguf/gguf.h"

#include <bit>
#include <map>
#include <optional>

#include "fixture.h"
#include "formats/gguf/gguf_json.h"
#include "formats/gguf_fixture.h"
#include "formats/temporary_folder.h"
#include "formats/tensors/safetensors.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;
using test::open_fixture;
using test::TemporaryFolder;

/// Floats are recorded by their bits, for JSON has neither NaN nor infinity.
void expect_bits(double seen, const std::string& bits, std::string_view key) {
  const bool is_double = bits.size() == 18;
  EXPECT_EQ(is_double ? fmt::format("0x{:016x}", std::bit_cast<std::uint64_t>(seen))
                      : fmt::format("0x{:08x}", std::bit_cast<std::uint32_t>(static_cast<float>(seen))),
            bits)
      << key;
}

void expect_json(const json::Value& seen, const json::Value& wanted, std::string_view key) {
  if (wanted.is_object()) return expect_bits(seen.get<double>(), wanted["bits"].get<std::string>(), key);
  if (!wanted.is_array()) {
    EXPECT_EQ(seen, wanted) << key;
    return;
  }
  ASSERT_EQ(seen.size(), wanted.size()) << key;
  for (std::size_t i = 0; i < wanted.size(); ++i) expect_json(seen[i], wanted[i], key);
}

TEST(Gguf, MetadataOfEveryTypeIsReadInOrder) {
  const json::Value wanted = json::read_file(fixture("gguf/all_types.metadata.json"))["fields"];
  const std::map<std::string, GgufType> types{{"UINT8", GgufType::u8},    {"INT8", GgufType::i8},      {"UINT16", GgufType::u16},
                                              {"INT16", GgufType::i16},   {"UINT32", GgufType::u32},   {"INT32", GgufType::i32},
                                              {"FLOAT32", GgufType::f32}, {"BOOL", GgufType::boolean}, {"STRING", GgufType::string},
                                              {"ARRAY", GgufType::array}, {"UINT64", GgufType::u64},   {"INT64", GgufType::i64},
                                              {"FLOAT64", GgufType::f64}};
  const GgufFile file = open_fixture("all_types.gguf");
  ASSERT_EQ(file.metadata().size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const GgufValue& value = file.metadata()[i];
    EXPECT_EQ(value.key(), wanted[i]["key"].get<std::string>());
    EXPECT_EQ(value.type(), types.at(wanted[i]["type"].get<std::string>())) << value.key();
    expect_json(to_json(value), wanted[i]["value"], value.key());
  }
}

TEST(Gguf, BothByteOrdersGiveTheSameMetadata) {
  const GgufFile big = open_fixture("big_endian.gguf"), little = open_fixture("all_types.gguf");
  EXPECT_TRUE(big.is_big_endian());
  EXPECT_FALSE(little.is_big_endian());
  ASSERT_EQ(big.metadata().size(), little.metadata().size());
  for (std::size_t i = 0; i < big.metadata().size(); ++i) {
    EXPECT_EQ(big.metadata()[i].key(), little.metadata()[i].key());
    EXPECT_EQ(to_json(big.metadata()[i]).dump(), to_json(little.metadata()[i]).dump()) << big.metadata()[i].key();
  }
}

TEST(Gguf, ContainersSayWhatTheyAre) {
  EXPECT_EQ(open_fixture("alignment64.gguf").alignment(), 64u);
  EXPECT_EQ(open_fixture("alignment8.gguf").alignment(), 8u);
  EXPECT_EQ(open_fixture("version2.gguf").version(), 2u);
  EXPECT_EQ(open_fixture("all_types.gguf").version(), 3u);
  EXPECT_EQ(open_fixture("split-00001-of-00002.gguf").part_names().size(), 2u);
}

TEST(Gguf, EmptyAndOddValuesAreRead) {
  const GgufFile file = open_fixture("edge_metadata.gguf");
  EXPECT_EQ(file.value("empty.string").string(), "");
  EXPECT_TRUE(file.value("empty.array.u32").integers().empty());
  EXPECT_TRUE(file.value("empty.array.string").strings().empty());
  EXPECT_TRUE(file.value("empty.array.array").arrays().empty());
  const auto inner = file.value("array.of.empty.arrays").arrays();
  ASSERT_EQ(inner.size(), 2u);
  EXPECT_EQ(inner[0].size() + inner[1].size(), 0u);
  const auto mixed = file.value("mixed.inner.types").arrays();
  ASSERT_EQ(mixed.size(), 2u);
  EXPECT_EQ(mixed[0].integers(), std::vector<std::int64_t>{-3});
  EXPECT_EQ(mixed[1].strings(), std::vector<std::string_view>{"x"});
  EXPECT_EQ(file.value("string.with.nul").string(), std::string_view("a\0b", 3));
  EXPECT_EQ(file.value("string.not.utf8").string(), "\xff\xfe\x80");
}

/// A file of version 1: lengths, counts and sizes take 32 bits.
std::string version_1_file() {
  std::string out = "GGUF";
  const auto number = [&](auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto text = [&](std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    out += value;
  };
  for (std::uint32_t value : {1u, 1u, 1u}) number(value);  // version, tensors, keys
  text("names");
  for (std::uint32_t value : {9u, 8u, 2u}) number(value);  // array of strings, two of them
  text("a");
  text("bc");
  text("w");
  for (std::uint32_t value : {2u, 1u, 2u, 0u}) number(value);  // rank, 1 x 2, F32
  number(std::uint64_t{0});
  out.resize((out.size() + 31) / 32 * 32, '\0');
  number(1.5f);
  number(-2.0f);
  return out;
}

TEST(Gguf, Version1IsRead) {
  const std::string text = version_1_file();
  const GgufFile file = GgufFile::parse(std::as_bytes(std::span(text)), "old.gguf");
  EXPECT_EQ(file.value("names").strings(), (std::vector<std::string_view>{"a", "bc"}));
  EXPECT_EQ(file.at("w").shape, (std::vector<std::int64_t>{2, 1}));
  const Array array = file.array("w");
  EXPECT_EQ(array.values<float>()[1], -2.0f);
}

TEST(Gguf, PlainTensorsAreNotCopiedAndKeepTheMapping) {
  std::optional<Array> array;
  {
    const GgufFile file = open_fixture("all_types.gguf");
    array = file.array("plain.f64");
    EXPECT_EQ(array->bytes().data(), file.at("plain.f64").data.data());
  }
  EXPECT_EQ(*array, SafetensorsFile::open(fixture("gguf/all_types.safetensors")).array("plain.f64"));
}

TEST(Gguf, TypedAccessSaysWhatItSawAndWhatItWants) {
  const GgufFile file = GgufFile::open(fixture("gguf/all_types.gguf"));
  const std::string where = file.name() + ": key ";
  EXPECT_EQ(error_of([&] { file.value("test.string").integer(); }), where + "'test.string': is string, an integer is needed");
  EXPECT_EQ(error_of([&] { file.value("test.float32").integer(); }), where + "'test.float32': is f32, an integer is needed");
  EXPECT_EQ(error_of([&] { file.value("test.uint8").string(); }), where + "'test.uint8': is u8, a string is needed");
  EXPECT_EQ(error_of([&] { file.value("test.uint8").integer(1, 128); }), where + "'test.uint8': 255 (allowed: 1..128)");
  EXPECT_EQ(error_of([&] { file.value("test.uint64").integer(); }),
            where + "'test.uint64': 18446744073709551615 (allowed: 0..9223372036854775807)");
  EXPECT_EQ(error_of([&] { file.value("test.array.int8").strings(); }),
            where + "'test.array.int8': is an array of i8, an array of strings is needed");
  EXPECT_EQ(error_of([&] { file.value("test.array.int8").integers(0); }),
            where + "'test.array.int8': -128 (allowed: 0..9223372036854775807)");
  EXPECT_EQ(error_of([&] { file.value("test.strin"); }),
            fmt::format("{}'test.strin' is missing among {} (near: 'test.string')", where, file.metadata().size()));
  EXPECT_EQ(file.find_value("nothing"), nullptr);
  EXPECT_EQ(file.value("test.int64").integer(INT64_MIN), INT64_MIN);
  EXPECT_EQ(file.value("test.uint16").number(), 65535.0);
}

/// Copies the two parts of the split fixture under other names.
void copy_parts(const TemporaryFolder& folder, std::string_view first, std::string_view second) {
  if (!first.empty()) std::filesystem::copy_file(fixture("gguf/split-00001-of-00002.gguf"), folder / first);
  if (!second.empty()) std::filesystem::copy_file(fixture("gguf/split-00002-of-00002.gguf"), folder / second);
}

TEST(Gguf, PartsThatAreMissingOrDoubledGiveOneError) {
  const TemporaryFolder folder;
  copy_parts(folder, "a-00001-of-00002.gguf", "");
  EXPECT_EQ(error_of([&] { GgufFile::open(folder / "a-00001-of-00002.gguf"); }),
            (folder / "a-00001-of-00002.gguf").string() + ": of its 2 parts 1 are missing: 'a-00002-of-00002.gguf'");
  copy_parts(folder, "a-00002-of-00002.gguf", "");
  EXPECT_EQ(
      error_of([&] { GgufFile::open(folder / "a-00001-of-00002.gguf"); }),
      (folder / "a-00002-of-00002.gguf").string() + ": holds part 1 of 2 (key 'split.no'), which is there twice, in the place of part 2");
  copy_parts(folder, "", "other.gguf");
  EXPECT_EQ(
      error_of([&] { GgufFile::open(folder / "other.gguf"); }),
      (folder / "other.gguf").string() + ": part 2 of 2: its name must end with '-00002-of-00002.gguf', for the other parts to be found");
}

}  // namespace
}  // namespace rlx
