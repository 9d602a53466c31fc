#pragma once
#include <functional>
#include <map>
#include <set>

#include "passes/places.h"

namespace rlx {

/// The work of one kernel, by element and by expression: beyond it, compiling takes longer than a store and a load can save.
inline constexpr int longest_kernel = 768;

/// Which values of a graph of primitives are stored in memory; the others are computed in the kernels that read them.
class Cut {
 public:
  /// A target that can generate a kernel for the nodes for which `can_generate` holds; the others run on the host and are stored with
  /// their operands, or those values that `host_reads` names for an operand. Without `fuse` every value is stored.
  /// A kernel keeps rows of up to `on_chip_row` elements from one of its loops to the next.
  using HostReads = std::function<ValueId(const Node& node, std::size_t operand)>;
  Cut(const Graph& graph, const std::function<bool(const Node&)>& can_generate, const HostReads& host_reads, std::int64_t on_chip_row,
      bool fuse);

  bool live(std::int32_t node) const { return live_[static_cast<std::size_t>(node)]; }
  bool on_host(std::int32_t node) const { return host_.count(node) > 0; }
  /// In memory before anything runs: an input or a constant.
  bool is_source(ValueId v) const;
  bool is_stored(ValueId v) const { return stored_.count(v) || is_source(v); }
  /// Outputs of the graph, what the host reads and writes, and what is the same in every run and costs more than a load.
  bool must_store(ValueId v) const { return must_store_.count(v) > 0; }
  /// The nodes that read each value, in their order.
  const std::map<ValueId, std::vector<std::int32_t>>& users() const { return users_; }

  /// Stored, and a kernel for it, or the one that it was taken out of, would have been longer than `longest_kernel`.
  bool was_too_long(ValueId v) const { return too_long_.count(v) > 0; }

  /// False when the value was stored already.
  bool store(ValueId v) { return stored_.insert(v).second; }
  /// The value is computed inside a claim instead.
  void keep_inside(ValueId v) {
    if (!must_store(v)) stored_.erase(v);
  }
  /// Stores values that would be computed too often or make kernels too long. `regions`: the values that each claim computes, in order;
  /// what is inside one stays there.
  void share(const std::vector<std::vector<ValueId>>& regions);

 private:
  void find_users();
  void store_invariant();
  using Readers = std::map<ValueId, std::set<ValueId>>;
  std::set<ValueId> share_repeated(const std::map<ValueId, ValueId>& region_end);
  void find_readers(ValueId v, const std::map<ValueId, ValueId>& region_end, Readers& kernels, Readers& loops) const;
  bool is_repeated(ValueId v, const Places::Reads& reads, double cost) const;
  int length(ValueId v) const;
  void bound_kernels(const std::map<ValueId, ValueId>& region_end);
  bool is_read_around(ValueId v) const;
  bool row_fits(ValueId v) const;
  bool is_first_stage(ValueId v, const std::set<ValueId>& loops) const;
  std::vector<bool> left_to_operands(const std::vector<double>& cost) const;
  std::vector<double> costs() const;
  std::vector<double> element_costs() const;

  const Graph& graph_;
  std::int64_t on_chip_row_;
  std::vector<bool> live_;
  std::set<std::int32_t> host_;
  std::set<ValueId> stored_, must_store_, too_long_;
  std::map<ValueId, std::vector<std::int32_t>> users_;
  std::vector<int> places_;  // by node: at how many indices one loop computes it
};

}  // namespace rlx
