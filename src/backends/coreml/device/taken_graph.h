#pragma once
#include <map>
#include <mutex>

#include "backends/backend.h"
#include "backends/consumer.h"
#include "backends/coreml/device/opened_package.h"

namespace rlx::coreml {

/// A graph on a device of CoreML, cut into packages where a node is the host's. A package is made when a run first needs it: with open
/// sizes, or where CoreML needs to know them, for the sizes of the run. What follows from parameters alone is part of the packages.
class CoreMlGraph final : public TakenGraph {
 public:
  CoreMlGraph(const Graph& given, Library& library, DecodedTypes& decoded, std::string units, HostNode on_host);

  std::vector<Array> run(const TakenInputs& inputs) override;
  std::optional<std::string> left_to_host(const Graph& of, const Node& node) const override;
  std::vector<std::pair<std::string, std::string>> placements() override;

 private:
  using Values = std::map<ValueId, Array>;
  /// What is the same in all runs with the same parameters.
  struct Kept {
    std::shared_ptr<const void> parameters;
    std::mutex making;
    std::map<std::pair<std::size_t, Bindings>, std::shared_ptr<OpenedPackage>> packages;  // by segment; sizes where they must be known
    std::recursive_mutex computing;
    Values values;  // of those that nodes of the host read
  };

  std::string refusal(std::int32_t node) const;
  std::shared_ptr<Kept> kept_for(const TakenInputs& inputs);
  std::shared_ptr<OpenedPackage> package(std::size_t segment, const TakenInputs& inputs, Kept& kept) const;
  void run_package(std::size_t segment, const TakenInputs& inputs, Kept& kept, Values& values) const;
  void run_on_host(std::int32_t node, const TakenInputs& inputs, Kept& kept, Values& values) const;
  Array value(ValueId v, const TakenInputs& inputs, Kept& kept, Values& values) const;

  Library& library_;
  DecodedTypes& decoded_;
  const std::string units_;
  HostNode on_host_;
  NodeOrder order_;
  std::map<const Node*, std::string> refusals_;
  std::map<ValueId, std::string> blocks_;  // their types, of what is decoded
  std::vector<Segment> segments_;
  std::vector<bool> is_open_;  // by segment: one package is for all sizes
  std::mutex keeping_;
  std::shared_ptr<Kept> kept_;
};

}  // namespace rlx::coreml
