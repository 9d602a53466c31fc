#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "backends/backend.h"
#include "backends/mlx/library/call.h"

namespace rlx::mlx {

/// A graph on a device of MLX. Each run builds what MLX shall compute from the rows of the table, and evaluates it at its end: what is
/// asked for is as lazy as MLX is. What follows from parameters alone is computed by the first run.
class MlxGraph final : public TakenGraph {
 public:
  MlxGraph(const Graph& taken, std::string device_name, const mx::Device& device, HostNode on_host);

  std::vector<Array> run(const TakenInputs& inputs) override;
  std::optional<std::string> left_to_host(const Graph& of, const Node& node) const override;

 private:
  using Values = std::vector<Results>;  // by node

  /// The graph, or a region of it.
  struct Part {
    NodeOrder order;
    std::vector<const Row<Rule>*> rows;           // by step; null: the host's
    std::map<std::int32_t, mx::array> constants;  // by node
  };
  /// What is the same in all runs with the same parameters.
  struct Kept {
    std::shared_ptr<const void> parameters;
    std::map<std::size_t, mx::array> inputs;  // the parameters
    std::map<ValueId, mx::array> values;
    std::set<std::int32_t> nodes;  // inputs among them
    mutable std::mutex making;
    mutable std::map<std::int32_t, Results> made;  // of their values, by the node that asked
  };
  /// One run.
  struct Run {
    const Bindings& bindings;
    const Kept& kept;
  };

  void add_part(const Graph& of, bool region);
  bool computes(const Graph& of, const Node& node) const;
  std::shared_ptr<const Kept> kept_for(const TakenInputs& inputs);
  Values input_values(const TakenInputs& inputs, const Kept& kept) const;
  void walk(const Graph& of, const Part& part, Values& values, const Run& run, bool kept) const;
  Results compute(const Graph& of, const Part& part, std::size_t step, std::span<const mx::array> operands, const Run& run) const;
  Results made_once(const Graph& of, std::int32_t node, std::size_t operand, const mx::array& from, Results (*make)(const mx::array&),
                    const Kept& kept) const;
  Results on_the_host(const Graph& of, std::int32_t node, std::span<const mx::array> operands, const Bindings& bindings) const;
  Results run_region(const Region& region, std::vector<mx::array> operands, const Run& run) const;

  std::string device_name_;
  mx::Device device_;
  HostNode on_host_;
  std::map<const Graph*, Part> parts_;
  std::mutex keeping_;
  std::shared_ptr<const Kept> kept_;
};

}  // namespace rlx::mlx
