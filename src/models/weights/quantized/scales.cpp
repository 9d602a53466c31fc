#include "models/weights/quantized/scales.h"

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/names.h"
#include "rlx/error.h"

namespace rlx::quantized {
namespace {

template <class T>
T read_as(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

}  // namespace

Scales::Scales(const TensorView& tensor, std::int64_t row_stride, std::int64_t group_stride)
    : bytes_(tensor.data.data()), dtype_(tensor.dtype), row_stride_(row_stride), group_stride_(group_stride) {
  if (dtype_ != f16 && dtype_ != bf16 && dtype_ != f32)
    fail("tensor {}: scales of {} (allowed: f16, bf16, f32)", quote_name(tensor.name), name(dtype_));
}

float Scales::at(std::int64_t row, std::int64_t group) const {
  const std::int64_t i = row * row_stride_ + group * group_stride_;
  if (dtype_ == f32) return read_as<float>(bytes_ + 4 * i);
  const auto bits = read_as<std::uint16_t>(bytes_ + 2 * i);
  return dtype_ == f16 ? f16_value(bits) : bf16_value(bits);
}

bool Scales::are_halves(std::int64_t rows, std::int64_t groups) const {
  if (dtype_ == f16) return true;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t group = 0; group < groups; ++group)
      if (const float scale = at(row, group); !std::isfinite(scale) || f16_value(f16_bits(scale)) != scale) return false;
  return true;
}

void put_half(const std::string& tensor, float value, std::byte* to) {
  const std::uint16_t half = f16_bits(value);
  if (std::isfinite(value) && !std::isfinite(f16_value(half)))
    fail("tensor {}: a weight is {} (allowed: up to 65504)", quote_name(tensor), value);
  std::memcpy(to, &half, sizeof half);
}

}  // namespace rlx::quantized
