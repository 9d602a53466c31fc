#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "backends/backend.h"
#include "backends/mlx/library/call.h"
#include "backends/mlx/library/fused_region.h"

namespace rlx::mlx {

/// How a run is computed. lazy: all at its end. eager: each op at once, so that an error names it. compiled: stretches without control flow
/// are functions that MLX compiles, one for each binding of the sizes. fused: as lazy, but for regions that kernels of RLX compute, on
/// Metal; measured: where these were found to be faster.
enum class Mode : std::uint8_t { lazy, eager, compiled, fused, measured };
/// That which the options name, else the variable RLX_MLX_MODE; lazy where neither does. Throws Error for another name.
Mode mode_of(const SessionOptions& options);

/// A graph on a device of MLX. Each run builds what MLX shall compute from the rows of the table, and evaluates it at its end: what is
/// asked for is as lazy as MLX is. What follows from parameters alone is computed by the first run.
class MlxGraph final : public TakenGraph {
 public:
  MlxGraph(const Graph& taken, std::string device_name, const mx::Device& device, const SessionOptions& options, HostNode on_host);

  std::vector<Array> run(const TakenInputs& inputs) override;
  std::optional<std::string> left_to_host(const Graph& of, const Node& node) const override;

 private:
  /// What nodes have computed, by node.
  struct Values : std::vector<Results> {
    using std::vector<Results>::vector;
    Results& of(ValueId v) { return (*this)[static_cast<std::size_t>(v.node)]; }
    Arrays at(std::span<const ValueId> ids) {
      Arrays arrays;
      for (const ValueId v : ids) arrays.push_back(of(v)[static_cast<std::size_t>(v.result)]);
      return arrays;
    }
    void set(const Graph& graph, ValueId v, const mx::array& array) {
      of(v).resize(graph.node(v.node).results.size(), array);
      of(v)[static_cast<std::size_t>(v.result)] = array;
    }
  };

  /// The graph, or a region of it.
  struct Part {
    NodeOrder order;
    std::vector<const Row<Rule>*> rows;                     // by step; null: the host's
    std::map<std::int32_t, mx::array> constants;            // by node
    std::vector<Segment> segments;                          // to be compiled or fused
    std::vector<std::unique_ptr<const FusedRegion>> fused;  // by segment; null: none
  };
  using Compiled = std::function<Arrays(const Arrays&)>;
  /// What is the same in all runs with the same parameters.
  struct Kept {
    std::shared_ptr<const void> parameters;
    std::map<std::size_t, mx::array> inputs;  // the parameters
    std::map<ValueId, mx::array> values;
    mutable std::mutex making;
    mutable std::map<std::int32_t, Results> made;  // of their values, by the node that asked
    mutable std::map<std::pair<const Segment*, Bindings>, std::shared_ptr<const Compiled>> compiled;
  };
  /// One run.
  struct Run {
    const Bindings& bindings;
    const Kept& kept;
    bool traced = false;  // a function is made, to be compiled
  };

  void add_part(const Graph& of, bool region);
  bool fuses() const { return mode_ >= Mode::fused; }
  bool computes(const Graph& of, const Node& node) const;
  bool is_traced(const Graph& of, const Node& node) const;  // whether it can be part of what is compiled
  std::shared_ptr<const Kept> kept_for(const TakenInputs& inputs);
  Values input_values(const TakenInputs& inputs, const Kept& kept) const;
  void walk(const Graph& of, const Part& part, Values& values, const Run& run, bool kept) const;
  void walk_step(const Graph& of, const Part& part, std::size_t step, Values& values, const Run& run) const;
  void run_segment(const Graph& of, const Part& part, std::size_t number, Values& values, const Run& run) const;
  Arrays by_ops(const Graph& of, const Part& part, const Segment& segment, const Arrays& inputs, const Run& run) const;
  std::shared_ptr<const Compiled> compiled(const Graph& of, const Part& part, const Segment& segment, const Run& run) const;
  void place_kept(const Kept& kept, Values& values) const;
  Results compute(const Graph& of, const Part& part, std::size_t step, std::span<const mx::array> operands, const Run& run) const;
  Results made_once(const Graph& of, std::int32_t node, std::size_t operand, const mx::array& from, Results (*make)(const mx::array&),
                    const Kept& kept) const;
  Results on_the_host(const Graph& of, std::int32_t node, std::span<const mx::array> operands, const Bindings& bindings) const;
  Results run_region(const Region& region, std::vector<mx::array> operands, const Run& run) const;

  const Mode mode_;
  const std::int64_t unrolled_steps_;
  std::string device_name_;
  mx::Device device_;
  HostNode on_host_;
  std::map<const Graph*, Part> parts_;
  std::mutex keeping_;
  std::shared_ptr<const Kept> kept_;
};

}  // namespace rlx::mlx
