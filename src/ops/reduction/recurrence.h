#pragma once
#include "ir/extremum.h"
#include "ir/op.h"

namespace rlx {

/// y with y_k = a_k y_(k-1) + b_k along `axis`, from 0 before the first element; `reverse` runs from the end. `a` and `b` have one type, of
/// floats or complex numbers. Its derivatives are such recurrences again.
Value linear_recurrence(Value a, Value b, std::int64_t axis, bool reverse);

/// The derivative, in the direction t, of the running max or min of x along `axis`. Ties split pair by pair in the order in which JAX's
/// associative_scan takes them. `transposed`: from cotangents t of the running extreme to those of x.
Value running_extremum_tangent(Value x, Value t, ReduceKind kind, std::int64_t axis, bool reverse, bool transposed = false);

/// The elements along `axis` moved so many places towards the end, or with `reverse` towards the beginning; `fill` comes in.
Value moved(Value x, std::int64_t places, std::int64_t axis, bool reverse, double fill);
inline Value moved_by_one(Value x, std::int64_t axis, bool reverse, double fill) { return moved(x, 1, axis, reverse, fill); }

/// The tangents of a running maximum, for one line of n elements. The tree is that of blocks of 2^k elements, the larger ones first: at
/// each place i ends a block of as many elements as the lowest bit of i + 1 says.
template <class T>
class ExtremumTree {
 public:
  /// `block` and `running` are filled with the values of the blocks and of what they make together.
  ExtremumTree(const T* x, std::int64_t n, T* block, T* running) : x_(x), n_(n), block_(block), running_(running) {
    for (std::int64_t i = 0; i < n_; ++i) {
      const std::int64_t size = size_at(i);
      T value = x_[i];
      for (std::int64_t half = 1; half < size; half *= 2) value = maximum(block_[i - half], value);
      block_[i] = value;
      running_[i] = size == i + 1 ? value : maximum(running_[i - size], value);
    }
  }

  /// dy from t, by way of the tangents of blocks; dy and t may be one.
  void push(const T* t, T* of_block, T* dy) const {
    for (std::int64_t i = 0; i < n_; ++i) {
      const std::int64_t size = size_at(i);
      T value = x_[i], tangent = t[i];
      for (std::int64_t half = 1; half < size; half *= 2) {
        tangent = mixed(share(block_[i - half], value), of_block[i - half], tangent);
        value = maximum(block_[i - half], value);
      }
      of_block[i] = tangent;
      dy[i] = size == i + 1 ? tangent : mixed(share(running_[i - size], block_[i]), dy[i - size], tangent);
    }
  }

  /// dx from the cotangents dy, which are used up; `of_block` starts at 0. dx and dy may be one.
  void pull(T* dy, T* of_block, T* dx) const {
    for (std::int64_t i = n_; i-- > 0;) {
      const std::int64_t size = size_at(i);
      T cotangent = of_block[i] + own_share(i, size, dy);
      for (std::int64_t half = size / 2; half > 0; half /= 2) {
        const T w = share(block_[i - half], last_of(i, half));
        if (w != 0) of_block[i - half] += w * cotangent;
        cotangent = w == 1 ? T(0) : (1 - w) * cotangent;
      }
      dx[i] = cotangent;
    }
  }

 private:
  static std::int64_t size_at(std::int64_t i) { return (i + 1) & -(i + 1); }
  /// What the tangent of a counts in that of the larger of both.
  static T share(T a, T b) { return a > b ? T(1) : a == b ? T(0.5) : T(0); }
  /// What is chosen by a weight of 0 or 1 stays as it is, beside infinities too.
  static T mixed(T w, T a, T b) { return w == 1 ? a : w == 0 ? b : w * a + (1 - w) * b; }
  /// The value of the last `size` elements up to i, fewer than its block has.
  T last_of(std::int64_t i, std::int64_t size) const {
    T value = x_[i];
    for (std::int64_t half = 1; half < size; half *= 2) value = maximum(block_[i - half], value);
    return value;
  }
  T own_share(std::int64_t i, std::int64_t size, T* dy) const {
    if (size == i + 1) return dy[i];
    const T w = share(running_[i - size], block_[i]), whole = dy[i];
    if (w != 0) dy[i - size] += w * whole;
    return w == 1 ? T(0) : (1 - w) * whole;
  }

  const T* x_;
  std::int64_t n_;
  T *block_, *running_;
};

}  // namespace rlx
