#pragma once
#include <memory>
#include <optional>

#include "lowering/draft.h"

namespace rlx {

/// A claim at work on one graph. Made, it has stored what it computes and found what it computes inside. Lowering then calls its functions
/// in their order, each for all claims of the target before the next.
struct GraphClaim {
  GraphClaim() = default;
  GraphClaim(const GraphClaim&) = delete;
  GraphClaim& operator=(const GraphClaim&) = delete;
  virtual ~GraphClaim() = default;

  /// Stores those operands that it could not read otherwise.
  virtual void store_operands() {}
  /// The values that each of its launches computes, in order: all but the last stay inside.
  virtual std::vector<std::vector<ValueId>> regions() const { return {}; }
  /// What several kernels share is stored by now.
  virtual void build() {}
  /// That which computes a stored value, the first result of its node, if this claim does. The first claim of the list that gives one has
  /// it.
  virtual std::optional<Launch> launch(ValueId value) = 0;
};

/// What a target computes otherwise than by the kernels that are pulled from its graph: by code written by hand, or by kernels of a form
/// of their own. One object, in the folder of what computes it; the target lists it, and nothing else knows of it.
struct Claim {
  Claim() = default;
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  virtual ~Claim() = default;

  /// Whether it computes the node as a whole, by attributes, sizes and types: a composite then stays in the graph in place of its body.
  virtual bool takes(const Graph& /*graph*/, const Node& /*node*/, const Caps& /*caps*/) const { return false; }
  /// The primitives that have an expansion and stay as they are, because the claim computes them.
  virtual std::set<std::int32_t> kept(const Graph& /*graph*/) const { return {}; }
  /// Whether the nodes that it takes may read what is not stored. Else they are stored with what they read.
  virtual bool reads_views() const { return false; }
  /// What it reads of an operand of a node that it takes.
  virtual ValueId read_operand(const Graph& /*graph*/, const Node& node, std::size_t operand) const { return node.operands[operand]; }
  /// The graph of primitives and claimed composites in a form in which it can take most.
  virtual Graph prepare(const Graph& graph, const Caps& /*caps*/) const { return graph; }
  virtual std::unique_ptr<GraphClaim> start(Draft& draft) const = 0;
};

/// The claim of the target that computes the node as a whole; null: none.
const Claim* claim_of(const TargetDevice& target, const Graph& graph, const Node& node);

}  // namespace rlx
