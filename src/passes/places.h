#pragma once
#include <functional>
#include <map>
#include <vector>

#include "ir/op.h"

namespace rlx {

/// At which indices kernels would compute the values of a graph that are not stored: each (value, index) pair is an expression of its own,
/// so that what is read where it is and beside it, again and again, makes kernels that grow with the number of its places.
/// Nodes are visited from the last to the first.
class Places {
 public:
  static constexpr std::size_t most = 64;  // more places of a value are counted as so many
  /// Of one loop over the elements of a stored value, or of a reduction.
  struct Reads {
    std::size_t places = 0;  // different indices, the most that one loop has; one with many divisions counts as several
    double repeats = 0;  // how often it computes each element: 2 where all of them are read at two indices, or half of its steps need none
  };

  Places(const Graph& graph, std::function<bool(ValueId)> is_stored) : graph_(graph), is_stored_(std::move(is_stored)) {
    at_.resize(graph.size());
  }

  Reads reads(ValueId v) const;
  /// True for so many, of one loop or of several together, that a kernel which computes the value is too long.
  bool are_too_many(ValueId v) const { return reads(v).places >= most || at_[static_cast<std::size_t>(v.node)].size() >= most; }
  /// Goes on to the operands of a live node, all of whose users were visited. `loop`: the value whose loop computes it, where it is the
  /// first that this loop computes; nothing where it is computed at the places that its users gave it.
  void visit(std::int32_t id, std::optional<ValueId> loop);

 private:
  struct Place {
    ValueId loop;
    std::vector<Index> at;
    double steps;  // for how many elements of the loop it is computed
  };
  void pass(const Node& node, std::int32_t id, const Place& place, bool once_for_many);
  void pass_sources(const Node& node, const Place& place, const std::vector<Source>& sources, bool once_for_many);
  void add(ValueId v, Place place);
  std::vector<Index> own_index(ValueId v) const;
  double elements(ValueId v) const { return static_cast<double>(graph_.type(v).size().upper()); }

  const Graph& graph_;
  std::function<bool(ValueId)> is_stored_;
  std::vector<std::vector<Place>> at_;  // by node, until it is visited
  int next_variable_ = 1 << 10;         // of reductions and of numbers read from memory; the loops' own come first
};

/// What computing an element of each value takes, at one place: the work of scalar ops and the guards of choices, of which all sides are
/// computed, down to stored values and reductions.
std::vector<double> place_costs(const Graph& graph, const std::function<bool(ValueId)>& is_stored);

}  // namespace rlx
