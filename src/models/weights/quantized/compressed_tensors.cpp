// compressed-tensors: integers packed in words (pack-quantized), signed bytes (int-quantized) and 8-bit floats (float-quantized).
#include <algorithm>
#include <array>
#include <cstring>

#include "base/names.h"
#include "models/weights/quantized/integer_matrix.h"
#include "models/weights/quantized/scheme.h"

namespace rlx::quantized {
namespace {

/// The scales (rows, groups), or one for all.
struct GroupScales {
  GroupScales(const QuantizedModule& module, std::int64_t rows) : tensor(module.at("weight_scale")) {
    const auto& shape = tensor.shape;
    one = shape.empty() || shape == std::vector<std::int64_t>{1};
    if (!one && (shape.size() > 2 || shape[0] != rows)) module.refuse(tensor, fmt::format("one scale, or some for each of {} rows", rows));
    groups = shape.size() == 2 ? shape[1] : 1;
  }
  Scales scales() const { return {tensor, one ? 0 : groups, 1}; }

  const TensorView& tensor;
  bool one = false;
  std::int64_t groups = 1;
};

std::vector<std::int32_t> column_groups(const QuantizedModule& module, const GroupScales& scales, std::int64_t columns) {
  if (scales.groups > columns) module.refuse(scales.tensor, fmt::format("scales of at most {} groups", columns));
  if (module.find("weight_g_idx") != nullptr) return groups_of(module.at("weight_g_idx", i32, {columns}), scales.groups);
  if (columns % scales.groups != 0) module.refuse(scales.tensor, fmt::format("scales of groups that divide {} columns", columns));
  return groups_in_order(columns, columns / scales.groups);
}

class PackedIntegers final : public Scheme {
 public:
  explicit PackedIntegers(const JsonField& bits) : bits_(static_cast<int>(bits.as_integer(0, 64))) {
    if (bits_ != 4 && bits_ != 8) bits.refuse("{} bits are not supported (supported: 4, 8)", bits_);
  }

  bool is_codes(const TensorView& tensor) const override { return tensor.name.ends_with(".weight_packed"); }
  std::span<const std::string_view> others() const override {
    static constexpr std::array<std::string_view, 4> names{"weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx"};
    return names;
  }

  TensorView matrix(const QuantizedModule& module) const override {
    const TensorView& codes = module.matrix("weight_packed", i32);
    const auto [rows, columns] = shape_of(module, codes);
    const GroupScales scales(module, rows);
    const std::int64_t of_word = 32 / bits_;
    PackedCodes layout{{bits_}, {codes.data.data()}, {}, codes.shape[1], scales.groups};
    if (module.find("weight_zero_point") != nullptr)
      layout.zeros = {module.at("weight_zero_point", i32, {(rows + of_word - 1) / of_word, scales.groups}).data.data()};
    return IntegerMatrix(module.matrix_name(), rows, column_groups(module, scales, columns), scales.groups, layout, scales.scales())
        .tensor(module.owner());
  }

 private:
  /// Words are padded, so that a tensor of two numbers says how many rows and columns there are.
  std::pair<std::int64_t, std::int64_t> shape_of(const QuantizedModule& module, const TensorView& codes) const {
    const TensorView& shape = module.at("weight_shape", i64, {2});
    std::array<std::int64_t, 2> sizes{};
    std::memcpy(sizes.data(), shape.data.data(), sizeof sizes);
    const std::int64_t of_word = 32 / bits_, most = codes.shape[1] * of_word;
    if (sizes[0] != codes.shape[0] || sizes[1] > most || sizes[1] <= most - of_word)
      fail("tensor {}: [{},{}] does not fit {}, {} codes a row", quote_name(shape.name), sizes[0], sizes[1], quote_name(codes.name), most);
    return {sizes[0], sizes[1]};
  }

  int bits_;
};

class SignedBytes final : public Scheme {
 public:
  bool is_codes(const TensorView& tensor) const override { return tensor.name.ends_with(".weight") && tensor.dtype == i8; }
  std::span<const std::string_view> others() const override {
    static constexpr std::array<std::string_view, 2> names{"weight_scale", "weight_zero_point"};
    return names;
  }

  TensorView matrix(const QuantizedModule& module) const override {
    const TensorView& codes = module.matrix("weight", i8);
    const std::int64_t rows = codes.shape[0], columns = codes.shape[1];
    const GroupScales scales(module, rows);
    ByteCodes layout{codes.data.data(), nullptr, columns, scales.groups};
    if (module.find("weight_zero_point") != nullptr) layout.zeros = module.at("weight_zero_point", i8, scales.tensor.shape).data.data();
    if (layout.zeros != nullptr && scales.one)
      module.refuse(scales.tensor, fmt::format("some for each of {} rows, as there are zeros", rows));
    return IntegerMatrix(module.matrix_name(), rows, column_groups(module, scales, columns), scales.groups, layout, scales.scales())
        .tensor(module.owner());
  }
};

}  // namespace

std::unique_ptr<Scheme> compressed_tensors_scheme(const JsonField& config) {
  const JsonField groups = config.at("config_groups"), format = config.at("format");
  if (!groups.value().is_object() || groups.value().size() != 1)
    groups.refuse("{} groups of layers (supported: one for all quantized layers)", groups.value().size());
  const JsonField weights = groups.at(groups.value().items().begin().key()).at("weights");
  const std::string kind = format.as_string();
  const bool of_floats = weights.at("type").as_one_of({"int", "float"}) == 1;
  if (kind == "pack-quantized" && !of_floats) return std::make_unique<PackedIntegers>(weights.at("num_bits"));
  const bool bytes = weights.at("num_bits").as_integer(0, 64) == 8;
  if (bytes && !of_floats && (kind == "int-quantized" || kind == "naive-quantized")) return std::make_unique<SignedBytes>();
  if (bytes && of_floats && (kind == "float-quantized" || kind == "naive-quantized")) {
    const auto block = weights.find("block_structure");
    return float8_scheme(block ? std::optional(block_sizes(*block)) : std::nullopt);
  }
  format.refuse("{} of {} {} bits is not supported (supported: pack-quantized, int-quantized and float-quantized)", quote_name(kind),
                of_floats ? "floats of" : "integers of", weights.at("num_bits").value().dump());
}

}  // namespace rlx::quantized
