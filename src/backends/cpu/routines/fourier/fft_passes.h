#pragma once
#include <utility>

#include "backends/cpu/routines/fourier/fft_kernel.h"

// The code of FftKernel for vectors V: { Element, Vector, lanes, multiply_add(a, b, c) = a * b + c, subtract_product(a, b, c) = c - a * b
// }. In an anonymous namespace, as each instruction set has its own.

namespace rlx::cpu {
namespace {

template <class V>
struct FftCode {
  using T = typename V::Element;
  using Vector = typename V::Vector;
  static constexpr int lanes = V::lanes;
  typedef T Unaligned __attribute__((vector_size(sizeof(Vector)), aligned(alignof(T)), may_alias));

  static Vector load(const T* from) { return (Vector) * reinterpret_cast<const Unaligned*>(from); }
  static void store(T* to, Vector x) { *reinterpret_cast<Unaligned*>(to) = (Unaligned)x; }
  static Vector all(T x) { return Vector{} + x; }

  struct Number {
    Vector re, im;
    friend Number operator+(Number a, Number b) { return {a.re + b.re, a.im + b.im}; }
    friend Number operator-(Number a, Number b) { return {a.re - b.re, a.im - b.im}; }
  };
  static Number times(Number x, Vector re, Vector im) {
    return {V::subtract_product(x.im, im, x.re * re), V::multiply_add(x.re, im, x.im * re)};
  }
  static Number times(Number x, const T* pair) { return times(x, all(pair[0]), all(pair[1])); }
  /// -i x.
  static Number turn_back(Number x) { return {x.im, -x.re}; }

  template <int... i>
  static Vector even_elements(Vector a, Vector b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (2 * i)...);
  }
  template <int... i>
  static Vector odd_elements(Vector a, Vector b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (2 * i + 1)...);
  }
  template <int from, int... i>
  static Vector in_turn(Vector a, Vector b, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, b, (from + i / 2 + i % 2 * lanes)...);
  }
  template <int... i>
  static Vector reversed(Vector a, std::integer_sequence<int, i...>) {
    return __builtin_shufflevector(a, a, (lanes - 1 - i)...);
  }
  using Sequence = std::make_integer_sequence<int, lanes>;
  static Vector reversed(Vector a) { return reversed(a, Sequence()); }

  static Number load_pairs(const T* from) {
    const Vector a = load(from), b = load(from + lanes);
    return {even_elements(a, b, Sequence()), odd_elements(a, b, Sequence())};
  }
  static void store_pairs(T* to, Number x) {
    store(to, in_turn<0>(x.re, x.im, Sequence()));
    store(to + lanes, in_turn<lanes / 2>(x.re, x.im, Sequence()));
  }

  // Where passes read and write rows.
  struct BlockIn {
    const T* data;
    [[gnu::always_inline]] Number operator()(std::int64_t row) const {
      const T* at = data + row * (2 * lanes);
      return {load(at), load(at + lanes)};
    }
  };
  struct LinesIn {
    const T* data;
    std::int64_t stride;  // in elements
    bool swapped;
    [[gnu::always_inline]] Number operator()(std::int64_t row) const {
      const Number x = load_pairs(data + row * stride);
      return swapped ? Number{x.im, x.re} : x;
    }
  };
  struct BlockOut {
    T* data;
    [[gnu::always_inline]] void operator()(std::int64_t row, Number x) const {
      T* at = data + row * (2 * lanes);
      store(at, x.re);
      store(at + lanes, x.im);
    }
  };
  struct LinesOut {
    T* data;
    std::int64_t stride;  // in elements
    bool swapped;
    T scale;
    [[gnu::always_inline]] void operator()(std::int64_t row, Number x) const {
      x = {x.re * scale, x.im * scale};
      store_pairs(data + row * stride, swapped ? Number{x.im, x.re} : x);
    }
  };
  struct TurnedOut {
    FftTurned<T> to;
    [[gnu::always_inline]] void operator()(std::int64_t row, Number x) const {
      const T *fine = to.fine + row * (2 * lanes), *base = to.base + 2 * row;
      const Number turn = times(Number{load(fine), load(fine + lanes)}, base);
      x = times(x, turn.re, turn.im);
      T* at = to.data + row * to.row_stride;
      store(at, x.re);
      store(at + lanes, x.im);
    }
  };

  static constexpr int most_radix = 64;

  /// The transform of `radix` numbers in place; 0: of `n`, an odd one.
  template <int radix>
  [[gnu::always_inline]] static void butterfly(Number* x, const T* roots, std::int64_t n) {
    if constexpr (radix == 2) {
      const Number a = x[0] + x[1];
      x[1] = x[0] - x[1];
      x[0] = a;
    } else if constexpr (radix == 4) {
      const Number a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = turn_back(x[1] - x[3]);
      x[0] = a + c, x[1] = b + d, x[2] = a - c, x[3] = b - d;
    } else if constexpr (radix == 8) {
      const T h = static_cast<T>(0.70710678118654752440);
      Number even[4] = {x[0] + x[4], x[1] + x[5], x[2] + x[6], x[3] + x[7]};
      Number odd[4] = {x[0] - x[4], x[1] - x[5], turn_back(x[2] - x[6]), x[3] - x[7]};
      odd[1] = {(odd[1].re + odd[1].im) * h, (odd[1].im - odd[1].re) * h};   // by e^(-i pi / 4)
      odd[3] = {(odd[3].im - odd[3].re) * h, -(odd[3].re + odd[3].im) * h};  // by e^(-3 i pi / 4)
      butterfly<4>(even, roots, n);
      // odd[2] is turned already: what is left of the transform of four.
      const Number a = odd[0] + odd[2], b = odd[0] - odd[2], c = odd[1] + odd[3], d = turn_back(odd[1] - odd[3]);
      x[0] = even[0], x[2] = even[1], x[4] = even[2], x[6] = even[3];
      x[1] = a + c, x[3] = b + d, x[5] = a - c, x[7] = b - d;
    } else {
      odd_butterfly<radix>(x, roots, n);
    }
  }

  template <int radix>
  [[gnu::always_inline]] static void odd_butterfly(Number* x, const T* roots, std::int64_t n) {
    const int size = radix > 0 ? radix : static_cast<int>(n), half = size / 2;
    constexpr int most = radix > 0 ? radix : most_radix;
    Number sums[most / 2 + 1], differences[most / 2 + 1];
    Number total = x[0];
    const Number first = x[0];
#pragma GCC unroll 4
    for (int j = 1; j <= half; ++j) {
      sums[j] = x[j] + x[size - j], differences[j] = x[j] - x[size - j];
      total = total + sums[j];
    }
    x[0] = total;
#pragma GCC unroll 4
    for (int k = 1; k <= half; ++k) {
      Number even = first, odd = {Vector{}, Vector{}};
      int at = 0;
#pragma GCC unroll 4
      for (int j = 1; j <= half; ++j) {
        at += k;
        if (at >= size) at -= size;
        const Vector c = all(roots[2 * at]), s = all(roots[2 * at + 1]);
        even = {V::multiply_add(sums[j].re, c, even.re), V::multiply_add(sums[j].im, c, even.im)};
        odd = {V::subtract_product(differences[j].im, s, odd.re), V::multiply_add(differences[j].re, s, odd.im)};
      }
      x[k] = even + odd;
      x[size - k] = even - odd;
    }
  }

  template <int radix, bool turned, class In, class Out>
  [[gnu::always_inline]] static void step(const FftPass<T>& pass, std::int64_t row, std::int64_t p, std::int64_t q, const T* turns, In in,
                                          Out out) {
    constexpr int most = radix > 0 ? radix : most_radix;
    const int n = radix > 0 ? radix : static_cast<int>(pass.radix);
    Number x[most];
    x[0] = in(row);
#pragma GCC unroll 8
    for (int r = 1; r < n; ++r) x[r] = in(row + pass.s * pass.m * r);
    butterfly<radix>(x, pass.roots, n);
    const std::int64_t to = q + pass.s * n * p;
    out(to, x[0]);
#pragma GCC unroll 8
    for (int k = 1; k < n; ++k) out(to + pass.s * k, turned ? times(x[k], turns + 2 * (k - 1)) : x[k]);
  }

  template <int radix, class In, class Out>
  [[gnu::noinline]] static void run_pass(const FftPass<T>& given, In in, Out out) {
    const FftPass<T> pass = given;
    for (std::int64_t q = 0; q < pass.s; ++q) step<radix, false>(pass, q, 0, q, nullptr, in, out);
    for (std::int64_t p = 1; p < pass.m; ++p) {
      const T* turns = pass.turns + 2 * (pass.radix - 1) * p;
      for (std::int64_t q = 0; q < pass.s; ++q) step<radix, true>(pass, q + pass.s * p, p, q, turns, in, out);
    }
  }
  template <class In, class Out>
  static void run_any(const FftPass<T>& pass, In in, Out out) {
    switch (pass.radix) {
      case 2: return run_pass<2>(pass, in, out);
      case 3: return run_pass<3>(pass, in, out);
      case 4: return run_pass<4>(pass, in, out);
      case 5: return run_pass<5>(pass, in, out);
      case 7: return run_pass<7>(pass, in, out);
      case 8: return run_pass<8>(pass, in, out);
      default: return run_pass<0>(pass, in, out);
    }
  }

  static T* columns(const FftPass<T>* passes, std::int64_t count, const FftMatrix<T>* in, T* a, T* b, const FftMatrix<T>* out,
                    const FftTurned<T>* turned, T scale) {
    std::int64_t i = 0;
    if (in && count > 1) {
      run_any(passes[i++], LinesIn{in->data, 2 * in->row_stride, in->swapped}, BlockOut{a});
    } else if (in) {
      for (std::int64_t row = 0; row < passes[0].radix; ++row) BlockOut{a}(row, LinesIn{in->data, 2 * in->row_stride, in->swapped}(row));
    }
    const std::int64_t last = out || turned ? count - 1 : count;
    for (; i < last; ++i) {
      run_any(passes[i], BlockIn{a}, BlockOut{b});
      T* other = a;
      a = b, b = other;
    }
    if (out) run_any(passes[last], BlockIn{a}, LinesOut{out->data, 2 * out->row_stride, out->swapped, scale});
    if (turned) run_any(passes[last], BlockIn{a}, TurnedOut{*turned});
    return a;
  }

  /// Rows become lanes.
  template <int distance, int... i>
  [[gnu::always_inline]] static void exchange(Vector& a, Vector& b, std::integer_sequence<int, i...>) {
    const Vector x = __builtin_shufflevector(a, b, ((i & distance) == 0 ? i : lanes + i - distance)...);
    b = __builtin_shufflevector(a, b, ((i & distance) == 0 ? i + distance : lanes + i)...);
    a = x;
  }
  /// Of `count` vectors; where those are fewer than the lanes, each part of so many lanes for itself.
  template <int count = lanes, int distance = count / 2>
  [[gnu::always_inline]] static void transpose(Vector* x) {
    if constexpr (distance > 0) {
#pragma GCC unroll 16
      for (int i = 0; i < count; ++i)
        if ((i & distance) == 0) exchange<distance>(x[i], x[i + distance], Sequence());
      transpose<count, distance / 2>(x);
    }
  }

  // Lines are often 4 KiB apart, so that the first-level cache has no place for a vector of each: every one is read, or written, once. The
  // lower half of a vector's lanes is of one line then, and the upper of the line that is half the lanes further.
  static constexpr int half = lanes / 2;

  static void gather(const FftMatrix<T>& from, std::int64_t rows, std::int64_t lines, T* block) {
    const int re = from.swapped ? lanes : 0, im = lanes - re;
    std::int64_t row = 0;
    if (lines == lanes && from.row_stride == 1) {
      for (; row + half <= rows; row += half) {
        const T* at = from.data + 2 * row;
        Vector x[half], y[half];
#pragma GCC unroll 16
        for (int l = 0; l < half; ++l) {
          const Vector low = load(at + 2 * l * from.lane_stride), high = load(at + 2 * (l + half) * from.lane_stride);
          x[l] = even_elements(low, high, Sequence()), y[l] = odd_elements(low, high, Sequence());
        }
        transpose<half>(x), transpose<half>(y);
#pragma GCC unroll 16
        for (int r = 0; r < half; ++r) store(block + (row + r) * 2 * lanes + re, x[r]), store(block + (row + r) * 2 * lanes + im, y[r]);
      }
    }
    for (; row < rows; ++row) {
      T* to = block + row * 2 * lanes;
      const T* at = from.data + 2 * row * from.row_stride;
      for (std::int64_t l = 0; l < lines; ++l) {
        to[re + l] = at[2 * l * from.lane_stride];
        to[im + l] = at[2 * l * from.lane_stride + 1];
      }
      for (std::int64_t l = lines; l < lanes; ++l) to[l] = to[lanes + l] = 0;
    }
  }

  static void scatter(const T* block, std::int64_t rows, std::int64_t lines, const FftMatrix<T>& to, T scale) {
    const int re = to.swapped ? lanes : 0, im = lanes - re;
    std::int64_t row = 0;
    if (lines == lanes && to.row_stride == 1) {
      for (; row + half <= rows; row += half) {
        Vector x[half], y[half];
#pragma GCC unroll 16
        for (int r = 0; r < half; ++r) {
          const T* at = block + (row + r) * 2 * lanes;
          x[r] = load(at + re) * scale, y[r] = load(at + im) * scale;
        }
        transpose<half>(x), transpose<half>(y);
        T* at = to.data + 2 * row;
#pragma GCC unroll 16
        for (int l = 0; l < half; ++l) {
          store(at + 2 * l * to.lane_stride, in_turn<0>(x[l], y[l], Sequence()));
          store(at + 2 * (l + half) * to.lane_stride, in_turn<half>(x[l], y[l], Sequence()));
        }
      }
    }
    for (; row < rows; ++row) {
      const T* from = block + row * 2 * lanes;
      T* at = to.data + 2 * row * to.row_stride;
      for (std::int64_t l = 0; l < lines; ++l) {
        at[2 * l * to.lane_stride] = from[re + l] * scale;
        at[2 * l * to.lane_stride + 1] = from[im + l] * scale;
      }
    }
  }

  static void turn_round(const T* from, std::int64_t row_stride, std::int64_t lines, std::int64_t groups, T* block) {
    for (std::int64_t g = 0; g < groups; ++g)
      for (int part = 0; part < 2; ++part) {
        Vector x[lanes];
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) x[l] = l < lines ? load(from + l * row_stride + (2 * g + part) * lanes) : Vector{};
        transpose(x);
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) store(block + ((g * lanes + l) * 2 + part) * lanes, x[l]);
      }
  }

  // X[k] = E + w^k O with E = (Z[k] + conj Z[h - k]) / 2, O = -i (Z[k] - conj Z[h - k]) / 2, and X[h - k] = conj(E - w^k O).
  static void split_one(T* z, std::int64_t half, const T* turns, std::int64_t k) {
    T *a = z + 2 * k, *b = z + 2 * (half - k);
    const T er = (a[0] + b[0]) / 2, ei = (a[1] - b[1]) / 2, pr = (a[1] + b[1]) / 2, pi = (b[0] - a[0]) / 2;
    const T tr = pr * turns[2 * k] - pi * turns[2 * k + 1], ti = pr * turns[2 * k + 1] + pi * turns[2 * k];
    b[0] = er - tr, b[1] = ti - ei;
    a[0] = er + tr, a[1] = ei + ti;
  }
  static void split_real(T* z, std::int64_t half, const T* turns, std::int64_t begin, std::int64_t end) {
    std::int64_t k = begin;
    if (k == 0 && end > 0) {
      const T re = z[0], im = z[1];
      z[0] = re + im, z[1] = 0, z[2 * half] = re - im, z[2 * half + 1] = 0;
      ++k;
    }
    const T h = static_cast<T>(0.5);
    for (; k + lanes <= end && 2 * (k + lanes) <= half; k += lanes) {  // the two sides stay apart
      T* other = z + 2 * (half - k - lanes + 1);
      const Number a = load_pairs(z + 2 * k), c = load_pairs(other), w = load_pairs(turns + 2 * k);
      const Number b = {reversed(c.re), reversed(c.im)};
      const Number e = {(a.re + b.re) * h, (a.im - b.im) * h}, t = times(Number{(a.im + b.im) * h, (b.re - a.re) * h}, w.re, w.im);
      store_pairs(z + 2 * k, e + t);
      store_pairs(other, {reversed(e.re - t.re), reversed(t.im - e.im)});
    }
    for (; k < end; ++k) split_one(z, half, turns, k);
  }

  // The same solved for Z, times 2: Z[k] = (X[k] + conj X[h - k]) + i conj(w^k) (X[k] - conj X[h - k]).
  static void join_real(const T* x, T* z, std::int64_t half, const T* turns, std::int64_t begin, std::int64_t end) {
    std::int64_t k = begin;
    if (k == 0 && end > 0) {
      const T first = x[0], last = x[2 * half];
      z[0] = first + last, z[1] = first - last;
      ++k;
    }
    const auto one = [&](std::int64_t at) {
      const T *a = x + 2 * at, *b = x + 2 * (half - at);
      const T er = a[0] + b[0], ei = a[1] - b[1], dr = a[0] - b[0], di = a[1] + b[1];
      const T c = turns[2 * at], s = turns[2 * at + 1];
      const T tr = dr * c + di * s, ti = di * c - dr * s;  // conj(w) d
      T* to = z + 2 * at;
      T* other = z + 2 * (half - at);
      to[0] = er - ti, to[1] = ei + tr;
      other[0] = er + ti, other[1] = tr - ei;
    };
    for (; k + lanes <= end && 2 * (k + lanes) <= half; k += lanes) {
      const Number a = load_pairs(x + 2 * k), c = load_pairs(x + 2 * (half - k - lanes + 1)), w = load_pairs(turns + 2 * k);
      const Number b = {reversed(c.re), reversed(c.im)};
      const Number e = {a.re + b.re, a.im - b.im}, t = times(Number{a.re - b.re, a.im + b.im}, w.re, -w.im);
      store_pairs(z + 2 * k, {e.re - t.im, e.im + t.re});
      store_pairs(z + 2 * (half - k - lanes + 1), {reversed(e.re + t.im), reversed(t.re - e.im)});
    }
    for (; k < end; ++k) one(k);
  }

  static void multiply(const T* x, const T* by, T* y, std::int64_t n, T scale) {
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const Number w = load_pairs(by + 2 * i), v = times(load_pairs(x + 2 * i), w.re, w.im);
      store_pairs(y + 2 * i, {v.re * scale, v.im * scale});
    }
    for (; i < n; ++i) {
      const T re = x[2 * i] * by[2 * i] - x[2 * i + 1] * by[2 * i + 1], im = x[2 * i] * by[2 * i + 1] + x[2 * i + 1] * by[2 * i];
      y[2 * i] = re * scale, y[2 * i + 1] = im * scale;
    }
  }

  static constexpr FftKernel<T> table() { return {lanes, columns, gather, scatter, turn_round, split_real, join_real, multiply}; }
};

}  // namespace
}  // namespace rlx::cpu
