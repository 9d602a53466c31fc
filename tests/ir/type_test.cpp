#include "rlx/type.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "message.h"
#include "rlx/array.h"

namespace rlx {
namespace {

using test::error_of;

DType at(std::size_t i) { return static_cast<DType>(i); }

TEST(Type, NamesElementTypeAndShape) {
  const Type type{bf16, {Dim::symbol("B", 4), 3}};
  EXPECT_EQ(type.to_string(), "bf16[B,3]");
  EXPECT_EQ((Type{boolean, {}}).to_string(), "bool[]");
  EXPECT_FALSE(type.is_static());
  EXPECT_EQ(type.size().to_string(), "3*B");
}

TEST(DType, NamesReadBack) {
  for (std::size_t i = 0; i < dtype_table.size(); ++i) EXPECT_EQ(parse_dtype(name(at(i))), at(i));
  EXPECT_FALSE(parse_dtype("float32"));
  EXPECT_FALSE(parse_dtype(""));
}

TEST(DType, PromotionIsCommutativeAndKeepsEqualTypes) {
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    EXPECT_EQ(promote(at(i), at(i)), at(i));
    EXPECT_EQ(promote(boolean, at(i)), at(i));
    for (std::size_t j = 0; j < dtype_table.size(); ++j)
      EXPECT_EQ(promote(at(i), at(j)), promote(at(j), at(i))) << name(at(i)) << " " << name(at(j));
  }
}

TEST(DType, PromotionFollowsTheTable) {
  EXPECT_EQ(promote(f16, bf16), f32);
  EXPECT_EQ(promote(f8e4m3, f8e5m2), f16);
  EXPECT_EQ(promote(f16, i64), f16);
  EXPECT_EQ(promote(u8, i8), i16);
  EXPECT_EQ(promote(u4, i4), i8);
  EXPECT_EQ(promote(u64, i8), i64);
  EXPECT_EQ(promote(i32, u16), i32);
  EXPECT_EQ(promote(c64, f64), c128);
  EXPECT_EQ(promote(c64, f32), c64);
}

TEST(Array, FourBitElementsArePackedLowNibbleFirst) {
  Array array(i4, {3});
  array.set_int(0, 1);
  array.set_int(1, -2);
  array.set_int(2, 7);
  ASSERT_EQ(array.bytes().size(), 2u);
  EXPECT_EQ(array.bytes()[0], std::byte{0xE1});
  EXPECT_EQ(array.get_int(1), -2);
}

TEST(Array, StoringSaturatesFloatsAndWrapsIntegers) {
  Array small(i8, {1}), natural(u8, {1});
  small.set_double(0, 1000);
  EXPECT_EQ(small.get_int(0), 127);
  small.set_double(0, std::nan(""));
  EXPECT_EQ(small.get_int(0), 0);
  small.set_int(0, 130);
  EXPECT_EQ(small.get_int(0), -126);
  natural.set_double(0, -5);
  EXPECT_EQ(natural.get_uint(0), 0u);
}

TEST(Array, SizesAreChecked) {
  EXPECT_THROW(Array(f32, {-1}), Error);
  EXPECT_THROW(Array(f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
  EXPECT_THROW(Array(f32, {std::int64_t{1} << 61}), Error);
  const Array floats(f32, {2});
  EXPECT_THROW(floats.values<double>(), Error);
  const Array whole(f32, {4});
  EXPECT_THROW(Array(f32, {3}, whole.bytes(), whole.owner()), Error);
}

TEST(Array, ElementsOutsideAreErrors) {
  const auto message = [](const Array& array, std::int64_t i) { return error_of([&] { array.get_double(i); }); };
  EXPECT_EQ(message(Array(f32, {2, 3}), 6), "array: index 6 of f32[2,3] (allowed: 0..5)");
  EXPECT_EQ(message(Array(), 0), "array: index 0 of f32[], which has no elements");
  for (std::size_t t = 0; t < dtype_table.size(); ++t) {
    Array array(at(t), {3});
    const Array view(array.dtype(), array.shape(), array.bytes(), array.owner());
    for (const std::int64_t i : {std::int64_t{-1}, std::int64_t{3}, std::numeric_limits<std::int64_t>::max()}) {
      EXPECT_THROW(array.get_double(i), Error);
      EXPECT_THROW(array.get_int(i), Error);
      EXPECT_THROW(array.get_uint(i), Error);
      EXPECT_THROW(array.get_complex(i), Error);
      EXPECT_THROW(array.set_double(i, 1), Error);
      EXPECT_THROW(array.set_int(i, 1), Error);
      EXPECT_THROW(array.set_uint(i, 1), Error);
      EXPECT_THROW(array.set_complex(i, 1), Error);
    }
    EXPECT_EQ(view.get_double(2), 0);
    EXPECT_THROW(Array(view).set_double(0, 1), InternalError);
  }
}

}  // namespace
}  // namespace rlx
