#pragma once
#include <optional>

#include "kernel/pull.h"
#include "lowering/program.h"
#include "lowering/target.h"

namespace rlx {

/// A kernel that computes stored values of one shape, and perhaps such as have one element for each row of it (all but the last axis).
struct OutputKernel {
  std::vector<ValueId> values;
  Kernel kernel;
  std::set<ValueId> computed;  // every value of the graph that it computes

  /// Over which the kernel loops.
  const Dims& shape(const Graph& graph) const;
};

/// Nothing when one of the values would be needed at another index than its own, before it is complete. Where elements alternate (real and
/// imaginary parts, low and high nibbles), one step of the innermost loop computes two of them, and nothing is computed to be thrown away.
std::optional<OutputKernel> build_outputs(const Graph& graph, std::vector<ValueId> values, const Puller::IsStored& is_stored);

/// Part of a kernel's loops: along each axis the elements from `begin` on below `end`.
struct Box {
  std::vector<std::int64_t> begin, end;
};

/// The kernel of `outputs`, all of whose values have one shape, for the elements in a box. `is_stored`: as the kernel was built with.
Kernel build_part(const Graph& graph, const OutputKernel& outputs, const Puller::IsStored& is_stored, const Box& box);

/// One step of a program under way: a kernel, or else a finished launch.
struct Unit {
  std::optional<OutputKernel> outputs;
  Launch launch;
};

/// Merges kernels over one shape, or over a shape and its rows, that read the same memory, so that it is read once: the later one moves to
/// the place of the earlier. What is the same in every run stays apart from what is not, products of which threads compute blocks stay
/// apart too, and no kernel gets more buffers than the target's. `root` gives the stored value behind a view. A value that then nobody
/// reads from memory is only stored if it is one of `outputs`, the roots of the graph's.
std::vector<Unit> merge_outputs(const Graph& graph, std::vector<Unit> units, const Puller::IsStored& is_stored,
                                const std::function<ValueId(ValueId)>& root, const std::set<ValueId>& outputs, const Caps& caps);

}  // namespace rlx
