// Control flow: regions become blocks of CoreML's operations, which see the names outside of them.
#include "backends/coreml/operations.h"
#include "ops/control/host_call.h"

namespace rlx::coreml {
namespace {

Tensors joined(std::span<const Tensor> first, std::span<const Tensor> second) {
  Tensors all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

/// Values of these types under names of their own.
Tensors places_for(const Call& c, std::span<const Tensor> like) {
  Tensors places(like.begin(), like.end());
  for (Tensor& place : places) place.name = c.out.parts().name("carry");
  return places;
}

/// A block may not give back what stands outside of it, or one value twice.
Tensors given_back(Body& block, const Tensors& values) {
  Tensors results;
  for (const Tensor& value : values) results.push_back(unary(block, "identity", value));
  return results;
}

Tensors cond(const Call& c) {
  const Tensors operands(c.x.begin() + 1, c.x.end());
  std::vector<ProtobufWriter> blocks;
  for (const std::string_view branch : {"then", "otherwise"}) {
    Body block(c.out.parts());
    blocks.push_back(block.block({}, given_back(block, c.emit_region(block, *c.attr<Region>(branch), operands))));
  }
  Tensors results;
  for (std::size_t r = 0; r < c.node.results.size(); ++r) results.push_back(c.result(r));
  return c.out.add_all("cond", {{"pred", reshape(c.out, c.x[0], {})}}, std::move(results), blocks);
}

/// `holds` and `step` fill blocks that read the places of the carry.
template <class Holds, class Step>
Tensors loop(const Call& c, const Tensors& carry, Holds holds, Step step) {
  Body condition(c.out.parts()), body(c.out.parts());
  const Tensors tested = places_for(c, carry), carried = places_for(c, carry);
  std::vector<ProtobufWriter> blocks;
  blocks.push_back(condition.block(tested, given_back(condition, {holds(condition, tested)})));
  blocks.push_back(body.block(carried, given_back(body, step(body, carried))));
  Tensors results = carry;
  for (Tensor& result : results) result.name.clear();
  return c.out.add_all("while_loop", {{"loop_vars", carry}}, std::move(results), blocks);
}

Tensors while_rule(const Call& c) {
  const auto carries = static_cast<std::size_t>(c.number("carries"));
  const Tensors carry(c.x.begin(), c.x.begin() + static_cast<std::ptrdiff_t>(carries));
  const auto constants = std::span(c.x).subspan(carries);
  return loop(
      c, carry,
      [&](Body& block, const Tensors& now) {
        return reshape(block, c.emit_region(block, *c.attr<Region>("condition"), joined(now, constants))[0], {});
      },
      [&](Body& block, const Tensors& now) { return c.emit_region(block, *c.attr<Region>("step"), joined(now, constants)); });
}

/// Slices are read and written at a place that is carried: (place, carry..., stacked results...).
Tensors scan(const Call& c) {
  const auto carries = static_cast<std::size_t>(c.number("carries")), scanned = static_cast<std::size_t>(c.number("scanned"));
  const Dim length = c.dims("length")[0];
  const bool reverse = c.flag("reverse");
  const auto over = std::span(c.x).subspan(carries, scanned), constants = std::span(c.x).subspan(carries + scanned);
  const Tensor zero = c.out.constant(Sizes{}, Sizes{0});
  Tensors carry{reverse ? binary(c.out, "add", zero, size(c.out, length - 1)) : zero};
  carry.insert(carry.end(), c.x.begin(), c.x.begin() + static_cast<std::ptrdiff_t>(carries));
  for (std::size_t r = carries; r < c.node.results.size(); ++r) {
    const Tensor place = c.result(r);
    carry.push_back(filled(c.out, place.element == Element::boolean ? Element::i32 : place.element, place.shape, 0));
  }
  Tensors results = loop(
      c, carry,
      [&](Body& block, const Tensors& now) {
        return reverse ? compare(block, "greater_equal", now[0], number(now[0], 0)) : compare(block, "less", now[0], size(block, length));
      },
      [&](Body& block, const Tensors& now) {
        Tensors operands(now.begin() + 1, now.begin() + 1 + static_cast<std::ptrdiff_t>(carries));
        for (const Tensor& x : over) operands.push_back(convert(block, take(block, movable(block, x), now[0], 0), x.element));
        const Tensors made = c.emit_region(block, *c.attr<Region>("step"), joined(operands, constants));
        Tensors next{binary(block, "add", now[0], number(now[0], reverse ? -1 : 1))};
        next.insert(next.end(), made.begin(), made.begin() + static_cast<std::ptrdiff_t>(carries));
        for (std::size_t y = carries; y < made.size(); ++y) {
          const Tensor& stack = now[1 + y];
          Dims one = made[y].shape;
          one.insert(one.begin(), 1);
          next.push_back(put(block, stack, reshape(block, now[0], {1}), reshape(block, movable(block, made[y]), one), "update"));
        }
        return next;
      });
  results.erase(results.begin());
  return results;
}

}  // namespace

Rows control_rows() {
  static constexpr Row<Rule> rows[] = {
      {"cond", cond}, {"while", while_rule}, {"scan", scan}, {"host_call", nullptr, nullptr, host_call_reason}};
  return rows;
}

/// Ops that CoreML has no operations for, nor a composition here.
Rows missing_rows() {
  constexpr std::string_view bits = "CoreML has no view of a number's bits", complex = "its numbers are pairs before",
                             runtime_blocks = "CoreML decodes weights alone, not bytes that a run computes";
  static constexpr Row<Rule> rows[] = {
      {"bitcast", nullptr, nullptr, bits}, {"reinterpret", nullptr, nullptr, bits}, {"complex", nullptr, nullptr, complex},
      {"real", nullptr, nullptr, complex}, {"imag", nullptr, nullptr, complex},     {"decode_blocks", nullptr, nullptr, runtime_blocks},
  };
  return rows;
}

}  // namespace rlx::coreml
