// Linear recurrences and the derivatives of running extremes, line by line: what running products, maxima and minima need backwards.
#include "ops/reduction/recurrence.h"
#include "ops/axis_lines.h"

#include <algorithm>
#include <vector>

#include "backends/cpu/routines/elements.h"
#include "backends/cpu/routines/routine.h"

namespace rlx::cpu {
namespace {

constexpr std::int64_t worth_a_thread = 1 << 14;  // elements

std::int64_t grain_of(std::int64_t elements) { return std::max<std::int64_t>(1, worth_a_thread / std::max<std::int64_t>(1, elements)); }

// -- y_k = a_k y_(k-1) + b_k

/// `count` neighbouring lines at once, whose last values are `y`.
template <class T, class Y>
void recur(const T* a, const T* b, T* result, std::int64_t first, std::int64_t step, std::int64_t length, std::int64_t count, Y* y) {
  for (std::int64_t k = 0, at = first; k < length; ++k, at += step)
    for (std::int64_t c = 0; c < count; ++c) {
      y[c] = k == 0 ? static_cast<Y>(b[at + c]) : static_cast<Y>(a[at + c]) * y[c] + static_cast<Y>(b[at + c]);
      result[at + c] = static_cast<T>(y[c]);
    }
}

template <class T, class Y>
void run_recurrence(const RoutineCall& call, bool reverse, const AxisLines& lines) {
  constexpr std::int64_t lanes = 64;  // lines that lie side by side
  const std::int64_t width = std::min(lanes, lines.stride), blocks = width == 0 ? 0 : (lines.stride + width - 1) / width;
  const std::int64_t outer = lines.stride == 0 ? 0 : lines.count / lines.stride;
  const T *a = call.operands[0].as<T>(), *b = call.operands[1].as<T>();
  T* result = call.results[0].as<T>();
  call.pool.parallel_for(outer * blocks, grain_of(lines.length * width), [&](std::int64_t begin, std::int64_t end, int) {
    Y y[lanes];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % blocks * width, start = i / blocks * lines.length * lines.stride + column;
      const std::int64_t first = start + (reverse ? (lines.length - 1) * lines.stride : 0);
      recur(a, b, result, first, reverse ? -lines.stride : lines.stride, lines.length, std::min(width, lines.stride - column), y);
    }
  });
}

void linear_recurrences(const RoutineCall& call) {
  const AxisLines lines(call.results[0].shape, std::get<std::int64_t>(call.attrs[0]));
  const bool reverse = std::get<bool>(call.attrs[1]);
  with_number(call.results[0].dtype, [&]<class T>(T*) {
    if constexpr (!std::is_integral_v<T>) run_recurrence<T, Wide<T>>(call, reverse, lines);
  });
}

// -- running extremes

/// Memory for one line.
template <class Y>
struct Line {
  explicit Line(std::int64_t length) : length_(static_cast<std::size_t>(length)), all_(5 * length_) {}
  Y* operator[](std::size_t i) { return all_.data() + i * length_; }

 private:
  std::size_t length_;
  std::vector<Y> all_;
};

template <class T, class Y>
void run_extremum(const RoutineCall& call, Y sign, bool reverse, bool transposed, const AxisLines& lines) {
  const T *x = call.operands[0].as<T>(), *t = call.operands[1].as<T>();
  T* result = call.results[0].as<T>();
  const std::int64_t n = lines.length;
  call.pool.parallel_for(lines.count, grain_of(n), [&](std::int64_t begin, std::int64_t end, int) {
    Line<Y> line(n);
    for (std::int64_t l = begin; l < end; ++l) {
      const std::int64_t first = lines.begin(l) + (reverse ? (n - 1) * lines.stride : 0), step = reverse ? -lines.stride : lines.stride;
      for (std::int64_t k = 0; k < n; ++k)
        line[0][k] = sign * static_cast<Y>(x[first + k * step]), line[1][k] = static_cast<Y>(t[first + k * step]);
      const ExtremumTree<Y> tree(line[0], n, line[2], line[3]);
      std::fill(line[4], line[4] + n, Y(0));
      if (transposed) tree.pull(line[1], line[4], line[1]);
      else tree.push(line[1], line[4], line[1]);
      for (std::int64_t k = 0; k < n; ++k) result[first + k * step] = static_cast<T>(line[1][k]);
    }
  });
}

void extremum_tangents(const RoutineCall& call) {
  const AxisLines lines(call.results[0].shape, std::get<std::int64_t>(call.attrs[1]));
  const bool min = std::get<std::string>(call.attrs[0]) == "min", reverse = std::get<bool>(call.attrs[2]),
             transposed = std::get<bool>(call.attrs[3]);
  with_float(call.results[0].dtype, [&]<class T>(T*) {
    using Y = std::conditional_t<std::is_same_v<T, double>, double, float>;
    run_extremum<T, Y>(call, Y(min ? -1 : 1), reverse, transposed, lines);
  });
}

bool takes(const Graph&, const Node&) { return true; }

const RegisterRoutine linear_recurrence_routine({"linear_recurrence", takes, linear_recurrences});
const RegisterRoutine running_extremum_tangent_routine({"running_extremum_tangent", takes, extremum_tangents});

}  // namespace
}  // namespace rlx::cpu
