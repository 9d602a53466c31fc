// AWQ, as AutoAWQ writes it: qweight, qzeros and scales of each layer.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/names.h"
#include "models/weights/quantized/integer_matrix.h"
#include "models/weights/quantized/scheme.h"

namespace rlx::quantized {
namespace {

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

class Awq final : public Scheme {
 public:
  explicit Awq(const JsonField& config) : group_size_(config.find("group_size")) {
    const JsonField bits = config.at("bits");
    if (bits.as_integer(0, 64) != 4) bits.refuse("{} bits are not supported (supported: 4)", bits.as_integer(0, 64));
    const auto version = config.find("version");
    if (version && lower_case(version->as_string()) != "gemm")
      version->refuse("{} is not supported (supported: 'gemm')", quote_name(version->as_string()));
  }

  bool is_codes(const TensorView& tensor) const override { return tensor.name.ends_with(".qweight"); }
  std::span<const std::string_view> others() const override {
    static constexpr std::array<std::string_view, 2> names{"qzeros", "scales"};
    return names;
  }

  TensorView matrix(const QuantizedModule& module) const override {
    const TensorView& codes = module.matrix("qweight", i32);
    const std::int64_t columns = codes.shape[0], words = codes.shape[1], rows = words * 8;
    const std::int64_t size = group_size(group_size_, columns), groups = group_count(columns, size);
    const TensorView& scales = module.at("scales");
    if (scales.shape != std::vector{groups, rows}) module.refuse(scales, fmt::format("[{},{}]", groups, rows));
    const AwqCodes layout{{4}, {codes.data.data()}, {module.at("qzeros", i32, {groups, words}).data.data()}, rows};
    return IntegerMatrix(module.matrix_name(), rows, groups_in_order(columns, size), groups, layout, Scales(scales, 1, rows))
        .tensor(module.owner());
  }

 private:
  std::optional<JsonField> group_size_;
};

}  // namespace

std::unique_ptr<Scheme> awq_scheme(const JsonField& config) { return std::make_unique<Awq>(config); }

}  // namespace rlx::quantized
