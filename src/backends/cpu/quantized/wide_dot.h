#pragma once
#include <memory>
#include <string_view>
#include <variant>

#include "backends/cpu/gemm/packed_b.h"
#include "backends/cpu/quantized/block_dot.h"

namespace rlx::cpu {

/// Weights of a plain type as the product kernels take them: f32, or f16 and bf16, which those widen as they load them; f16 where none does
/// is widened here.
using WidePanels = std::variant<PackedB<float>, PackedB<F16>, PackedB<Bf16Weight>>;

/// Whether weights of that type ("F16") are kept as WidePanels.
bool has_wide_panels(std::string_view type);
/// Panels of such weights, of a type that has them, at `memory` or in memory of their own, still to be filled.
WidePanels wide_panels(std::string_view type, const BlockWeights& weights, CpuLevel level, std::byte* memory = nullptr);
/// The bytes of memory that they take.
std::int64_t wide_panel_bytes(std::string_view type, const BlockWeights& weights, CpuLevel level);
/// Fills them. Expects bytes that are aligned as the type's numbers are.
void pack_wide(std::string_view type, const BlockWeights& weights, WidePanels& panels, ThreadPool& pool);

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
