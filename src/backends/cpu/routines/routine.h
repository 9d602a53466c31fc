#pragma once
#include <functional>

#include "backends/cpu/machine/cpu_features.h"
#include "base/thread_pool.h"
#include "rlx/graph.h"

namespace rlx::cpu {

/// Dense row-major memory of an operand or a result.
struct RoutineArray {
  DType dtype = f32;
  std::vector<std::int64_t> shape;
  std::byte* bytes = nullptr;  // of an operand: to be read only

  std::int64_t size() const {
    std::int64_t elements = 1;
    for (std::int64_t extent : shape) elements *= extent;
    return elements;
  }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(bytes);
  }
};

/// What a routine reads and writes in one run.
struct RoutineCall {
  const Attrs& attrs;  // by the op's fields; `Op<T>::from` reads them
  std::span<const RoutineArray> operands, results;
  ThreadPool& pool;
  CpuLevel level;
  /// Scratch memory of the calling thread, until the routine returns; a second call gives it up for another.
  std::function<std::byte*(std::size_t bytes)> scratch;
};

/// Computes a node as a whole by code written by hand, from stored operands into stored results. The op's own evaluation stays the
/// semantics and the oracle of tests; the same operands give the same bits at any number of threads.
struct Routine {
  std::string_view op;
  bool (*takes)(const Graph& graph, const Node& node);  // by attributes and types
  void (*run)(const RoutineCall& call);
  int filled = -1;       // an operand that is given as one element, of no axes, where all are that constant
  int in_place_of = -1;  // an operand whose memory the only result may take over
};

/// Makes a routine known: `const RegisterRoutine sort_routine({"sort", takes, run});` in the file that holds it.
struct RegisterRoutine {
  explicit RegisterRoutine(const Routine& routine);
};

/// What the routine reads of the node's operand: itself, or the constant that it is filled with.
ValueId read_operand(const Graph& graph, const Node& node, const Routine* routine, std::size_t operand);

/// The routine that computes the node; null where none does.
const Routine* routine_for(const Graph& graph, const Node& node);

}  // namespace rlx::cpu
