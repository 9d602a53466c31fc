#pragma once
#include <memory>
#include <string_view>
#include <variant>

#include "backends/cpu/gemm/packed_b.h"
#include "backends/cpu/quantised/block_dot.h"
#include "quant/format.h"

namespace rlx::cpu {

/// Weights of a plain type as the product kernels take them: f32, or f16 and bf16, which those widen as they load them.
struct WidePanels : std::variant<PackedB<float>, PackedB<F16>, PackedB<Bf16Weight>> {
  using variant::variant;
  /// All of them, where every product reads all.
  std::span<const std::byte> bytes() const {
    return std::visit([](const auto& b) { return b.batch() == 1 ? b.bytes() : std::span<const std::byte>(); }, *this);
  }
};

/// Whether weights of that type are kept as WidePanels. Others are decoded to floats by each product, a panel at a time.
bool has_wide_panels(const BlockFormat& format, CpuLevel level);
/// Expects a type that has them, and bytes that are aligned as its numbers are.
WidePanels make_wide_panels(const BlockFormat& format, const BlockWeights& weights, CpuLevel level, ThreadPool& pool);

/// C (m, n) = x (m, k) * weights (n, k)^T in f32, both row after row; each row with the matrix of its group.
struct WideDotArgs {
  RowGroups rows;
  const float* x = nullptr;
  bool rounds = false;  // x to 8 bits, with a scale for each 32 neighbours
  const BlockFormat* format = nullptr;
  BlockWeights weights;
  const WidePanels* panels = nullptr;  // of the weights; null: they are decoded
  CpuLevel level{};
  float* c = nullptr;
  std::byte* workspace = nullptr;  // wide_dot_workspace bytes
};

std::size_t wide_dot_workspace(const WideDotArgs& args, int threads);

/// The bits of an element depend on its row of x and its row of weights alone. Reads the matrices that have rows.
void wide_dot(const WideDotArgs& args, ThreadPool& pool);

}  // namespace rlx::cpu
