#include "formats/tensors/npy.h"

#include <bit>
#include <cstring>

#include "fixture.h"
#include "formats/temporary_folder.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;
using test::TemporaryFolder;

using Shape = std::vector<std::int64_t>;

/// A version 1.0 file in memory.
std::string file_of(std::string_view header, std::string_view data) {
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xFF);
  out += static_cast<char>(header.size() >> 8);
  return out.append(header).append(data);
}

Array parse(std::string_view file) { return parse_npy(std::as_bytes(std::span(file)), "x.npy"); }
std::string parse_error(std::string_view header, std::string_view data = "") {
  return error_of([&] { parse(file_of(header, data)); });
}
std::string header(std::string_view descr, std::string_view order, std::string_view shape) {
  return fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", descr, order, shape);
}

std::vector<double> doubles_of(const Array& array) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < array.size(); ++i) out.push_back(array.get_double(i));
  return out;
}

const std::vector<double> zero_to_seven{0, 1, 2, 3, 4, 5, 6, 7};

TEST(Npy, ReadsTheValuesOfEveryValidFixture) {
  for (std::string_view name : {"valid", "valid_v2", "valid_v3", "valid_big_endian", "valid_one_dim", "valid_spacing"}) {
    const Array array = load_npy(fixture(fmt::format("npy/malformed/{}.npy", name)));
    EXPECT_EQ(array.dtype(), f32);
    EXPECT_EQ(doubles_of(array), zero_to_seven) << name;
  }
  EXPECT_EQ(load_npy(fixture("npy/malformed/valid.npy")).shape(), (Shape{2, 4}));
  EXPECT_EQ(load_npy(fixture("npy/malformed/valid_one_dim.npy")).shape(), (Shape{8}));
  EXPECT_EQ(load_npy(fixture("npy/malformed/valid_scalar.npy")).shape(), Shape{});
  EXPECT_EQ(load_npy(fixture("npy/malformed/valid_zero.npy")).shape(), (Shape{0, 3}));
}

TEST(Npy, ColumnMajorBecomesRowMajor) {
  const Array array = load_npy(fixture("npy/malformed/valid_fortran.npy"));
  EXPECT_EQ(array.shape(), (Shape{2, 4}));
  EXPECT_EQ(doubles_of(array), (std::vector<double>{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(Npy, ColumnMajorOfRankThreeWithBigEndianElements) {
  // Element (i, j, k) of shape (2, 3, 2) has the value 100 i + 10 j + k.
  std::string data;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) data += {'\0', static_cast<char>(100 * i + 10 * j + k)};
  const Array array = parse(file_of(header(">i2", "True", "(2, 3, 2)"), data));
  EXPECT_EQ(doubles_of(array), (std::vector<double>{0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121}));
}

TEST(Npy, BigEndianComplexNumbersSwapEachPart) {
  const std::string data("\x3f\x80\x00\x00\xc0\x00\x00\x00", 8);  // 1 - 2i
  EXPECT_EQ(parse(file_of(header(">c8", "False", "()"), data)).get_complex(0), (std::complex<double>{1, -2}));
}

TEST(Npy, LittleEndianRowMajorDataStaysMapped) {
  const Array array = load_npy(fixture("npy/malformed/valid.npy"));
  EXPECT_NE(array.owner(), nullptr);
  // The data begins at byte 128 of a page, where the file is mapped; a copy would lie at an address of the heap's choice.
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.bytes().data()) % 4096, 128u);
}

TEST(Npy, EveryDtypeRoundTrips) {
  const TemporaryFolder folder;
  int written = 0;
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3, 4}, Shape{0, 3}}) {
      Array array(dtype, shape);
      for (std::int64_t k = 0; k < array.size(); ++k) array.set_double(k, is_bool(dtype) ? k % 2 : static_cast<double>(k % 8));
      const auto path = folder / "a.npy";
      save_npy(path, array);
      EXPECT_EQ(load_npy(path), array) << name(dtype);
      EXPECT_EQ(test::read_text(path).find('\n') % 64, 63u);
      ++written;
    }
  }
  EXPECT_EQ(written, 19 * 4);
}

TEST(Npy, WritesTheBytesThatNumpyWrites) {
  const TemporaryFolder folder;
  for (std::string_view name : {"valid", "valid_one_dim", "valid_scalar", "valid_zero"}) {
    const auto path = fixture(fmt::format("npy/malformed/{}.npy", name));
    save_npy(folder / "copy.npy", load_npy(path));
    EXPECT_EQ(test::read_text(folder / "copy.npy"), test::read_text(path)) << name;
  }
}

// Written by numpy 2.4 with ml_dtypes 0.6 (tests/fixtures/npy/ml_dtypes/record.py), under the names of the types.
TEST(Npy, TypesOfMlDtypesAreFilesThatNumpyReads) {
  const TemporaryFolder folder;
  const std::vector<double> values{0, 1, -2, 3, -4, 7};
  for (const auto& [type, dtype] : {std::pair{"bfloat16", bf16}, {"float8_e4m3fn", f8e4m3}, {"float8_e5m2", f8e5m2}, {"int4", i4}}) {
    const auto path = fixture(fmt::format("npy/ml_dtypes/{}.npy", type));
    const Array array = load_npy(path);
    EXPECT_EQ(array.dtype(), dtype);
    EXPECT_EQ(array.shape(), (Shape{2, 3}));
    EXPECT_EQ(doubles_of(array), values) << type;
    save_npy(folder / "copy.npy", array);
    EXPECT_EQ(test::read_text(folder / "copy.npy"), test::read_text(path)) << type;
  }
  EXPECT_EQ(doubles_of(load_npy(fixture("npy/ml_dtypes/uint4.npy"))), (std::vector<double>{0, 1, 14, 3, 12, 7}));
}

TEST(Npy, LayoutsThatNumpySavesForThemAreReadWhereTheyNameAType) {
  EXPECT_EQ(doubles_of(parse(file_of(header("<V2", "False", "(3,)"), std::string_view("\0\0\x80\x3F\0\xC0", 6)))),
            (std::vector<double>{0, 1, -2}));
  EXPECT_EQ(parse(file_of(header("<f1", "False", "(1,)"), "\x3C")).dtype(), f8e5m2);
  EXPECT_EQ(parse_error(header("<V1", "False", "(1,)"), "a"),
            "x.npy: dtype '<V1' does not say which type of 4 or 8 bits it is (float8_e4m3fn, int4 and uint4 do)");
}

TEST(Npy, AFailedWriteKeepsTheOldFile) {
  const TemporaryFolder folder;
  save_npy(folder / "a.npy", Array(f32, {3}));
  const std::string before = test::read_text(folder / "a.npy");
  EXPECT_THROW(save_npy(folder / "a.npy", Array(f32, Shape(65, 1))), Error);
  EXPECT_EQ(test::read_text(folder / "a.npy"), before);
  EXPECT_THROW(save_npy(folder / "none/a.npy", Array(f32, {3})), Error);
  EXPECT_EQ(folder.entries(), 1);
}

TEST(Npy, ErrorsSayWhatIsWrong) {
  EXPECT_EQ(parse_error(header("<f4", "False", "(2, 4)"), "123"), "x.npy: f32[2,4] takes 32 bytes, the file holds 3 after its header");
  EXPECT_EQ(parse_error(header("|O", "False", "(2,)")), "x.npy: unsupported dtype '|O': objects are pickles, which are never loaded");
  EXPECT_EQ(parse_error("{'descr': '<f4', 'fortran_order': False, 'shape': (2 4)}"),
            "x.npy: header: byte 53: shape: ',' or ')' is expected, not '4)}'");
}

TEST(Npy, TakesNothingThatIsNotTheLiteralNumpyWrites) {
  for (std::string_view bad :
       {"", "{", "{}", "{'descr'}", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "{'descr': '<f4',, 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f4' 'fortran_order': False, 'shape': ()}", "{'descr': '<f\\x34', 'fortran_order': False, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': Falsey, 'shape': ()}", "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (01,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1.0,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': [1]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (0x1,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1_0,)}"})
    EXPECT_TRUE(parse_error(bad, "1234").starts_with("x.npy: header: ")) << bad << "\n" << parse_error(bad, "1234");
  EXPECT_TRUE(
      parse_error(std::string_view("{'descr': '<f4', 'fortran_order': False, 'shape': ()}\0", 54), "1234").starts_with("x.npy: header: "));
}

TEST(Npy, RefusesDtypesOfUnclearByteOrder) {
  for (std::string_view descr :
       {"f4", "=f4", "|f4", "|i2", "", "<", "<f", "<f44", "<U4", "|S4", "<M8[s]", "|V2", "<f16", "float32", "float8_e4m3", "|bfloat16"})
    EXPECT_NE(parse_error(header(descr, "False", "()"), "1234").find("unsupported dtype"), std::string::npos) << descr;
  EXPECT_EQ(parse(file_of(header(">u1", "False", "(2,)"), "ab")).get_int(1), 'b');
}

TEST(Npy, ShapesOfManyDimensionsEndAtNumpysLimit) {
  const auto ones = [](int rank) {
    std::string out = "(";
    for (int i = 0; i < rank; ++i) out += "1, ";
    return out + ")";
  };
  EXPECT_EQ(parse(file_of(header("|u1", "True", ones(64)), "a")).rank(), 64);
  EXPECT_NE(parse_error(header("|u1", "True", ones(65)), "a").find("more than 64 dimensions"), std::string::npos);
}

}  // namespace
}  // namespace rlx
