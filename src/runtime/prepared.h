#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "rlx/array.h"
#include "runtime/memory/storage.h"

namespace rlx {

/// A value of a program that is computed once and then read by all runs.
struct PreparedValue {
  int slot = -1;
  Type type;                     // without symbols
  std::set<std::size_t> inputs;  // of the graph, that it is computed from
  bool kept = false;             // read by each run, so that its bytes must stay
};

/// A launch that computes such values, with the positions of those that it reads and writes.
struct PreparedLaunch {
  std::size_t step = 0;
  std::vector<std::size_t> reads, writes;
};

/// The part of a program that is the same in every run, in the order in which it can run.
struct PreparedPart {
  std::vector<PreparedValue> values;
  std::vector<PreparedLaunch> launches;
};

/// What is known of the prepared part for one binding of the parameters.
struct Prepared {
  explicit Prepared(const PreparedPart& part);
  /// The same as `before`, but for what depends on the inputs that changed.
  Prepared(const PreparedPart& part, const Prepared& before, const std::set<std::size_t>& changed);

  /// The launches that must run so that every value is there that runs read.
  std::vector<const PreparedLaunch*> missing(const PreparedPart& part) const;
  /// Lets go of the bytes that no run reads.
  void drop_unread(const PreparedPart& part);

  bool complete = false;                             // every value is there that runs read
  std::vector<std::shared_ptr<const Array>> arrays;  // null: not computed, or no run reads its bytes
};

/// What is prepared, as all programs of a session share it that compute the same from the same arrays. Thread-safe.
class SharedValues {
 public:
  /// What was added under a key, while somebody holds it and none of the arrays that it comes from is gone; else null.
  std::shared_ptr<const Array> find(const std::string& key);
  /// `origins`: what it was computed from.
  void add(const std::string& key, const std::shared_ptr<const Array>& value, const std::vector<Array>& origins);
  /// What comes from these bytes is computed again when it is next asked for: they may have changed.
  void forget(const Array& origin);

 private:
  struct Source {
    const std::byte* bytes;
    std::weak_ptr<const void> owner;  // gone: the address may belong to other bytes now
  };
  struct Entry {
    std::weak_ptr<const Array> value;
    std::vector<Source> sources;
  };
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
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
  /// Replaces it by what is there now.
  void set(std::shared_ptr<const Prepared> prepared);

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
