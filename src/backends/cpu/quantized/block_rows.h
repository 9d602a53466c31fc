#pragma once
#include <cstddef>
#include <cstdint>

#include "backends/cpu/quantized/block_kernel.h"

namespace rlx::cpu {
namespace {

/// Where a step of a packed tile has what.
template <class Byte>
struct StepOfRows {
  constexpr StepOfRows(const RowFormat& format, Byte* x, std::int64_t rows)
      : codes(x),
        scales(codes + rows * RowFormat::step),
        starts(scales + 4 * rows),
        sums(starts + (format.offset != 0 ? 4 * rows * format.halves : 0)) {}
  Byte *codes, *scales, *starts, *sums;
};

/// BlockKernel::pack_rows, where `Steps` rounds up to Steps::most times 32 numbers: `codes` (32) i8 of each in pieces of any type, their
/// `scales`, and the `sums` of the codes of each half.
template <class Steps>
void pack_rows(const RowFormat& format, const float* x, std::int64_t x_stride, int rows, std::int64_t k, std::byte* tile) {
  const auto write = [](std::byte* to, const auto& value) { __builtin_memcpy(to, &value, sizeof value); };
  const std::int64_t step_bytes = rows * format.row_bytes(), steps = k / RowFormat::step;
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t s = 0; s < steps; s += Steps::most) {
      const std::int64_t count = steps - s < Steps::most ? steps - s : Steps::most;
      const Steps packed(x + r * x_stride + s * RowFormat::step, count);
      for (std::int64_t i = 0; i < count; ++i) {
        const StepOfRows<std::byte> to(format, tile + (s + i) * step_bytes, rows);
        static_assert(sizeof packed.codes[i] == RowFormat::step);
        write(to.codes + r * RowFormat::step, packed.codes[i]);
        write(to.scales + 4 * r, packed.scales[i]);
        for (int half = 0; half < format.halves; ++half) {
          const std::int32_t sum = format.halves == 1 ? packed.sums[0][i] + packed.sums[1][i] : packed.sums[half][i];
          if (format.offset != 0) write(to.starts + 4 * (half * rows + r), -format.offset * sum);
          if (format.minima) write(to.sums + 4 * (half * rows + r), packed.scales[i] * static_cast<float>(sum));
        }
      }
    }
}

}  // namespace
}  // namespace rlx::cpu
