#pragma once
#include <cstdint>

#include "backends/cpu/machine/cpu_features.h"

namespace rlx::cpu {

/// One step of a transform of `radix * m * s` rows: from rows q + s * (p + m * r) to rows q + s * (radix * p + k), for q in 0..s, p in
/// 0..m (Stockham's order: rows end where they belong).
template <class T>
struct FftPass {
  std::int64_t radix = 1, m = 1, s = 1;
  const T* turns = nullptr;  // e^(-2 pi i p k / (radix * m)) as pairs: radix - 1 of them for each p, k from 1
  const T* roots = nullptr;  // e^(-2 pi i k / radix) as pairs, k from 0, where the radix is odd
};

/// Numbers of a matrix in memory, real and imaginary parts in turn; strides count numbers. `swapped`: the parts change roles, which makes a
/// transform of its inverse.
template <class T>
struct FftMatrix {
  T* data = nullptr;
  std::int64_t row_stride = 0, lane_stride = 1;
  bool swapped = false;
};

/// Where the first of the two halves of a long transform leaves its results: row k of lane l times base[k] * fine[k][l].
template <class T>
struct FftTurned {
  T* data = nullptr;
  std::int64_t row_stride = 0;  // in elements T
  const T* base = nullptr;      // pairs
  const T* fine = nullptr;      // blocks
};

/// Transforms of `lanes` lines at a time, which lie side by side in the lanes of vectors: a block is (rows, 2, lanes), real parts before
/// imaginary ones. Lanes do not depend on each other.
template <class T>
struct FftKernel {
  int lanes = 0;

  /// The passes one after the other. What is read is the block `a`, or the rows of `in`, whose lanes lie side by side; what is written are
  /// the rows of `out`, times `scale`, or `turned`, or else the block that is returned: a or b, of which the other is overwritten, too.
  T* (*columns)(const FftPass<T>* passes, std::int64_t count, const FftMatrix<T>* in, T* a, T* b, const FftMatrix<T>* out,
                const FftTurned<T>* turned, T scale);
  /// The first `lines` lanes of a block from memory, and 0 in the others.
  void (*gather)(const FftMatrix<T>& from, std::int64_t rows, std::int64_t lines, T* block);
  /// The first `lines` lanes of a block to memory, times `scale`.
  void (*scatter)(const T* block, std::int64_t rows, std::int64_t lines, const FftMatrix<T>& to, T scale);
  /// The block whose rows are the lanes of (lines, groups, 2, lanes), of which the first `lines` lines are there; row_stride from line to
  /// line.
  void (*turn_round)(const T* from, std::int64_t row_stride, std::int64_t lines, std::int64_t groups, T* block);
  /// The spectrum of a real line of 2 * half numbers in place, of the transform z of the line as `half` complex ones; `turns` are the pairs
  /// e^(-pi i k / half) for k to half / 2. z has room for one more number. Indices begin..end of 0 .. half / 2 + 1.
  void (*split_real)(T* z, std::int64_t half, const T* turns, std::int64_t begin, std::int64_t end);
  /// Back again, times 2: z from the spectrum x.
  void (*join_real)(const T* x, T* z, std::int64_t half, const T* turns, std::int64_t begin, std::int64_t end);
  /// y = x * by * scale, of n pairs.
  void (*multiply)(const T* x, const T* by, T* y, std::int64_t n, T scale);
};

template <class T>
const FftKernel<T>& fft_kernel(CpuLevel level);

}  // namespace rlx::cpu
