#pragma once
#include <cstdint>

namespace rlx::cpu {

/// B^T d of four vectors, where a 3-tap filter is to give two neighbouring results: Lavin and Gray, "Fast Algorithms for Convolutional
/// Neural Networks" (2015), F(2, 3).
template <class Vector>
[[gnu::always_inline]] inline void transform_four(const Vector (&d)[4], Vector (&to)[4]) {
  to[0] = d[0] - d[2];
  to[1] = d[1] + d[2];
  to[2] = d[2] - d[1];
  to[3] = d[1] - d[3];
}

/// The 16 factors of a 4 x 4 window of an image for each of its channels, of which there are `Simd::lanes` or more: line i and position j
/// of the window are at x + lines[i] + positions[j], factor f goes to to + f * distance.
template <class Simd>
void transform_window(const typename Simd::Element* x, const std::int64_t* lines, const std::int64_t* positions, std::int64_t channels,
                      typename Simd::Element* to, std::int64_t distance) {
  using Vector = typename Simd::Vector;
  for (std::int64_t next = 0; next < channels; next += Simd::lanes) {
    const std::int64_t last = channels - Simd::lanes, channel = next < last ? next : last;  // the last vectors overlap
    Vector columns[4][4], rows[4][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Vector d[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) d[i] = Simd::load(x + lines[i] + positions[j] + channel);
      transform_four(d, columns[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Vector d[4] = {columns[0][i], columns[1][i], columns[2][i], columns[3][i]};
      transform_four(d, rows[i]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) Simd::store(to + (4 * i + j) * distance + channel, rows[i][j]);
    }
  }
}

/// The 2 x 2 results of a panel of columns from the products of the 16 factors, A^T m A: product f is at from + f * distance, the result in
/// line i and position j goes to to + i * line + j * (columns of a panel).
template <class Simd>
void transform_products(const typename Simd::Element* from, std::int64_t distance, typename Simd::Element* to, std::int64_t line) {
  using Vector = typename Simd::Vector;
  constexpr int width = Simd::panel_vectors * Simd::lanes;
  for (int col = 0; col < width; col += Simd::lanes) {
    Vector sums[2][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const auto m = [&](int i) { return Simd::load(from + (4 * i + j) * distance + col); };
      sums[0][j] = m(0) + m(1) + m(2);
      sums[1][j] = m(1) - m(2) - m(3);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      Simd::store(to + i * line + col, sums[i][0] + sums[i][1] + sums[i][2]);
      Simd::store(to + i * line + width + col, sums[i][1] - sums[i][2] - sums[i][3]);
    }
  }
}

}  // namespace rlx::cpu
