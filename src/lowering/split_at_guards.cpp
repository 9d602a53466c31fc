#include "lowering/split_at_guards.h"

#include <algorithm>

namespace rlx {
namespace {

constexpr std::int64_t fewest_elements = 1 << 15;  // what a thread computes while it starts some more kernels
constexpr std::int64_t narrow = 1 << 11;           // elements of a box in which choices may stay
constexpr std::size_t most_parts = 8;              // along an axis

std::int64_t elements_of(const Box& box) {
  std::int64_t elements = 1;
  for (std::size_t axis = 0; axis < box.begin.size(); ++axis) elements *= box.end[axis] - box.begin[axis];
  return elements;
}

/// All elements; nothing where the kernel does not go over them one by one, in loops of known lengths.
std::optional<Box> whole(const Graph& graph, const OutputKernel& outputs) {
  const Dims& shape = outputs.shape(graph);
  const Kernel& kernel = outputs.kernel;
  for (ValueId v : outputs.values)
    if (!(graph.type(v).shape == shape)) return std::nullopt;
  if (std::ranges::any_of(kernel.exprs, [](const Expr& e) { return e.kind == Expr::Kind::reduce; })) return std::nullopt;
  Box box;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (!shape[axis].is_static() || !(kernel.extent(kernel.loops[axis]) == shape[axis])) return std::nullopt;
    box.begin.push_back(0);
    box.end.push_back(shape[axis].value());
  }
  return box;
}

/// Where along an axis guards begin to hold, or cease to.
using Turns = std::map<int, std::set<std::int64_t>>;  // by variable

void add_turn(const Guard& guard, Turns& turns) {
  if (guard.kind != Guard::Kind::non_negative || guard.index.terms().size() != 1) return;
  const Index::Term& term = guard.index.terms()[0];
  if (term.atom->kind != Atom::Kind::variable || !term.coefficient.is_static() || !guard.index.constant().is_static()) return;
  const std::int64_t constant = guard.index.constant().value(), factor = term.coefficient.value();
  // constant + factor * i >= 0: from the quotient on, or up to it.
  const auto rounded_down = [](std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); };
  turns[term.atom->id].insert(factor > 0 ? -rounded_down(constant, factor) : rounded_down(constant, -factor) + 1);
}

/// The boxes, each cut along an axis at the turns inside it, but for narrow ones.
std::vector<Box> cut_along(const std::vector<Box>& boxes, std::size_t axis, const std::set<std::int64_t>& turns) {
  std::vector<Box> result;
  for (const Box& box : boxes) {
    Box rest = box;
    if (elements_of(box) >= narrow)
      for (const std::int64_t turn : turns) {
        if (turn <= rest.begin[axis] || turn >= rest.end[axis]) continue;
        Box part = rest;
        part.end[axis] = rest.begin[axis] = turn;
        result.push_back(std::move(part));
      }
    result.push_back(std::move(rest));
  }
  return result;
}

}  // namespace

std::vector<Kernel> split_at_guards(const Graph& graph, const OutputKernel& outputs, const Puller::IsStored& is_stored) {
  const std::optional<Box> all = whole(graph, outputs);
  if (!all || elements_of(*all) < fewest_elements) return {};
  const Kernel& kernel = outputs.kernel;
  Turns turns;
  for (const Expr& e : kernel.exprs)
    for (const Guard& guard : e.guards) add_turn(guard, turns);
  std::vector<Box> boxes{*all};
  for (std::size_t axis = 0; axis < kernel.loops.size(); ++axis) {
    const auto found = turns.find(kernel.loops[axis]);
    if (found == turns.end() || found->second.size() >= most_parts) continue;
    boxes = cut_along(boxes, axis, found->second);
  }
  if (boxes.size() == 1) return {};
  std::ranges::stable_sort(boxes, std::greater(), elements_of);
  std::vector<Kernel> parts;
  for (const Box& box : boxes) parts.push_back(build_part(graph, outputs, is_stored, box));
  return parts;
}

}  // namespace rlx
