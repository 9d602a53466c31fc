#pragma once
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "backends/cpu/execution/execute.h"
#include "base/function_ref.h"
#include "rlx/array.h"
#include "runtime/memory/storage.h"

namespace rlx {

/// A value of a program that is computed once and then read by all runs.
struct PreparedValue {
  int slot = -1;
  Type type;                     // without symbols
  std::set<std::size_t> inputs;  // of the graph, that it is computed from
  std::set<std::size_t> packs;   // steps: products of each run that read it packed
  bool kept = false;             // read otherwise by each run, so that its bytes must stay
};

/// A launch that computes such values, with the positions of those that it reads and writes.
struct PreparedLaunch {
  const cpu::Step* step = nullptr;
  std::vector<std::size_t> reads, writes;
};

/// A product of each run whose right operand is the same in all of them.
struct PackedProduct {
  std::size_t step = 0;
  std::set<std::size_t> inputs;  // of the graph, that the operand is computed from
};

/// The part of a program that is the same in every run, in the order in which it can run.
struct PreparedPart {
  std::vector<PreparedValue> values;
  std::vector<PreparedLaunch> launches;
  std::vector<PackedProduct> products;
  std::size_t steps = 0;  // of the whole program
};

/// What is known of the prepared part for one binding of the parameters.
struct Prepared {
  explicit Prepared(const PreparedPart& part);
  /// The same as `before`, but for what depends on the inputs that changed.
  Prepared(const PreparedPart& part, const Prepared& before, const std::set<std::size_t>& changed);

  /// The launches that must run so that every value is there that runs read.
  std::vector<const PreparedLaunch*> missing(const PreparedPart& part) const;
  /// Lets go of the bytes that no run reads any more.
  void drop_unread(const PreparedPart& part);

  bool complete = false;                                   // every value is there that runs read
  std::vector<std::shared_ptr<const Array>> arrays;        // null: not computed, or no run reads its bytes any more
  std::vector<std::shared_ptr<const cpu::Panels>> panels;  // by step: those of products

 private:
  /// Whether runs read the bytes.
  bool is_read(const PreparedValue& value) const;
};

/// The parameters of a program, and what is prepared of them. Runs share it; a parameter that is bound again makes a new one.
class BoundParameters {
 public:
  /// `placed`: those that are known to lie where runs read them; see `place`.
  BoundParameters(std::vector<Array> bound, Prepared prepared, std::vector<Array> placed = {})
      : arrays(std::move(bound)), prepared_(std::make_shared<Prepared>(std::move(prepared))), placed_(std::move(placed)) {
    placed_.resize(arrays.size());
  }

  /// What is there now: it never changes, and nothing waits for it.
  std::shared_ptr<const Prepared> prepared() const;
  /// Adds to it, and gives what is there then.
  std::shared_ptr<const Prepared> add(const PreparedPart& part, FunctionRef<void(Prepared&)> change);

  /// The arrays where runs read them, those that are `wanted`: brought there by the first that asks.
  std::vector<Array> place(Storage& storage, const std::vector<bool>& wanted);
  /// Lets go of the others there: all that depends on them is prepared.
  void let_go_but(const std::vector<bool>& wanted);
  /// The same without those that have changed.
  std::vector<Array> placed_but(const std::set<std::size_t>& changed) const;

  const std::vector<Array> arrays;  // by input of the graph; of no size where there is none
  std::mutex preparing;             // of the first run that needs the prepared values: it computes them, and the others wait

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Prepared> prepared_;
  std::vector<Array> placed_;
};

}  // namespace rlx
