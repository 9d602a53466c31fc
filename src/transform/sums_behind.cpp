#include "transform/sums_behind.h"

#include <algorithm>
#include <map>
#include <optional>

#include "ir/rebuild.h"
#include "ir/region.h"
#include "ops/contraction/dot_axes.h"
#include "transform/tangent.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

/// Axes of a value once the steps lie in front of them.
Ints behind_steps(Ints axes) {
  for (auto& axis : axes) ++axis;
  return axes;
}
Ints steps_and(const Ints& axes) {
  Ints all = behind_steps(axes);
  all.insert(all.begin(), 0);
  return all;
}

/// What a step adds to a carry: a dot, or a sum, of values of the step, whose axes are moved.
struct Term {
  std::vector<const Node*> moves;  // the last first
  const Node* source = nullptr;    // the dot or the sum

  /// The sum over all steps, from the stacked operands of the source.
  Value over_steps(const Values& stacked) const {
    Value total;
    if (source->op->name == "dot") {
      const DotAxes axes(*source);
      total = dot(stacked[0], stacked[1], steps_and(axes.lhs_contract), steps_and(axes.rhs_contract), behind_steps(axes.lhs_batch),
                  behind_steps(axes.rhs_batch));
    } else {
      total = sum(stacked[0], steps_and(std::get<Ints>(source->attrs[1])));
    }
    for (auto move = moves.rbegin(); move != moves.rend(); ++move) total = transpose(total, std::get<Ints>((*move)->attrs[0]));
    return total;
  }
};

class SumsBehind {
 public:
  SumsBehind(const Scan& op, const Values& operands)
      : op_(op), operands_(operands), step_(op.step->snapshot()), carries_(static_cast<std::size_t>(op.carries)), terms_(carries_) {
    for (const auto& [input, value] : step_.inputs()) input_places_.emplace(value.id(), input_places_.size());
    count_uses();
    for (std::size_t k = 0; k < carries_; ++k)
      if (std::optional<Term> term = added_to(k); term && keep_operands(*term, k)) terms_[k] = std::move(term);
  }

  Values results() const {
    const auto behind = std::ranges::count_if(terms_, [](const auto& term) { return term.has_value(); });
    if (behind == 0) return make_scan(op_, operands_);
    Scan rest = op_;
    rest.carries -= behind;
    rest.step = without_sums();
    const Values loop = make_scan(rest, kept(operands_));
    const auto at_result = [&](std::size_t output) { return loop[output - static_cast<std::size_t>(behind)]; };
    Values all;
    std::size_t next = 0;
    for (std::size_t k = 0; k < carries_; ++k) all.push_back(terms_[k] ? operands_[k] + total(*terms_[k], at_result) : loop[next++]);
    for (std::size_t k = carries_; k < op_.step->outputs().size(); ++k) all.push_back(at_result(k));
    return all;
  }

 private:
  void count_uses() {
    for (std::int32_t id : needed_nodes(step_.data(), output_ids(step_)))
      for (ValueId operand : step_.node(id).operands) ++uses_[operand];
    for (ValueId output : output_ids(step_)) ++uses_[output];
  }
  bool is_scanned(ValueId v) const {
    const auto it = input_places_.find(v);
    return it != input_places_.end() && it->second >= carries_ && it->second < carries_ + static_cast<std::size_t>(op_.scanned);
  }
  bool is_constant(ValueId v) const {
    const auto it = input_places_.find(v);
    return it != input_places_.end() && it->second >= carries_ + static_cast<std::size_t>(op_.scanned);
  }

  /// The term that the step adds to carry k, if nothing else reads the carry or the sum.
  std::optional<Term> added_to(std::size_t k) const {
    const ValueId next = step_.outputs()[k].second.id(), carry = step_.inputs()[k].second.id();
    const Node& add = step_.node(next.node);
    const auto uses = uses_.find(carry);
    if (uses_.at(next) != 1) return std::nullopt;
    if (add.op->name != "add" || uses == uses_.end() || uses->second != 1) return std::nullopt;
    if (std::ranges::count(add.operands, carry) != 1) return std::nullopt;
    Term term;
    ValueId from = add.operands[add.operands[0] == carry ? 1 : 0];
    for (; step_.node(from.node).op->name == "transpose"; from = step_.node(from.node).operands[0])
      term.moves.push_back(&step_.node(from.node));
    term.source = &step_.node(from.node);
    const bool is_sum = term.source->op->name == "reduce" && std::get<std::string>(term.source->attrs[0]) == "sum";
    const bool moves = std::ranges::none_of(term.source->operands, [&](ValueId v) { return is_constant(v); });
    return moves && (is_sum || term.source->op->name == "dot") ? std::optional(term) : std::nullopt;
  }

  /// Makes the term's operands results of the step, where they are not at hand for all steps. They may take no more than the carry, and not
  /// more than twice what each step reads of its own, so that a long loop's memory stays of the size that it was.
  bool keep_operands(const Term& term, std::size_t k) {
    std::vector<ValueId> more;
    Dim needed(0), read(0);
    for (ValueId v : term.source->operands)
      if (!is_scanned(v) && !output_of(v)) more.push_back(v), needed = needed + step_.type(v).size();
    for (std::size_t i = carries_; i < carries_ + static_cast<std::size_t>(op_.scanned); ++i)
      read = read + step_.inputs()[i].second.type().size();
    const Dim carry = step_.inputs()[k].second.type().size();
    if (!(carry - needed).known_non_negative() || !(read * 2 - needed).known_non_negative()) return false;
    for (ValueId v : more)
      if (!output_of(v)) step_.output("kept" + std::to_string(step_.outputs().size()), Value(&step_.data(), v));
    return true;
  }
  std::optional<std::size_t> output_of(ValueId v) const {
    for (std::size_t i = carries_; i < step_.outputs().size(); ++i)
      if (step_.outputs()[i].second.id() == v) return i;
    return std::nullopt;
  }

  template <class T>
  std::vector<T> kept(const std::vector<T>& by_input) const {
    std::vector<T> all;
    for (std::size_t i = 0; i < by_input.size(); ++i)
      if (i >= carries_ || !terms_[i]) all.push_back(by_input[i]);
    return all;
  }
  Region without_sums() const {
    const std::vector<Type> types = input_types(step_);
    return std::make_shared<const Graph>(dead_code_eliminated(*closed_region(step_.name(), kept(types), [&](const Values& in) {
      Values all;
      for (std::size_t i = 0, next = 0; i < types.size(); ++i)
        all.push_back(i < carries_ && terms_[i] ? zeros(in[0].graph(), types[i]) : in[next++]);
      return kept(inline_graph(in[0].graph(), step_, all));
    })));
  }
  template <class AtResult>
  Value total(const Term& term, const AtResult& at_result) const {
    Values stacked;
    for (ValueId v : term.source->operands) stacked.push_back(is_scanned(v) ? operands_[input_places_.at(v)] : at_result(*output_of(v)));
    return term.over_steps(stacked);
  }

  const Scan& op_;
  const Values& operands_;
  Graph step_;  // with further outputs
  std::size_t carries_;
  std::vector<std::optional<Term>> terms_;  // by carry: what is summed behind the loop
  std::map<ValueId, std::size_t> input_places_, uses_;
};

}  // namespace

Values scan_with_sums_behind(const Scan& op, const Values& operands) { return SumsBehind(op, operands).results(); }

}  // namespace rlx
