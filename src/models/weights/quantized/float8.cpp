// Matrices of 8-bit floats with scales: of DeepSeek V3 and Qwen for blocks, of others for rows or for the whole matrix.
#include <array>

#include "base/names.h"
#include "base/small_float.h"
#include "models/weights/quantized/scheme.h"

namespace rlx::quantized {
namespace {

/// The numbers that the bytes stand for.
std::array<float, 256> values_of(DType dtype) {
  std::array<float, 256> values{};
  for (std::uint32_t byte = 0; byte < 256; ++byte)
    values[byte] = static_cast<float>(decode(dtype == f8e4m3 ? f8e4m3_format : f8e5m2_format, byte));
  return values;
}

struct Float8Matrix {
  TensorView codes;
  std::array<float, 256> values;
  Scales scales;
  std::int64_t rows_of_scale, columns_of_scale;
  std::shared_ptr<const Checkpoint> owner;

  void make_rows(std::int64_t first, std::int64_t count, std::byte* to) const {
    const std::int64_t columns = codes.shape[1];
    for (std::int64_t row = first; row < first + count; ++row)
      for (std::int64_t column = 0; column < columns; ++column, to += 2) {
        const auto code = static_cast<std::size_t>(codes.data[static_cast<std::size_t>(row * columns + column)]);
        put_half(codes.name, values[code] * scales.at(row / rows_of_scale, column / columns_of_scale), to);
      }
  }
};

class Float8 final : public Scheme {
 public:
  explicit Float8(std::optional<std::pair<std::int64_t, std::int64_t>> block) : block_(block) {}

  bool is_codes(const TensorView& tensor) const override {
    return tensor.name.ends_with(".weight") && (tensor.dtype == f8e4m3 || tensor.dtype == f8e5m2);
  }
  std::span<const std::string_view> others() const override {
    static constexpr std::array<std::string_view, 2> names{"weight_scale_inv", "weight_scale"};
    return names;
  }

  /// As F16: no block type has such codes, a product of an E4M3 and a scale is within 2^-12 of an F16, and kernels widen those as they load
  /// them.
  TensorView matrix(const QuantizedModule& module) const override {
    const TensorView& codes = module.at("weight");
    if (codes.shape.size() != 2) module.refuse(codes, "two axes");
    const TensorView* const inverse = module.find("weight_scale_inv");
    const TensorView& scales = inverse != nullptr ? *inverse : module.at("weight_scale");
    const auto [rows, columns] = sizes_of_scale(module, codes, scales);
    const std::int64_t scales_of_row = (codes.shape[1] + columns - 1) / columns;
    auto matrix = std::make_shared<const Float8Matrix>(
        Float8Matrix{codes, values_of(codes.dtype), Scales(scales, scales_of_row, 1), rows, columns, module.owner()});
    TensorView view{module.matrix_name(), f16, codes.shape, {}};
    view.make_rows = [matrix](std::int64_t first, std::int64_t count, std::byte* to) { matrix->make_rows(first, count, to); };
    return view;
  }

 private:
  /// How many rows and columns share a scale.
  std::pair<std::int64_t, std::int64_t> sizes_of_scale(const QuantizedModule& module, const TensorView& codes,
                                                       const TensorView& scales) const {
    const std::int64_t rows = codes.shape[0], columns = codes.shape[1];
    const auto blocks = [&](std::int64_t size, std::int64_t block) { return (size + block - 1) / block; };
    if (block_) {
      const std::vector<std::int64_t> wanted{blocks(rows, block_->first), blocks(columns, block_->second)};
      if (scales.shape != wanted) module.refuse(scales, type_text(scales.dtype, wanted));
      return *block_;
    }
    if (scales.shape.empty() || scales.shape == std::vector<std::int64_t>{1}) return {rows, columns};
    if (scales.shape == std::vector{rows} || scales.shape == std::vector<std::int64_t>{rows, 1}) return {1, columns};
    module.refuse(scales, fmt::format("one scale, or one for each of {} rows", rows));
  }

  std::optional<std::pair<std::int64_t, std::int64_t>> block_;
};

}  // namespace

std::unique_ptr<Scheme> float8_scheme(std::optional<std::pair<std::int64_t, std::int64_t>> block) {
  return std::make_unique<Float8>(block);
}

std::unique_ptr<Scheme> float8_scheme(const JsonField& config) {
  const auto block = config.find("weight_block_size");
  return float8_scheme(block ? std::optional(block_sizes(*block)) : std::nullopt);
}

}  // namespace rlx::quantized
