// Fourier transforms: fft, rfft and irfft of src/ops/signal/fourier.cpp.
#include <algorithm>

#include "backends/cpu/routines/fourier/fft_plan.h"
#include "backends/cpu/routines/routine.h"
#include "base/function_ref.h"
#include "ops/axis_lines.h"
#include "rlx/op_types.h"

namespace rlx::cpu {
namespace {

/// Lines of pairs that are transformed together, each `in_stride` and `out_stride` pairs behind the one before.
template <class T>
struct Batch {
  T* in = nullptr;  // read only
  std::int64_t in_stride = 0;
  T* out = nullptr;
  std::int64_t out_stride = 0;
};

/// How the lines of an op become transforms of pairs: `before` says where those of lines first .. first + count are, which it may put into
/// `space`, `space_per_line` elements for each; `after` makes the result of what came out. Neither is called twice for a line.
template <class T>
struct Scheme {
  std::int64_t lines = 0, space_per_line = 0;
  bool copies = false;  // lines that are not side by side: then several at a time
  bool inverse = false;
  T scale = 1;
};
template <class T>
using Before = FunctionRef<Batch<T>(std::int64_t first, std::int64_t count, T* space, const FftTeam& team)>;
template <class T>
using After = FunctionRef<void(const Batch<T>& batch, std::int64_t first, std::int64_t count, const FftTeam& team)>;

template <class T>
std::int64_t in_whole_lines(std::int64_t elements) {
  constexpr std::int64_t line = 64 / sizeof(T);
  return (elements + line - 1) / line * line;
}

template <class T>
T* scratch_of(const RoutineCall& call, std::int64_t elements) {
  return reinterpret_cast<T*>(call.scratch(static_cast<std::size_t>(elements) * sizeof(T)));
}

template <class T>
void transform_lines(const FftPlan<T>& plan, const Scheme<T>& scheme, Before<T> before, After<T> after, const RoutineCall& call) {
  const int threads = call.pool.size();
  const bool together = !plan.by_lines();
  const std::int64_t lanes = fft_kernel<T>(call.level).lanes, fitting = std::clamp<std::int64_t>((1 << 19) / plan.length(), 1, lanes);
  const std::int64_t unit = together ? lanes : scheme.copies ? fitting : 1, units = (scheme.lines + unit - 1) / unit;
  const auto run = [&](std::int64_t begin, std::int64_t end, const FftTeam& team, T* space, T* scratch) {
    for (std::int64_t u = begin; u < end; ++u) {
      const std::int64_t first = u * unit, count = std::min(unit, scheme.lines - first);
      const Batch<T> batch = before(first, count, space, team);
      if (together) {
        plan.group({batch.in, 1, batch.in_stride, scheme.inverse}, {batch.out, 1, batch.out_stride, scheme.inverse}, count, scheme.scale,
                   scratch);
      } else {
        for (std::int64_t l = 0; l < count; ++l)
          plan.line(batch.in + 2 * l * batch.in_stride, batch.out + 2 * l * batch.out_stride, scheme.inverse, scheme.scale, team, scratch);
      }
      after(batch, first, count, team);
    }
  };
  const std::int64_t space = in_whole_lines<T>(unit * scheme.space_per_line);
  if (!together && units < threads) {
    T* scratch = scratch_of<T>(call, space + plan.line_scratch(threads));
    return run(0, units, FftTeam{&call.pool}, scratch, scratch + space);
  }
  const std::int64_t each = in_whole_lines<T>(space + (together ? plan.group_scratch() : plan.line_scratch(1)));
  T* scratch = scratch_of<T>(call, threads * each);
  call.pool.parallel_for(units, std::max<std::int64_t>(1, 8192 / (unit * plan.length())),
                         [&](std::int64_t begin, std::int64_t end, int worker) {
                           T* own = scratch + worker * each;
                           run(begin, end, FftTeam(), own, own + space);
                         });
}

constexpr std::int64_t most_together = 16;  // lines: the lanes of the widest vectors

/// Where the first elements of lines are.
struct Begins {
  Begins(const AxisLines& lines, std::int64_t first, std::int64_t count) {
    for (std::int64_t l = 0; l < count; ++l) at[l] = lines.begin(first + l);
  }
  std::int64_t at[most_together];
};

/// Lines, whose elements are so many numbers each, side by side into `to`, or back.
template <int numbers, class T>
void pack(const T* from, const AxisLines& lines, std::int64_t first, std::int64_t count, T* to) {
  const Begins begins(lines, first, count);
  for (std::int64_t i = 0; i < lines.length; ++i)
    for (std::int64_t l = 0; l < count; ++l)
      for (int p = 0; p < numbers; ++p) to[(l * lines.length + i) * numbers + p] = from[(begins.at[l] + i * lines.stride) * numbers + p];
}
template <int numbers, class T>
void unpack(const T* from, std::int64_t from_stride, const AxisLines& lines, std::int64_t first, std::int64_t count, T* to) {
  const Begins begins(lines, first, count);
  for (std::int64_t i = 0; i < lines.length; ++i)
    for (std::int64_t l = 0; l < count; ++l)
      for (int p = 0; p < numbers; ++p) to[(begins.at[l] + i * lines.stride) * numbers + p] = from[l * from_stride + i * numbers + p];
}

/// Short lines whose neighbours lie side by side: vectors go along those.
template <class T>
void transform_beside(const FftPlan<T>& plan, const AxisLines& lines, T* x, T* y, bool inverse, T scale, const RoutineCall& call) {
  const std::int64_t lanes = fft_kernel<T>(call.level).lanes;
  const std::int64_t beside = (lines.stride + lanes - 1) / lanes, units = lines.count / lines.stride * beside;
  const std::int64_t each = in_whole_lines<T>(plan.group_scratch());
  T* scratch = scratch_of<T>(call, call.pool.size() * each);
  call.pool.parallel_for(units, std::max<std::int64_t>(1, 8192 / (lanes * lines.length)),
                         [&](std::int64_t begin, std::int64_t end, int worker) {
                           for (std::int64_t u = begin; u < end; ++u) {
                             const std::int64_t lane = u % beside * lanes, at = u / beside * lines.length * lines.stride + lane;
                             plan.group({x + 2 * at, lines.stride, 1, inverse}, {y + 2 * at, lines.stride, 1, inverse},
                                        std::min(lanes, lines.stride - lane), scale, scratch + worker * each);
                           }
                         });
}

template <class T>
T inverse_scale(bool inverse, std::int64_t n) {
  return inverse ? static_cast<T>(1 / static_cast<double>(n)) : static_cast<T>(1);
}

template <class T>
void complex_lines(const RoutineCall& call, const AxisLines& lines, bool inverse) {
  const auto plan = fft_plan<T>(lines.length, inverse, call.level);
  T *x = call.operands[0].as<T>(), *y = call.results[0].as<T>();
  const T scale = inverse_scale<T>(inverse, lines.length);
  const std::int64_t n = lines.length;
  if (lines.stride > 1 && plan->in_groups()) return transform_beside(*plan, lines, x, y, inverse, scale, call);
  const bool copies = lines.stride > 1;
  const auto before = [&](std::int64_t first, std::int64_t count, T* space, const FftTeam&) {
    if (!copies) return Batch<T>{x + 2 * first * n, n, y + 2 * first * n, n};
    pack<2>(x, lines, first, count, space);
    return Batch<T>{space, n, space + 2 * count * n, n};
  };
  const auto after = [&](const Batch<T>& batch, std::int64_t first, std::int64_t count, const FftTeam&) {
    if (copies) unpack<2>(batch.out, 2 * n, lines, first, count, y);
  };
  transform_lines<T>(*plan, {lines.count, copies ? 4 * n : 0, copies, inverse, scale}, before, after, call);
}

constexpr std::int64_t piece = 4096;  // parts of a line are whole pieces, so that its bits do not depend on the threads

/// Of `real` lines of even length 2 * half: they are complex ones of half the length, and the spectrum follows from theirs.
template <class T>
void real_lines_of_even_length(const RoutineCall& call, const AxisLines& real, const AxisLines& spectrum) {
  const std::int64_t n = real.length, half = n / 2;
  const auto plan = fft_plan<T>(half, false, call.level);
  const FftKernel<T>& kernel = fft_kernel<T>(call.level);
  const auto turns = real_turns<T>(n);
  T *x = call.operands[0].as<T>(), *y = call.results[0].as<T>();
  const bool copies = real.stride > 1;
  const auto before = [&](std::int64_t first, std::int64_t count, T* space, const FftTeam&) {
    if (!copies) return Batch<T>{x + first * n, half, y + 2 * first * (half + 1), half + 1};
    pack<1>(x, real, first, count, space);
    return Batch<T>{space, half, space + count * n, half + 1};
  };
  const auto after = [&](const Batch<T>& batch, std::int64_t first, std::int64_t count, const FftTeam& team) {
    for (std::int64_t l = 0; l < count; ++l)
      team.each(half / 2 + 1, piece, [&](std::int64_t begin, std::int64_t end, int) {
        for (; begin < end; begin += piece)
          kernel.split_real(batch.out + 2 * l * (half + 1), half, turns->data(), begin, std::min(end, begin + piece));
      });
    if (copies) unpack<2>(batch.out, 2 * (half + 1), spectrum, first, count, y);
  };
  transform_lines<T>(*plan, {real.count, copies ? 2 * n + 2 : 0, copies, false, 1}, before, after, call);
}

template <class T>
void real_lines_back_of_even_length(const RoutineCall& call, const AxisLines& real, const AxisLines& spectrum) {
  const std::int64_t n = real.length, half = n / 2;
  const auto plan = fft_plan<T>(half, true, call.level);
  const FftKernel<T>& kernel = fft_kernel<T>(call.level);
  const auto turns = real_turns<T>(n);
  T *x = call.operands[0].as<T>(), *y = call.results[0].as<T>();
  const bool copies = real.stride > 1;
  const auto before = [&](std::int64_t first, std::int64_t count, T* space, const FftTeam& team) {
    const T* from = x + 2 * first * (half + 1);
    if (copies) pack<2>(x, spectrum, first, count, space + 2 * count * n), from = space + 2 * count * n;
    for (std::int64_t l = 0; l < count; ++l)
      team.each(half / 2 + 1, piece, [&](std::int64_t begin, std::int64_t end, int) {
        for (; begin < end; begin += piece)
          kernel.join_real(from + 2 * l * (half + 1), space + l * n, half, turns->data(), begin, std::min(end, begin + piece));
      });
    return Batch<T>{space, half, copies ? space + count * n : y + first * n, half};
  };
  const auto after = [&](const Batch<T>& batch, std::int64_t first, std::int64_t count, const FftTeam&) {
    if (copies) unpack<1>(batch.out, n, real, first, count, y);
  };
  transform_lines<T>(*plan, {real.count, (copies ? 3 : 1) * n + 2, copies, true, inverse_scale<T>(true, n)}, before, after, call);
}

/// Of odd length: as complex lines.
template <class T>
void real_lines_of_odd_length(const RoutineCall& call, const AxisLines& real, const AxisLines& spectrum) {
  const std::int64_t n = real.length;
  const auto plan = fft_plan<T>(n, false, call.level);
  T *x = call.operands[0].as<T>(), *y = call.results[0].as<T>();
  const auto before = [&](std::int64_t first, std::int64_t count, T* space, const FftTeam&) {
    const Begins begins(real, first, count);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t l = 0; l < count; ++l) {
        T* to = space + 2 * (l * n + i);
        to[0] = x[begins.at[l] + i * real.stride], to[1] = 0;
      }
    return Batch<T>{space, n, space + 2 * count * n, n};
  };
  const auto after = [&](const Batch<T>& batch, std::int64_t first, std::int64_t count, const FftTeam&) {
    unpack<2>(batch.out, 2 * n, spectrum, first, count, y);
  };
  transform_lines<T>(*plan, {real.count, 4 * n, real.stride > 1, false, 1}, before, after, call);
}

template <class T>
void real_lines_back_of_odd_length(const RoutineCall& call, const AxisLines& real, const AxisLines& spectrum) {
  const std::int64_t n = real.length;
  const auto plan = fft_plan<T>(n, true, call.level);
  T *x = call.operands[0].as<T>(), *y = call.results[0].as<T>();
  const auto before = [&](std::int64_t first, std::int64_t count, T* space, const FftTeam&) {
    const Begins begins(spectrum, first, count);
    for (std::int64_t i = 0; i <= n / 2; ++i)
      for (std::int64_t l = 0; l < count; ++l) {
        const T* from = x + 2 * (begins.at[l] + i * spectrum.stride);
        T* line = space + 2 * l * n;
        line[2 * i] = from[0], line[2 * i + 1] = i == 0 ? 0 : from[1];
        if (i > 0) line[2 * (n - i)] = from[0], line[2 * (n - i) + 1] = -from[1];
      }
    return Batch<T>{space, n, space + 2 * count * n, n};
  };
  const auto after = [&](const Batch<T>& batch, std::int64_t first, std::int64_t count, const FftTeam&) {
    const Begins begins(real, first, count);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t l = 0; l < count; ++l) y[begins.at[l] + i * real.stride] = batch.out[2 * (l * n + i)];
  };
  transform_lines<T>(*plan, {real.count, 4 * n, real.stride > 1, true, inverse_scale<T>(true, n)}, before, after, call);
}

void run_fft(const RoutineCall& call) {
  const AxisLines lines(call.operands[0].shape, std::get<std::int64_t>(call.attrs[0]));
  if (lines.count * lines.length == 0) return;
  const bool inverse = std::get<bool>(call.attrs[1]);
  if (call.operands[0].dtype == c64) complex_lines<float>(call, lines, inverse);
  else complex_lines<double>(call, lines, inverse);
}

void run_rfft(const RoutineCall& call) {
  const std::int64_t axis = std::get<std::int64_t>(call.attrs[0]);
  const AxisLines real(call.operands[0].shape, axis), spectrum(call.results[0].shape, axis);
  if (real.count == 0) return;
  const bool even = real.length % 2 == 0;
  if (call.operands[0].dtype == f32) (even ? real_lines_of_even_length<float> : real_lines_of_odd_length<float>)(call, real, spectrum);
  else (even ? real_lines_of_even_length<double> : real_lines_of_odd_length<double>)(call, real, spectrum);
}

void run_irfft(const RoutineCall& call) {
  const std::int64_t axis = std::get<std::int64_t>(call.attrs[1]);
  const AxisLines real(call.results[0].shape, axis), spectrum(call.operands[0].shape, axis);
  if (real.count == 0) return;
  const bool even = real.length % 2 == 0;
  if (call.results[0].dtype == f32)
    (even ? real_lines_back_of_even_length<float> : real_lines_back_of_odd_length<float>)(call, real, spectrum);
  else (even ? real_lines_back_of_even_length<double> : real_lines_back_of_odd_length<double>)(call, real, spectrum);
}

bool takes_all(const Graph&, const Node&) { return true; }

const RegisterRoutine fft_routine({"fft", takes_all, run_fft});
const RegisterRoutine rfft_routine({"rfft", takes_all, run_rfft});
const RegisterRoutine irfft_routine({"irfft", takes_all, run_irfft});

}  // namespace
}  // namespace rlx::cpu
