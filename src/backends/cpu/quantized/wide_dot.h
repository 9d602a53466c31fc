#pragma once
#include <memory>
#include <string_view>
#include <variant>

#include "backends/cpu/gemm/packed_b.h"
#include "backends/cpu/quantized/block_dot.h"

namespace rlx::cpu {

/// Weights of a plain type as the product kernels take them: f32, or f16 and bf16, which those widen as they load them; f16 where none does
/// is widened here.
struct WidePanels : std::variant<PackedB<float>, PackedB<F16>, PackedB<Bf16Weight>> {
  using variant::variant;
  /// All of them, where every product reads all.
  std::span<const std::byte> bytes() const {
    return std::visit([](const auto& b) { return b.batch() == 1 ? b.bytes() : std::span<const std::byte>(); }, *this);
  }
};

/// Whether weights of that type ("F16") are kept as WidePanels.
bool has_wide_panels(std::string_view type);
/// Expects a type that has them, and bytes that are aligned as its numbers are.
WidePanels make_wide_panels(std::string_view type, const BlockWeights& weights, CpuLevel level, ThreadPool& pool);

/// C (m, n) = x (m, k) * weights (n, k)^T in f32, both row after row; each row with the matrix of its group.
struct WideDotArgs {
  RowGroups rows;
  const float* x = nullptr;
  const WidePanels* panels = nullptr;  // of the weights
  std::int64_t n = 0, k = 0;
  float* c = nullptr;
  std::byte* workspace = nullptr;  // wide_dot_workspace bytes
};

std::size_t wide_dot_workspace(const WideDotArgs& args, int threads);

/// The bits of an element depend on its row of x and its row of weights alone. Reads the matrices that have rows.
void wide_dot(const WideDotArgs& args, ThreadPool& pool);

}  // namespace rlx::cpu
