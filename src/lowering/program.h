#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emit/emit.h"
#include "kernel/cost.h"
#include "rlx/graph.h"

namespace rlx {

class ProgramWriter;

/// Sizes among which one lies.
struct SizeRange {
  Dim size;
  std::int64_t least, most;
  bool holds(const Bindings& bindings) const {
    const std::int64_t value = size.evaluate(bindings);
    return least <= value && value <= most;
  }
};

/// A kernel with its code.
struct GeneratedKernel {
  Kernel kernel;
  KernelText text;
  KernelFunction function = nullptr;
  std::vector<std::int64_t> first = {};  // by buffer: the element from which the text counts; none: 0
  std::optional<SizeRange> only = {};    // when it runs; none: always
  std::size_t number = 0;                // in place of the function on a device: its place among those loaded for the program

  std::string short_name() const { return text.name.substr(0, 9); }
};

/// What code written by hand, or kernels whose expressions do not say it, compute in a launch, as its target knows it.
struct Claimed {
  Claimed() = default;
  Claimed(const Claimed&) = delete;
  Claimed& operator=(const Claimed&) = delete;
  virtual ~Claimed() = default;

  /// Operations of a run.
  virtual double flops(const Graph& graph, const Bindings& bindings) const = 0;
  /// Bytes of the operands that a run leaves unread.
  virtual double unread_bytes(const Graph& graph, const Bindings& bindings) const = 0;
  /// The name under which program files know what reads it again, and what that reads; see program_file/program_parts.h.
  virtual std::string_view kind() const = 0;
  virtual void write(ProgramWriter& way) const = 0;
};

struct Launch {
  /// By generated kernels, by code written by hand, by the choice of which regions run, or by the reference.
  enum class Kind : std::uint8_t { kernel, claim, control, host };
  Kind kind = Kind::kernel;
  std::string name;
  std::vector<ValueId> reads, writes;
  std::vector<GeneratedKernel> kernels = {};  // of a kernel: one after the other they store its results; of a claim: what its code calls
  std::string claim = {};                     // what computes `node`, or the states that are written
  ValueId node = {-1, 0};                     // of the host, and of a claim that computes one
  std::shared_ptr<const Claimed> claimed = {};
  // Memory that its kernels share while they run, under values that no node has.
  std::vector<std::pair<ValueId, Type>> scratch = {};
  // Set: the launch packs what it reads: it writes one value of this type, which no node has, and which is faster to read. What `claimed`
  // writes to program files says all of it. It runs once, where what it reads stays from run to run; who reads the value elsewhere finds no
  // memory there.
  std::optional<Type> packed = {};
  std::string arithmetic = {};  // see LaunchReport::arithmetic; empty: that of the results
  int storing = -1;             // the kernel that stores all results, where one does
  int replaced = -1;            // among what is read: the memory that the code may take for its result, where there is one
};

/// A graph as a list of launches over stored values. `views` are values that share the bytes of another stored value.
struct Program {
  explicit Program(Graph g) : graph(std::move(g)) {}
  Graph graph;  // primitives and claimed composites
  std::vector<std::string> symbols;
  std::vector<Launch> launches;
  std::map<ValueId, ValueId> views;
  std::map<const Graph*, std::shared_ptr<Program>> regions;  // of its control flow ops

  /// Of what a launch reads or writes.
  const Type& type(ValueId value) const;
  /// The value whose bytes hold `value`.
  ValueId root(ValueId value) const;
  /// The generated kernels of all launches, those of regions included, in a fixed order.
  std::vector<GeneratedKernel*> kernels();

  std::map<ValueId, Type> packed;  // values that no node has; see Launch::packed
};

/// Operations and bytes moved by a run of the launch.
Cost cost(const Program& program, const Launch& launch, const Bindings& bindings);

}  // namespace rlx
