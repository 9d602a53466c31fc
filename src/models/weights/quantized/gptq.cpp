// GPTQ, as AutoGPTQ and GPTQModel write it: qweight, qzeros, scales and g_idx of each layer.
#include <algorithm>
#include <array>

#include "base/names.h"
#include "models/weights/quantized/integer_matrix.h"
#include "models/weights/quantized/scheme.h"

namespace rlx::quantized {
namespace {

class Gptq final : public Scheme {
 public:
  explicit Gptq(const JsonField& config) : group_size_(config.find("group_size")) {
    const JsonField bits = config.at("bits");
    bits_ = static_cast<int>(bits.as_integer(0, 64));
    if (std::ranges::count(std::array{2, 3, 4, 8}, bits_) == 0) bits.refuse("{} bits are not supported (supported: 2, 3, 4, 8)", bits_);
    const auto format = config.find("checkpoint_format");
    if (format && format->as_one_of({"gptq", "gptq_v2"}) == 1) zero_offset_ = 0;
  }

  bool is_codes(const TensorView& tensor) const override { return tensor.name.ends_with(".qweight"); }
  std::span<const std::string_view> others() const override {
    static constexpr std::array<std::string_view, 3> names{"qzeros", "scales", "g_idx"};
    return names;
  }

  TensorView matrix(const QuantizedModule& module) const override {
    const TensorView& codes = module.matrix("qweight", i32);
    const std::int64_t rows = codes.shape[1], columns = codes.shape[0] * 32 / bits_;
    if (codes.shape[0] * 32 % bits_ != 0 || rows * bits_ % 32 != 0)
      module.refuse(codes, fmt::format("rows and columns whose {} bits fill whole words", bits_));
    const std::int64_t size = group_size(group_size_, columns), groups = group_count(columns, size);
    const TensorView& scales = module.at("scales");
    if (scales.shape != std::vector{groups, rows}) module.refuse(scales, fmt::format("[{},{}]", groups, rows));
    GptqCodes layout{{bits_}, {codes.data.data()}, {module.at("qzeros", i32, {groups, rows * bits_ / 32}).data.data()}, rows, zero_offset_};
    const bool ordered = module.find("g_idx") == nullptr;
    const auto of_column = ordered ? groups_in_order(columns, size) : groups_of(module.at("g_idx", i32, {columns}), groups);
    return IntegerMatrix(module.matrix_name(), rows, of_column, groups, layout, Scales(scales, 1, rows)).tensor(module.owner());
  }

 private:
  int bits_ = 4, zero_offset_ = 1;
  std::optional<JsonField> group_size_;
};

}  // namespace

std::unique_ptr<Scheme> gptq_scheme(const JsonField& config) { return std::make_unique<Gptq>(config); }

}  // namespace rlx::quantized
