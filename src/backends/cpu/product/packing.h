#pragma once
#include <memory>
#include <vector>

#include "backends/cpu/execution/work.h"
#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"
#include "backends/cpu/product/product.h"

namespace rlx::cpu {

/// The right operand of a product as its kernels read it, packed, and how it lies before: a launch that runs once.
struct PackedRight {
  enum class Form : std::uint8_t { panels, columns, winograd };

  Form form = Form::panels;
  DType element = f32;
  bool float_left = false;
  std::int64_t offset = 0, depth = 0, columns = 0, row_stride = 0, column_stride = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> depth_axes;  // extents and strides
  bool by_tables = false;                                         // see Product::b_by_tables
};

/// Whether every run reads the same part of the right operand, and every item of the batch.
bool has_fixed_layout(const Product& product);
/// How that of a product with such a layout is packed.
PackedRight packed_right(const Product& product);
std::int64_t packed_bytes(const PackedRight& right, CpuLevel level);
std::shared_ptr<const Claimed> packing_of(PackedRight right);

void prepare_step(const PackedRight& right, Step& step, const Preparation& given);
void run_step(const PackedRight& right, const Step& step, const RunState& run);

/// Calls `body` with the type of the right operand's elements.
auto with_elements(DType element, bool float_left, const auto& body) {
  switch (element) {
    case DType::f64: return body(std::type_identity<double>());
    case DType::bf16: return float_left ? body(std::type_identity<Bf16Weight>()) : body(std::type_identity<Bf16>());
    case DType::f16: return body(std::type_identity<F16>());
    case DType::i8: return body(std::type_identity<std::int8_t>());
    default: return body(std::type_identity<float>());
  }
}

}  // namespace rlx::cpu
