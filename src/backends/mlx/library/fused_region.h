#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "backends/consumer.h"
#include "backends/mlx/library/arrays.h"
#include "lowering/program.h"

namespace rlx::mlx {

using Arrays = std::vector<mx::array>;

/// Neighbours in the order of a run that kernels of RLX compute: generated as Metal's are, and launched by MLX (mx::fast::metal_kernel).
class FusedRegion {
 public:
  /// Whether a node may be part of one: what works on elements, moves them, or reduces.
  static bool joins(const Graph& graph, const Node& node);
  /// Throws Error where MLX launches no such kernels on the device.
  static void check(const mx::Device& device);
  /// Of steps in the order of a run. Null where less than two of them compute, or a kernel writes a part of a result.
  static std::unique_ptr<const FusedRegion> of(const Graph& graph, const NodeOrder& order, const Segment& segment,
                                               const mx::Device& device);

  const std::vector<ValueId>& reads() const { return reads_; }
  /// From `reads()` to what the segment writes. `by_ops` computes the same by MLX's ops: it does where there is nothing to launch, or more
  /// than MLX's grids hold. `measured`: also where it was found to be the faster one when arrays of such a size first came.
  Arrays run(const Arrays& inputs, const Bindings& bindings, const std::function<Arrays()>& by_ops, bool measured) const;

 private:
  FusedRegion(Program program, std::vector<ValueId> reads, const mx::Device& device);
  std::vector<std::int64_t> positions(const Bindings& bindings) const;
  Arrays by_kernels(const Arrays& inputs, const Bindings& bindings, const std::vector<std::int64_t>& positions) const;

  Program program_;
  std::vector<ValueId> reads_;
  std::map<ValueId, mx::array> constants_;
  std::vector<mx::fast::CustomKernelFunction> functions_;  // by launch
  mutable std::mutex measuring_;
  mutable std::map<int, bool> faster_;  // whether kernels are, by the bits of the number of their positions
};

}  // namespace rlx::mlx
