#include "quant/block_parts.h"

#include <array>

#include "quant/schemes.h"

namespace rlx {
namespace quant {
namespace {

using Block = const BlockBytes&;

template <class Scheme, auto code>
void codes_of(const std::byte* bytes, std::int8_t* codes) {
  const BlockBytes block{bytes};
  for (int j = 0; j < static_cast<int>(Scheme::values); ++j) codes[j] = static_cast<std::int8_t>(code(block, j));
}

/// `number`: of group g.
template <class Scheme, int group, auto number>
void of_groups(const std::byte* bytes, float* numbers) {
  const BlockBytes block{bytes};
  for (int g = 0; g < static_cast<int>(Scheme::values) / group; ++g) numbers[g] = number(block, g);
}

template <class Scheme, int group, auto code, auto scale>
constexpr BlockParts scaled(int lowest, int highest, int scale_bits, int distinct = 0) {
  return {Scheme::name,
          group,
          lowest,
          highest,
          distinct > 0 ? distinct : highest - lowest + 1,
          scale_bits,
          codes_of<Scheme, code>,
          of_groups<Scheme, group, scale>,
          nullptr};
}
template <class Scheme, int group, auto code, auto scale, auto min>
constexpr BlockParts line(int highest, int scale_bits) {
  return {Scheme::name,
          group,
          0,
          highest,
          highest + 1,
          scale_bits,
          codes_of<Scheme, code>,
          of_groups<Scheme, group, scale>,
          of_groups<Scheme, group, min>};
}

/// Of a unit and an integer for each group.
template <auto unit, auto factor>
float product(Block b, int g) {
  return unit(b) * real(factor(b, g));
}
template <class Scheme, int group, auto unit, auto factor>
constexpr BlockParts::Levels levels{[](const std::byte* bytes, std::int8_t* factors) {
                                      const BlockBytes block{bytes};
                                      for (int g = 0; g < static_cast<int>(Scheme::values) / group; ++g)
                                        factors[g] = static_cast<std::int8_t>(factor(block, g));
                                    },
                                    [](const std::byte* bytes, float* number) { *number = unit(BlockBytes{bytes}); }};

template <class Scheme, int group, auto code, auto unit, auto factor>
constexpr BlockParts scaled_twice(int lowest, int highest, int scale_bits, int distinct = 0) {
  BlockParts parts = scaled<Scheme, group, code, product<unit, factor>>(lowest, highest, scale_bits, distinct);
  parts.scale_levels = levels<Scheme, group, unit, factor>;
  return parts;
}
template <class Scheme, int group, auto code, auto unit, auto factor, auto min_unit, auto min_factor>
constexpr BlockParts line_twice(int highest, int scale_bits) {
  BlockParts parts = line<Scheme, group, code, product<unit, factor>, product<min_unit, min_factor>>(highest, scale_bits);
  parts.scale_levels = levels<Scheme, group, unit, factor>;
  parts.minimum_levels = levels<Scheme, group, min_unit, min_factor>;
  return parts;
}

template <class Scheme>
int low(Block b, int j) {
  return get(b, Scheme::low(j));
}
template <class Scheme>
int low_and_high(Block b, int j) {
  return get(b, Scheme::low(j)) | get(b, Scheme::high(j));
}
template <int offset>
float half_at(Block b, int /*group*/) {
  return b.f16(offset);
}
template <const auto& table, class Scheme>
int looked_up(Block b, int j) {
  return look_up(table, get(b, Scheme::low(j)));
}
int packed_scale(Block b, int g) { return PackedScales::scale(b, g); }
int packed_min(Block b, int g) { return PackedScales::min(b, g); }
/// The half at an offset, divided by a power of two.
template <int offset, int parts = 1>
float unit_at(Block b) {
  return b.f16(offset) * (1.0F / parts);
}

// The grids: as in the schemes' own expressions, with integers for what they multiply.
int even_sign(int seven_bits) { return look_up(even_signs, seven_bits & 127); }
/// Scales are odd multiples of a unit.
int odd(int bits) { return 2 * bits + 1; }
int iq2_code(int point, int signs, int j) { return with_sign(look_up(iq2_values, coordinate8(point, j % 8)), signs, j % 8); }
/// Eighths: the shift of an eighth is one of them.
int iq1_code(int point, bool minus, int j) { return 8 * (coordinate8(point, j % 8) - 1) + (minus ? -1 : 1); }

constexpr auto iq2_xxs_code = [](Block b, int j) {
  return iq2_code(look_up(iq2_xxs_grid, b.u8(2 + j / 32 * 8 + j / 8 % 4)), even_sign(b.i32(6 + j / 32 * 8) >> (j / 8 % 4 * 7)), j);
};
constexpr auto iq2_xs_code = [](Block b, int j) {
  const int both = b.u16(2 + j / 8 * 2);
  return iq2_code(look_up(iq2_xs_grid, both & 511), even_sign(both >> 9), j);
};
constexpr auto iq2_s_code = [](Block b, int j) {
  return iq2_code(look_up(iq2_s_grid, low_and_high<IQ2_S>(b, j / 8)), b.u8(IQ2_S::signs_at + j / 8), j);
};
constexpr auto iq3_xxs_code = [](Block b, int j) {
  const int value = look_up(iq3_xxs_values, coordinate4(look_up(iq3_xxs_grid, b.u8(2 + j / 4)), j % 4));
  return with_sign(value, even_sign(b.i32(66 + j / 32 * 4) >> (j / 8 % 4 * 7)), j % 8);
};
constexpr auto iq3_s_code = [](Block b, int j) {
  const int value = coordinate4(look_up(iq3_s_grid, low_and_high<IQ3_S>(b, j / 4)), j % 4) * 2 + 1;
  return with_sign(value, b.u8(IQ3_S::signs_at + j / 8), j % 8);
};
constexpr auto iq1_s_code = [](Block b, int j) {
  const int high = b.u16(IQ1_S::high_at + j / 32 * 2);
  return iq1_code(look_up(iq1_grid, b.u8(2 + j / 8) | ((high >> (j / 8 % 4 * 3)) & 7) << 8), (high & 0x8000) != 0, j);
};
constexpr auto iq1_m_code = [](Block b, int j) {
  return iq1_code(look_up(iq1_grid, low_and_high<IQ1_M>(b, j / 8)), get(b, IQ1_M::minus(j / 8)) != 0, j);
};

constexpr std::array all{
    scaled<Q4_0, 32, [](Block b, int j) { return low<Q4_0>(b, j) - 8; }, half_at<0>>(-8, 7, 11),
    line<Q4_1, 32, low<Q4_1>, half_at<0>, [](Block b, int) { return -b.f16(2); }>(15, 11),
    scaled<Q5_0, 32, [](Block b, int j) { return low_and_high<Q5_0>(b, j) - 16; }, half_at<0>>(-16, 15, 11),
    line<Q5_1, 32, low_and_high<Q5_1>, half_at<0>, [](Block b, int) { return -b.f16(2); }>(31, 11),
    scaled<Q8_0, 32, [](Block b, int j) { return b.i8(2 + j); }, half_at<0>>(-128, 127, 11),
    scaled<Q8_1, 32, [](Block b, int j) { return b.i8(4 + j); }, half_at<0>>(-128, 127, 11),
    line_twice<Q2_K, 16, low<Q2_K>, unit_at<Q2_K::scale_at>, [](Block b, int g) { return get(b, Q2_K::scale_low(g)); },
               unit_at<Q2_K::min_at>, [](Block b, int g) { return get(b, Q2_K::min_low(g)); }>(3, 15),
    scaled_twice<Q3_K, 16, [](Block b, int j) { return low_and_high<Q3_K>(b, j) - 4; }, unit_at<Q3_K::scale_at>,
                 [](Block b, int g) { return (get(b, Q3_K::scale_low(g)) | get(b, Q3_K::scale_high(g))) - 32; }>(-4, 3, 17),
    line_twice<Q4_K, 32, low<Q4_K>, unit_at<PackedScales::scale_at>, packed_scale, unit_at<PackedScales::min_at>, packed_min>(15, 17),
    line_twice<Q5_K, 32, low_and_high<Q5_K>, unit_at<PackedScales::scale_at>, packed_scale, unit_at<PackedScales::min_at>, packed_min>(31,
                                                                                                                                       17),
    scaled_twice<Q6_K, 16, [](Block b, int j) { return low_and_high<Q6_K>(b, j) - 32; }, unit_at<Q6_K::scale_at>,
                 [](Block b, int g) { return b.i8(Q6_K::scales_at + g); }>(-32, 31, 18),
    scaled<Q8_K, 256, [](Block b, int j) { return b.i8(Q8_K::codes_at + j); }, [](Block b, int) { return b.f32(0); }>(-128, 127, 24),
    scaled_twice<IQ2_XXS, 32, iq2_xxs_code, unit_at<0, 8>, [](Block b, int g) { return odd(b.i32(6 + g * 8) >> 28 & 15); }>(-43, 43, 16, 6),
    scaled_twice<IQ2_XS, 16, iq2_xs_code, unit_at<0, 8>, [](Block b, int g) { return odd(get(b, IQ2_XS::scale_low(g))); }>(-43, 43, 16, 6),
    scaled_twice<IQ2_S, 16, iq2_s_code, unit_at<0, 8>, [](Block b, int g) { return odd(get(b, IQ2_S::scale_low(g))); }>(-43, 43, 16, 6),
    scaled_twice<IQ3_XXS, 32, iq3_xxs_code, unit_at<0, 4>, [](Block b, int g) { return odd(b.i32(66 + g * 4) >> 28 & 15); }>(-62, 62, 16,
                                                                                                                             16),
    scaled_twice<IQ3_S, 32, iq3_s_code, unit_at<0>, [](Block b, int g) { return odd(get(b, IQ3_S::scale_low(g))); }>(-15, 15, 16, 16),
    scaled_twice<IQ1_S, 32, iq1_s_code, unit_at<0, 8>, [](Block b, int g) { return odd(b.u16(IQ1_S::high_at + g * 2) >> 12 & 7); }>(-9, 9,
                                                                                                                                    15, 6),
    scaled_twice<IQ1_M, 16, iq1_m_code, [](Block b) { return IQ1_M::block_scale(b) * 0.125F; },
                 [](Block b, int g) { return odd(b.u16(IQ1_M::scales_at + g / 4 * 2) >> (g % 4 * 3) & 7); }>(-9, 9, 15, 6),
    scaled<IQ4_NL, 32, looked_up<nonlinear_codes, IQ4_NL>, half_at<0>>(-127, 113, 11, 16),
    scaled_twice<IQ4_XS, 32, looked_up<nonlinear_codes, IQ4_XS>, unit_at<IQ4_XS::scale_at>,
                 [](Block b, int g) { return IQ4_XS::scale(b, g); }>(-127, 113, 17, 16),
    scaled<TQ1_0, 256,
           [](Block b, int j) {
             const int fraction = (b.u8(TQ1_0::byte_of(j)) * look_up(TQ1_0::powers, TQ1_0::digit_of(j))) & 255;
             return ((fraction * 3) >> 8) - 1;
           },
           half_at<TQ1_0::scale_at>>(-1, 1, 11),
    scaled<TQ2_0, 256, [](Block b, int j) { return low<TQ2_0>(b, j) - 1; }, half_at<TQ2_0::scale_at>>(-1, 2, 11),
    scaled<MXFP4, 32, looked_up<e2m1_codes, MXFP4>, [](Block b, int) { return MXFP4::scale(b.u8(0)); }>(-12, 12, 1, 15),
    scaled<NVFP4, 16, looked_up<e2m1_codes, NVFP4>, [](Block b, int g) { return NVFP4::scale(b.u8(g)); }>(-12, 12, 4, 15),
};

}  // namespace
}  // namespace quant

const BlockParts* find_block_parts(std::string_view type) {
  for (const BlockParts& parts : quant::all)
    if (parts.type == type) return &parts;
  return nullptr;
}

}  // namespace rlx
