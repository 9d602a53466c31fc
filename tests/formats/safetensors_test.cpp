#include "formats/tensors/safetensors.h"

#include <bit>
#include <cstring>
#include <optional>

#include "fixture.h"
#include "formats/temporary_folder.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;
using test::TemporaryFolder;

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(i * 37 + 11);
  return out;
}

std::vector<float> floats_of(const Array& array) {
  const auto values = array.values<float>();
  return {values.begin(), values.end()};
}

/// A file in memory from its header and the size of its data.
std::vector<std::byte> file_of(std::string_view header, std::size_t data_bytes) {
  std::vector<std::byte> out(8 + header.size() + data_bytes);
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, 8);
  std::memcpy(out.data() + 8, header.data(), header.size());
  return out;
}

std::string parse_error(std::string_view header, std::size_t data_bytes) {
  const auto bytes = file_of(header, data_bytes);
  return error_of([&] { SafetensorsFile::parse(bytes, "model.safetensors"); });
}

const std::vector<float> zero_to_seven_f32{0, 1, 2, 3, 4, 5, 6, 7};  // what all valid files of the fixtures hold

TEST(Safetensors, GivesNamesTypesShapesAndValues) {
  const SafetensorsFile file = SafetensorsFile::open(fixture("safetensors/malformed/valid.safetensors"));
  ASSERT_EQ(file.tensors().size(), 2u);
  const TensorView& w = file.at("w");
  EXPECT_EQ(w.dtype, f32);
  EXPECT_EQ(w.shape, (std::vector<std::int64_t>{2, 4}));
  EXPECT_EQ(floats_of(file.array("w")), zero_to_seven_f32);
  EXPECT_EQ(file.at("v").dtype, u8);
  EXPECT_EQ(file.at("v").data.size(), 3u);
  EXPECT_EQ(file.find("x"), nullptr);
}

TEST(Safetensors, KeepsTheOrderOfTheHeader) {
  const SafetensorsFile file = SafetensorsFile::open(fixture("safetensors/malformed/valid_unordered.safetensors"));
  EXPECT_EQ(file.tensors()[0].name, "w");
  EXPECT_EQ(file.tensors()[1].name, "v");
  EXPECT_EQ(floats_of(file.array("v")), zero_to_seven_f32);
}

TEST(Safetensors, ReadsMetadataAndEscapedNames) {
  const SafetensorsFile meta = SafetensorsFile::open(fixture("safetensors/malformed/valid_metadata.safetensors"));
  EXPECT_EQ(meta.metadata(), (Metadata{{"format", "pt"}, {"note", "é \" \\ \n"}}));
  EXPECT_EQ(meta.tensors().size(), 1u);
  EXPECT_NE(SafetensorsFile::open(fixture("safetensors/malformed/valid_escapes.safetensors")).find("aé😀\n\""), nullptr);
}

TEST(Safetensors, ScalarsAndEmptyTensorsHaveTheirShapes) {
  EXPECT_TRUE(SafetensorsFile::open(fixture("safetensors/malformed/valid_empty.safetensors")).tensors().empty());
  EXPECT_TRUE(SafetensorsFile::open(fixture("safetensors/malformed/valid_scalar.safetensors")).at("w").shape.empty());
  const SafetensorsFile zero = SafetensorsFile::open(fixture("safetensors/malformed/valid_zero_dim.safetensors"));
  EXPECT_EQ(zero.at("w").shape, (std::vector<std::int64_t>{0, 5}));
  EXPECT_TRUE(zero.at("w").data.empty());
}

TEST(Safetensors, UnalignedDataIsReadable) {
  const SafetensorsFile file = SafetensorsFile::open(fixture("safetensors/malformed/valid_unaligned_header.safetensors"));
  ASSERT_NE(reinterpret_cast<std::uintptr_t>(file.at("w").data.data()) % alignof(float), 0u);
  EXPECT_EQ(floats_of(file.array("w")), zero_to_seven_f32);
}

TEST(Safetensors, ArraysAreNotCopiedAndKeepTheMapping) {
  std::optional<Array> array;
  {
    const SafetensorsFile file = SafetensorsFile::open(fixture("safetensors/malformed/valid.safetensors"));
    array = file.array("w");
    EXPECT_EQ(array->bytes().data(), file.at("w").data.data());
    EXPECT_EQ(array->owner(), file.mapping());
  }
  EXPECT_EQ(floats_of(*array), zero_to_seven_f32);
}

TEST(Safetensors, ErrorsNameFileTensorAndField) {
  EXPECT_EQ(parse_error(R"({"a":{"dtype":"F32","shape":[16],"data_offsets":[0,99]}})", 64),
            "model.safetensors: tensor 'a': data_offsets [0, 99] end past the data (64 bytes)");
  EXPECT_EQ(parse_error(R"({"a":{"dtype":"F16","shape":[8],"data_offsets":[0,32]}})", 32),
            "model.safetensors: tensor 'a': f16[8] takes 16 bytes, data_offsets [0, 32] hold 32");
  EXPECT_EQ(parse_error(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", 6),
            "model.safetensors: tensor 'b': data_offsets [2, 6] overlap tensor 'a'");
  EXPECT_TRUE(parse_error(R"({"a":{"dtype":"F4","shape":[8],"data_offsets":[0,4]}})", 4)
                  .starts_with("model.safetensors: tensor 'a': unsupported dtype 'F4' (allowed: F64, F32, "));
}

TEST(Safetensors, RefusesAnEmptyTensorInsideAnother) {
  EXPECT_NE(parse_error(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})", 4)
                .find("overlap"),
            std::string::npos);
}

TEST(Safetensors, UnknownNamesListNearOnes) {
  const auto bytes = file_of(R"({"model.pooler.weight":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1);
  const SafetensorsFile file = SafetensorsFile::parse(bytes, "m.safetensors");
  EXPECT_EQ(error_of([&] { file.at("pooler.weight"); }), "m.safetensors: no tensor 'pooler.weight' among 1 (near: 'model.pooler.weight')");
}

TEST(Safetensors, EveryDtypeOfTheFormatRoundTrips) {
  const TemporaryFolder folder;
  std::vector<std::vector<std::byte>> storage;
  std::vector<TensorView> tensors;
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (safetensors_dtype_name(dtype).empty()) continue;
    EXPECT_EQ(parse_safetensors_dtype(safetensors_dtype_name(dtype)), dtype);
    storage.push_back(some_bytes(static_cast<std::size_t>(bytes_for(dtype, 15))));
    tensors.push_back({std::string("t.") + std::string(name(dtype)), dtype, {3, 5}, storage.back()});
  }
  ASSERT_EQ(tensors.size(), 16u);  // all of ours but i4, u4 and c128
  tensors.push_back({"scalar", f64, {}, std::span(storage[3]).first(8)});
  tensors.push_back({"none", bf16, {2, 0}, {}});
  const Metadata metadata{{"format", "pt"}, {"é\n", "\"x\""}};
  write_safetensors(folder / "all.safetensors", tensors, metadata);

  const SafetensorsFile read = SafetensorsFile::open(folder / "all.safetensors");
  EXPECT_EQ(read.metadata(), metadata);
  ASSERT_EQ(read.tensors().size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorView& got = read.tensors()[i];
    EXPECT_EQ(got.name, tensors[i].name);
    EXPECT_EQ(got.dtype, tensors[i].dtype);
    EXPECT_EQ(got.shape, tensors[i].shape);
    EXPECT_TRUE(std::equal(got.data.begin(), got.data.end(), tensors[i].data.begin(), tensors[i].data.end())) << got.name;
    EXPECT_EQ(read.array(got.name).bytes().data(), got.data.data()) << "written unaligned: " << got.name;
  }
}

TEST(Safetensors, WritesTheBytesOfTheFixtures) {
  const TemporaryFolder folder;
  for (std::string_view name : {"valid", "valid_unordered", "valid_empty", "valid_scalar", "valid_zero_dim"}) {
    const auto path = fixture(fmt::format("safetensors/malformed/{}.safetensors", name));
    write_safetensors(folder / "copy", SafetensorsFile::open(path).tensors());
    EXPECT_EQ(test::read_text(folder / "copy"), test::read_text(path)) << name;
  }
}

TEST(Safetensors, WriterRefusesWhatTheFormatCannotHold) {
  const TemporaryFolder folder;
  const auto bytes = some_bytes(16);
  const auto refusal = [&](std::vector<TensorView> tensors) { return error_of([&] { write_safetensors(folder / "f", tensors); }); };
  EXPECT_NE(refusal({{"a", c128, {1}, bytes}}).find("no dtype for c128"), std::string::npos);
  EXPECT_NE(refusal({{"a", i4, {32}, bytes}}).find("no dtype for i4"), std::string::npos);
  EXPECT_NE(refusal({{"a", u8, {15}, bytes}}).find("takes 15 bytes, 16 were given"), std::string::npos);
  EXPECT_NE(refusal({{"a", u8, {-16}, bytes}}).find("-16"), std::string::npos);
  EXPECT_NE(refusal({{"a", u8, {16}, bytes}, {"a", u8, {16}, bytes}}).find("twice"), std::string::npos);
  EXPECT_NE(refusal({{"__metadata__", u8, {16}, bytes}}).find("reserved"), std::string::npos);
  EXPECT_NE(refusal({{"\xff", u8, {16}, bytes}}).find("UTF-8"), std::string::npos);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(Safetensors, AFailedWriteKeepsTheOldFile) {
  const TemporaryFolder folder;
  const auto bytes = some_bytes(16);
  const std::vector<TensorView> good{{"a", u8, {16}, bytes}}, bad{{"a", u8, {17}, bytes}};
  write_safetensors(folder / "f", good);
  const std::string before = test::read_text(folder / "f");
  EXPECT_THROW(write_safetensors(folder / "f", bad), Error);
  EXPECT_EQ(test::read_text(folder / "f"), before);
  EXPECT_THROW(write_safetensors(folder / "none/f", good), Error);
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Safetensors, SavesAndLoadsArraysByName) {
  const TemporaryFolder folder;
  const NamedArrays arrays{{"w", Array::of<float>({2, 2}, std::vector<float>{1, 2, 3, 4})},
                           {"b", Array::of<std::int8_t>({3}, std::vector<std::int8_t>{-1, 0, 1})},
                           {"empty", Array(f64, {0, 5})}};
  const Metadata metadata{{"step", "12"}};
  save_safetensors(folder / "f", arrays, metadata);
  const TensorFile loaded = load_safetensors(folder / "f");
  EXPECT_EQ(loaded.arrays, arrays);
  EXPECT_EQ(loaded.metadata, metadata);
}

TEST(Safetensors, LoadedArraysKeepTheirFileMapped) {
  const TemporaryFolder folder;
  save_safetensors(folder / "f", {{"w", Array::of<float>({2}, std::vector<float>{3, 4})}});
  const Array w = load_safetensors(folder / "f").arrays.at("w");
  std::filesystem::remove(folder / "f");
  EXPECT_EQ(w.values<float>()[1], 4);
}

TEST(Safetensors, AFileCanReplaceItsOwnSource) {
  const TemporaryFolder folder;
  const auto bytes = some_bytes(16);
  write_safetensors(folder / "f", std::vector<TensorView>{{"a", u8, {16}, bytes}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "f");
  write_safetensors(folder / "f", file.tensors(), {{"k", "v"}});
  const SafetensorsFile again = SafetensorsFile::open(folder / "f");
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), again.at("a").data.begin()));
  EXPECT_EQ(again.metadata().at("k"), "v");
}

}  // namespace
}  // namespace rlx
