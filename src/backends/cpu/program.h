#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backends/cpu/attention/claim.h"
#include "backends/cpu/product.h"
#include "backends/cpu/quantized/claim.h"
#include "backends/cpu/routines/routine.h"
#include "backends/cpu/state_update.h"

namespace rlx::cpu {

/// A node that is computed whole: by a routine, or else by the reference; its regions, where it has some, are programs.
struct HostLaunch {
  std::int32_t node = -1;
  std::string_view op;
  const Routine* routine = nullptr;
  bool control = false;  // it only chooses which of its regions run
};

struct Launch {
  std::variant<GeneratedKernel, Product, Attention, BlockDot, StateUpdate, HostLaunch> what;
  std::vector<ValueId> reads, writes;
  std::vector<GeneratedKernel> edges = {};  // beside a generated kernel: they store the rest of its results
  std::string name() const;
  /// The generated kernels in it, in a fixed order.
  std::vector<GeneratedKernel*> kernels();
  std::vector<const GeneratedKernel*> kernels() const;
};

/// A graph as a list of launches over stored values. `views` are values that share the bytes of another stored value.
struct Program {
  explicit Program(Graph g) : graph(std::move(g)) {}
  Graph graph;  // primitives and claimed composites
  std::vector<std::string> symbols;
  std::vector<Launch> launches;
  std::map<ValueId, ValueId> views;
  std::map<const Graph*, std::shared_ptr<Program>> regions;  // of its control flow ops

  /// The value whose bytes hold `value`.
  ValueId root(ValueId value) const;
  /// The generated kernels of all launches, those of regions included, in a fixed order.
  std::vector<GeneratedKernel*> kernels();
};

}  // namespace rlx::cpu
