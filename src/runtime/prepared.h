#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "backends/cpu/execute.h"
#include "rlx/array.h"

namespace rlx {

/// A value of a program that is computed once and then read by all runs.
struct PreparedValue {
  int slot = -1;
  Type type;                         // without symbols
  std::set<std::size_t> inputs;      // of the graph, that it is computed from
  std::set<const cpu::Step*> packs;  // products of each run that read it packed
  bool kept = false;                 // read otherwise by each run, so that its bytes must stay
};

/// A launch that computes such values, with the positions of those that it reads and writes.
struct PreparedLaunch {
  const cpu::Step* step = nullptr;
  std::vector<std::size_t> reads, writes;
};

/// The part of a program that is the same in every run, in the order in which it can run.
struct PreparedPart {
  std::vector<PreparedValue> values;
  std::vector<PreparedLaunch> launches;
};

/// By launch: whether it computes the same in every run, from parameters, constants and what other such launches write.
std::vector<bool> prepared_launches(const cpu::Program& program);

/// The prepared values for one binding of the parameters. The first run that needs them computes them, under `mutex`; runs that begin in
/// the meantime wait.
class Preparation {
 public:
  explicit Preparation(const PreparedPart& part) : arrays(part.values.size()) {}
  /// The same but for what depends on the inputs that changed.
  Preparation(const PreparedPart& part, Preparation& before, const std::set<std::size_t>& changed);

  /// The launches that must run so that every value is there that runs read. With `mutex` held.
  std::vector<const PreparedLaunch*> missing(const PreparedPart& part) const;
  /// Lets go of the bytes that no run reads any more. With `mutex` held.
  void drop_unread(const PreparedPart& part);

  std::mutex mutex;                                                // of all below
  bool complete = false;                                           // every value is there that runs read
  std::vector<std::shared_ptr<const Array>> arrays;                // null: not computed, or no run reads its bytes any more
  std::map<const cpu::Step*, std::shared_ptr<const void>> panels;  // of products whose right operand is prepared

 private:
  /// Whether runs read the bytes.
  bool is_read(const PreparedValue& value) const;
};

}  // namespace rlx
