#include "models/conversion/quantize_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fixture.h"
#include "formats/gguf/gguf_writer.h"
#include "formats/temporary_folder.h"

namespace rlx {
namespace {

using test::error_of;
using test::TemporaryFolder;

/// Numbers of changing size, the same in every run.
std::vector<float> some_values(std::size_t count) {
  std::vector<float> values(count);
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = (static_cast<float>(state >> 8) / 8388608.0f - 1.0f) * (state % 97 == 0 ? 4.0f : 0.5f);
  }
  return values;
}

constexpr std::int64_t rows = 37, columns = 512;

/// A matrix and a norm in F32.
void write_model(const std::filesystem::path& path, const std::vector<float>& matrix) {
  const BlockFormat* plain = find_block_format("F32");
  const std::vector<TensorView> tensors{{"blk.0.attn_q.weight", f32, {rows, columns}, {}, plain},
                                        {"blk.0.attn_norm.weight", f32, {columns}, {}, plain}};
  GgufMetadata metadata;
  metadata.set("general.architecture", "llama");
  metadata.set("llama.block_count", std::uint32_t{1});
  metadata.set("split.count", std::uint16_t{1});
  GgufWriter writer(path, metadata, tensors);
  writer.write(std::as_bytes(std::span(matrix)));
  writer.write(std::as_bytes(std::span(matrix)).first(columns * sizeof(float)));
  writer.commit();
}

/// An importance matrix of the GGUF kind, for one matrix of `columns` columns.
void write_importance(const std::filesystem::path& path, std::vector<float> sums, float count) {
  const BlockFormat* plain = find_block_format("F32");
  const auto size = static_cast<std::int64_t>(sums.size());
  const std::vector<TensorView> tensors{{"blk.0.attn_q.weight.in_sum2", f32, {1, size}, {}, plain},
                                        {"blk.0.attn_q.weight.counts", f32, {1, 1}, {}, plain}};
  GgufWriter writer(path, {}, tensors);
  writer.write(std::as_bytes(std::span(sums)));
  writer.write(std::as_bytes(std::span(&count, 1)));
  writer.commit();
}

QuantizeReport convert(const std::filesystem::path& in, const std::filesystem::path& out, std::string_view mix,
                       const QuantizeOptions& options = {}) {
  return quantize_model(source_of(GgufFile::open(in)), out, &find_type_mix(mix), options);
}

TEST(QuantizeModel, ReportsTheErrorOfWhatItWrote) {
  const TemporaryFolder folder;
  const std::vector<float> matrix = some_values(rows * columns);
  write_model(folder / "in", matrix);
  const QuantizeReport report = convert(folder / "in", folder / "out", "BF16");
  const GgufFile out = GgufFile::open(folder / "out");
  const Array written = out.array("blk.0.attn_q.weight");
  double error = 0, squares = 0;
  for (std::int64_t i = 0; i < written.size(); ++i) {
    const double source = matrix[static_cast<std::size_t>(i)];
    error += (written.get_double(i) - source) * (written.get_double(i) - source);
    squares += source * source;
  }
  ASSERT_EQ(report.types.size(), 2u);
  EXPECT_EQ(report.types[0].type, "BF16");
  EXPECT_NEAR(report.types[0].relative_error(), std::sqrt(error / squares), 1e-7);  // its sums are in f32 along a row
  EXPECT_GT(report.types[0].relative_error(), 0);
  EXPECT_EQ(report.types[1].relative_error(), 0);
  EXPECT_EQ(out.value("general.file_type").integer(), 32);
  EXPECT_EQ(out.value("general.quantization_version").integer(), 2);
  EXPECT_EQ(out.find_value("split.count"), nullptr);
}

TEST(QuantizeModel, ATypeWithoutANumberForFilesGetsNone) {
  const TemporaryFolder folder;
  write_model(folder / "in", some_values(rows * columns));
  convert(folder / "in", folder / "f16", "F16");
  convert(folder / "f16", folder / "out", "Q8_K");
  const GgufFile out = GgufFile::open(folder / "out");
  EXPECT_EQ(out.find("blk.0.attn_q.weight")->format->name, "Q8_K");
  EXPECT_EQ(out.find_value("general.file_type"), nullptr);
}

TEST(QuantizeModel, NarrowFloatsComeBackFromWideOnes) {
  const TemporaryFolder folder;
  write_model(folder / "in", some_values(rows * columns));
  for (std::string_view narrow : {"F16", "BF16"}) {
    convert(folder / "in", folder / "narrow", narrow);
    convert(folder / "narrow", folder / "wide", "F32");
    convert(folder / "wide", folder / "again", narrow);
    EXPECT_EQ(test::read_text(folder / "again"), test::read_text(folder / "narrow")) << narrow;
  }
}

TEST(QuantizeModel, BytesDoNotDependOnThreads) {
  const TemporaryFolder folder;
  write_model(folder / "in", some_values(rows * columns));
  QuantizeOptions options;
  std::string first;
  for (int threads : {1, 2, 5}) {
    options.threads = threads;
    convert(folder / "in", folder / "out", "F16", options);
    const std::string bytes = test::read_text(folder / "out");
    EXPECT_TRUE(first.empty() || bytes == first) << threads;
    first = bytes;
  }
}

TEST(QuantizeModel, ProgressEndsWithAllValues) {
  const TemporaryFolder folder;
  write_model(folder / "in", some_values(rows * columns));
  std::size_t last = 0, all = 0;
  QuantizeOptions options;
  options.progress = [&](std::size_t done, std::size_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
  };
  convert(folder / "in", folder / "out", "F16", options);
  EXPECT_EQ(last, all);
  EXPECT_EQ(all, static_cast<std::size_t>((rows + 1) * columns));
}

TEST(QuantizeModel, NamesAValueThatTheTypeCannotHold) {
  const TemporaryFolder folder;
  std::vector<float> matrix = some_values(rows * columns);
  matrix[3 * columns + 5] = 1e6f;
  write_model(folder / "in", matrix);
  test::write_text(folder / "out", "old");
  EXPECT_EQ(error_of([&] { convert(folder / "in", folder / "out", "F16"); }),
            (folder / "in").string() + ": tensor 'blk.0.attn_q.weight': row 3, column 5 is 1000000, which F16 cannot hold");
  EXPECT_EQ(test::read_text(folder / "out"), "old");
  EXPECT_EQ(folder.entries(), 2);
}

/// The relative error of rounding to 2^bits numbers between the largest of each block and its negative: what is rounded is off by a step /
/// sqrt(12) in the mean square.
double error_of_rounding(std::span<const float> values, int bits, std::size_t block) {
  double error = 0, squares = 0;
  for (std::size_t first = 0; first < values.size(); first += block) {
    double largest = 0;
    for (const float value : values.subspan(first, block)) {
      largest = std::max(largest, std::abs(double{value}));
      squares += double{value} * value;
    }
    error += static_cast<double>(block) * std::pow(std::ldexp(largest, 1 - bits), 2) / 12;
  }
  return std::sqrt(error / squares);
}

TEST(QuantizeModel, PackedTypesAreWithinTheirErrors) {
  const TemporaryFolder folder;
  const std::vector<float> matrix = some_values(rows * columns);
  write_model(folder / "in", matrix);
  struct Packed {
    std::string_view mix;
    int bits;
    std::size_t block;  // of one scale
  };
  for (const auto& [mix, bits, block] : {Packed{"Q8_0", 8, 32}, Packed{"Q6_K", 6, 16}, Packed{"Q4_K_M", 4, 32}, Packed{"Q4_0", 4, 32}}) {
    const QuantizeReport report = convert(folder / "in", folder / "out", mix);
    const double expected = error_of_rounding(matrix, bits, block);
    EXPECT_GT(report.types[0].relative_error(), expected / 2) << mix;
    EXPECT_LT(report.types[0].relative_error(), expected) << mix;
    EXPECT_LT(report.bytes, report.source_bytes / 3) << mix;
  }
}

TEST(QuantizeModel, ImportantColumnsAreCloser) {
  const TemporaryFolder folder;
  const std::vector<float> matrix = some_values(rows * columns);
  write_model(folder / "in", matrix);
  std::vector<float> sums(columns, 1.0f);
  std::fill(sums.begin(), sums.begin() + columns / 8, 1000.0f);
  write_importance(folder / "imatrix.gguf", sums, 1);
  const ImportanceMatrix importance = ImportanceMatrix::open(folder / "imatrix.gguf");
  const auto error_of_first_columns = [&](const ImportanceMatrix* weights) {
    QuantizeOptions options;
    options.importance = weights;
    convert(folder / "in", folder / "out", "Q4_0", options);
    const Array written = GgufFile::open(folder / "out").array("blk.0.attn_q.weight");
    double error = 0;
    for (std::int64_t row = 0; row < rows; ++row)
      for (std::int64_t column = 0; column < columns / 8; ++column) {
        const auto i = row * columns + column;
        error += std::pow(written.get_double(i) - matrix[static_cast<std::size_t>(i)], 2);
      }
    return error;
  };
  EXPECT_LE(error_of_first_columns(&importance), error_of_first_columns(nullptr));
}

TEST(QuantizeModel, WhatHasItsTypeAlreadyIsCopied) {
  const TemporaryFolder folder;
  write_model(folder / "in", some_values(rows * columns));
  convert(folder / "in", folder / "once", "Q4_K");
  convert(folder / "once", folder / "twice", "Q4_K");
  EXPECT_EQ(test::read_text(folder / "once"), test::read_text(folder / "twice"));
}

TEST(QuantizeModel, ValuesThatAreNotFiniteAreNamed) {
  const TemporaryFolder folder;
  std::vector<float> matrix = some_values(rows * columns);
  matrix[7 * columns + 300] = NAN;
  write_model(folder / "in", matrix);
  EXPECT_NE(error_of([&] { convert(folder / "in", folder / "out", "Q8_0"); }).find("row 7, column 300 is nan, which Q8_0 cannot hold"),
            std::string::npos);
}

TEST(ImportanceMatrix, IsTheMeanSquareOfEachColumn) {
  const TemporaryFolder folder;
  write_importance(folder / "imatrix.gguf", {2, 4, 0, 8}, 4);
  const ImportanceMatrix matrix = ImportanceMatrix::open(folder / "imatrix.gguf");
  const auto columns = matrix.columns("blk.0.attn_q.weight", 4, 1);
  EXPECT_EQ(std::vector<float>(columns.begin(), columns.end()), (std::vector<float>{0.5f, 1, 0, 2}));
  EXPECT_TRUE(matrix.columns("other", 4, 1).empty());
  for (const std::int64_t row : {8, 0})
    EXPECT_NE(error_of([&] { matrix.columns("blk.0.attn_q.weight", row, 1); }).find(fmt::format("4 values, {} columns of 1 matrices", row)),
              std::string::npos);
  write_importance(folder / "bad", {1, -1}, 1);
  EXPECT_NE(error_of([&] { ImportanceMatrix::open(folder / "bad"); }).find("importance -1 (allowed"), std::string::npos);
  test::write_text(folder / "empty", std::string("\1\0\0\0\1\0\0\0a\3\0\0\0\0\0\0\0", 17));  // one entry, "a", 3 calls, no values
  EXPECT_NE(error_of([&] { ImportanceMatrix::open(folder / "empty"); }).find("entry 1 of 1: has no values"), std::string::npos);
  EXPECT_NE(error_of([&] { ImportanceMatrix::open(test::fixture("gguf/all_types.gguf")); }).find("is no importance matrix"),
            std::string::npos);
}

TEST(ImportanceMatrix, TheOlderFormatIsRead) {
  const TemporaryFolder folder;
  std::string text;
  const auto number = [&](auto value) { text.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (std::int32_t value : {1, 3}) number(value);
  text += "a.b";
  for (std::int32_t value : {2, 2}) number(value);  // calls, values
  number(1.0f);
  number(3.0f);
  test::write_text(folder / "old.dat", text);
  const ImportanceMatrix matrix = ImportanceMatrix::open(folder / "old.dat");
  const auto weights = matrix.columns("a.b", 2, 1);
  EXPECT_EQ(std::vector<float>(weights.begin(), weights.end()), (std::vector<float>{0.5f, 1.5f}));
  for (std::size_t size = 0; size < text.size(); ++size) {
    test::write_text(folder / "cut.dat", std::string_view(text).substr(0, size));
    EXPECT_FALSE(error_of([&] { ImportanceMatrix::open(folder / "cut.dat"); }).empty());
  }
}

}  // namespace
}  // namespace rlx
