// Dots in every layout against the reference: axes in any order, operands that are moved, repeated, widened or computed, and what follows.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "ir/reference.h"
#include "rlx/ops.h"
#include "rlx/session.h"
#include "rlx/text.h"

namespace rlx {
namespace {

using Ints = std::vector<std::int64_t>;

struct Elements {
  DType narrow, wide;  // of what is stored and of the dot
};

/// A dot of two inputs or parameters, drawn from a seed. All numbers are small integers, whose sums of products every type of sums holds:
/// results are exact whatever the order, up to the rounding of a bf16 result, which is the same for the same sum. None is 0, as the sign of
/// a sum of zeros depends on where it begins.
class RandomDot {
 public:
  explicit RandomDot(unsigned seed) : random_(seed) {
    static constexpr Elements all[] = {{f32, f32}, {f64, f64}, {bf16, bf16}, {i8, i32}, {bf16, f32}, {f32, bf16}, {i8, f32}};
    elements_ = all[pick(std::size(all))];
    const Ints batch = add_axes(pick(3)), contracted = add_axes(1 + pick(3)), left = add_axes(pick(3)), right = add_axes(pick(3));
    make_worth_a_product(contracted, left.empty() ? right : left);
    const Operand a = operand("a", {batch, contracted, left}), b = operand("b", {batch, contracted, right});
    finish(dot(a.value, b.value, places(a, contracted), places(b, contracted), places(a, batch), places(b, batch)));
  }

  Graph graph;
  std::map<std::string, Array> inputs, params;

 private:
  struct Operand {
    Value value;
    Ints axes;
  };

  std::size_t pick(std::size_t count) { return random_() % count; }
  bool one_in(std::size_t count) { return pick(count) == 0; }

  Ints add_axes(std::size_t count) {
    static constexpr std::int64_t sizes[] = {1, 2, 3, 5, 8, 17};
    Ints axes;
    for (std::size_t i = 0; i < count; ++i) {
      axes.push_back(static_cast<std::int64_t>(sizes_.size()));
      sizes_.push_back(sizes[pick(std::size(sizes))]);
    }
    return axes;
  }

  /// Smaller dots are left to generated loops, larger ones take the reference too long.
  void make_worth_a_product(const Ints& contracted, const Ints& free) {
    const auto size = [&](std::int64_t axis) -> std::int64_t& { return sizes_[static_cast<std::size_t>(axis)]; };
    const auto work = [&] { return std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{1}, std::multiplies<>()); };
    const bool long_rows = one_in(3);  // which few columns take as dot products
    size(contracted[pick(contracted.size())]) = long_rows ? (one_in(2) ? 64 : 131) : one_in(2) ? 16 : 19;
    if (!free.empty() && !long_rows) size(free[pick(free.size())]) = one_in(2) ? 32 : 37;
    for (std::int64_t& axis : sizes_)
      if (work() > 60'000) axis = std::min<std::int64_t>(axis, 2);
  }

  Dims shape(const Ints& axes) const {
    Dims dims;
    for (std::int64_t axis : axes) dims.push_back(sizes_[static_cast<std::size_t>(axis)]);
    return dims;
  }

  static Ints places(const Operand& operand, const Ints& axes) {
    Ints at;
    for (std::int64_t axis : axes) at.push_back(std::find(operand.axes.begin(), operand.axes.end(), axis) - operand.axes.begin());
    return at;
  }

  Value cheap(Value x) {
    switch (pick(4)) {
      case 0: return neg(x);
      case 1: return x + x;
      case 2: return abs(x);
      default: return select(gt(x, scalar(x, 1, x.dtype())), x, scalar(x, -1, x.dtype()));
    }
  }

  Operand operand(const std::string& name, const std::vector<Ints>& groups) {
    Ints order;
    for (const Ints& group : groups) order.insert(order.end(), group.begin(), group.end());
    std::shuffle(order.begin(), order.end(), random_);
    Value x = stored(name, order);
    if (one_in(3)) x = cheap(x);
    if (one_in(3)) x = moved(x, order);
    x = cast(x, elements_.wide);
    if (one_in(3)) x = cheap(x);
    if (one_in(2)) x = moved(x, order);
    if (one_in(8)) graph.output(name + "_moved", x);
    return {x, order};
  }

  /// An input or a parameter with these axes, of which one may be repeated.
  Value stored(const std::string& name, const Ints& order) {
    Ints own = order;
    if (own.size() > 1 && one_in(4)) own.erase(own.begin() + static_cast<std::ptrdiff_t>(pick(own.size())));
    const bool is_param = one_in(2);
    Array values(elements_.narrow, static_sizes(own));
    for (std::int64_t i = 0; i < values.size(); ++i) values.set_double(i, (one_in(2) ? 1.0 : -1.0) * static_cast<double>(1 + pick(3)));
    (is_param ? params : inputs)[name] = values;
    const Value x = is_param ? graph.param(name, shape(own), elements_.narrow) : graph.input(name, shape(own), elements_.narrow);
    if (own.size() == order.size()) return x;
    Ints at;
    for (std::int64_t axis : own) at.push_back(std::find(order.begin(), order.end(), axis) - order.begin());
    return broadcast(one_in(2) ? cast(x, elements_.wide) : x, shape(order), at);
  }
  Ints static_sizes(const Ints& axes) const {
    Ints sizes;
    for (std::int64_t axis : axes) sizes.push_back(sizes_[static_cast<std::size_t>(axis)]);
    return sizes;
  }

  /// The axes in another order.
  Value moved(Value x, Ints& order) {
    Ints perm(order.size()), next;
    std::iota(perm.begin(), perm.end(), 0);
    std::shuffle(perm.begin(), perm.end(), random_);
    for (std::int64_t i : perm) next.push_back(order[static_cast<std::size_t>(i)]);
    order = next;
    return transpose(x, perm);
  }

  void finish(Value y) {
    if (one_in(2)) y = cheap(y);
    if (y.rank() > 1 && one_in(3)) {
      Ints order(static_cast<std::size_t>(y.rank()));
      y = moved(y, order);
    }
    if (one_in(4)) y = cast(y, y.dtype() == f32 ? bf16 : f32);
    if (y.dtype() == bf16 && one_in(2)) y = bitcast(y, u16);
    graph.output("y", y);
  }

  std::mt19937 random_;
  Elements elements_;
  Ints sizes_;  // by axis
};

void expect_same(const Graph& graph, const std::map<std::string, Array>& inputs, const std::map<std::string, Array>& params) {
  std::map<std::string, Array> all = inputs;
  all.insert(params.begin(), params.end());
  const std::vector<Array> wanted = evaluate(graph, all);
  static const Session session(Device::cpu(), {.threads = 2, .cache_folder = ""});
  Executable program = session.compile(graph);
  program.set_params(params);
  const Outputs seen = program.run({inputs.begin(), inputs.end()});
  for (std::size_t out = 0; out < wanted.size(); ++out)
    for (std::int64_t i = 0; i < wanted[out].size(); ++i)
      ASSERT_EQ(seen[out].get_double(i), wanted[out].get_double(i)) << "element " << i << " of output " << out << " of\n" << to_text(graph);
}

class DotLayouts : public testing::TestWithParam<unsigned> {};

TEST_P(DotLayouts, GiveWhatTheReferenceGives) {
  for (unsigned seed = GetParam(); seed < GetParam() + 60; ++seed) {
    SCOPED_TRACE(seed);
    const RandomDot drawn(seed);
    expect_same(drawn.graph, drawn.inputs, drawn.params);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DotLayouts, testing::Values(0, 100, 200, 300));

/// The graph on small integers; symbols are 33.
void expect_same(const Graph& graph) {
  std::map<std::string, Array> values;
  std::mt19937 random(1);
  for (const auto& [input, value] : graph.inputs()) {
    Ints shape;
    for (const Dim& size : input.type.shape) shape.push_back(size.is_static() ? size.value() : 33);
    Array array(input.type.dtype, shape);
    for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, static_cast<double>(random() % 7) - 3);
    values.emplace(input.name, array);
  }
  expect_same(graph, values, {});
}

TEST(Dots, ComputeALeftOperandAlongTwoAxesOfDepth) {
  Graph graph;
  const Value a = graph.input("a", {2, 4, 33, 16}, f32), b = graph.input("b", {4, 16, 64}, f32);
  graph.output("y", dot(neg(a), b, {1, 3}, {0, 1}));
  const Value c = graph.input("c", {8, 64, 16}, f32), d = graph.input("d", {8, 16, 64}, f32);
  graph.output("z", dot(neg(c), d, {0, 2}, {0, 1}));
  expect_same(graph);
}

// Between cast and dot the narrow operand repeats what is a column of the result, or a row where only the other operand has the batch.
TEST(Dots, WidenNarrowOperandsWhoseElementsAreRepeated) {
  for (const auto& [narrow, wide] : {std::pair{i8, i32}, {bf16, f32}}) {
    Graph graph;
    const Value x = graph.input("x", {64, 64}, narrow), w = graph.input("w", {64, 8}, narrow);
    graph.output("columns", dot(cast(x, wide), broadcast(cast(w, wide), {64, 8, 16}, {0, 1}), {1}, {0}));
    graph.output("batch", dot(broadcast(cast(x, wide), {64, 64, 64}, {1, 2}), cast(x, wide), {2}, {1}, {0}, {0}));
    expect_same(graph);
  }
}

TEST(Dots, ReadNarrowOperandsThroughMovesThatAreOutputs) {
  for (const auto& [narrow, wide] : {std::pair{i8, i32}, {bf16, f32}}) {
    Graph graph;
    const Value x = graph.input("x", {64, 64}, narrow), w = graph.input("w", {64, 64}, narrow);
    const Value moved = transpose(cast(x, wide), {1, 0});
    graph.output("moved", moved);
    graph.output("sum", sum(moved, {1}));
    graph.output("y", dot(moved, cast(w, wide), {1}, {0}));
    expect_same(graph);
  }
}

TEST(Dots, RoundTheirSumsBeforeWhatFollows) {
  Graph graph;
  const Value x = graph.input("x", {64, 64}, f32), w = graph.input("w", {64, 64}, f32);
  const auto product = [&](double scale) { return dot(cast(x * scale, bf16), cast(w, bf16), {1}, {0}); };
  graph.output("bits", bitcast(product(17), u16));  // sums of up to 64 * 17 * 9 do not fit into 8 bits
  graph.output("rest", cast(product(19), f32) - product(19) + product(21));
  graph.output("wide", cast(product(23), f32) * 3);
  expect_same(graph);
}

TEST(Dots, RepeatARightOperandWhereTheLeftIsAnInput) {
  Graph graph;
  const Value a = graph.input("a", {8, 64, 16}, f32), b = graph.input("b", {8, 16, 8}, f32);
  graph.output("y", dot(a, broadcast(b, {8, 16, 8, 16}, {0, 1, 2}), {0, 2}, {0, 1}));
  expect_same(graph);
}

TEST(Dots, OfSizesWithAnyName) {
  for (const char* name : {"tile_stride", "tile_stride_"}) {
    Graph graph;
    const Value a = graph.input("a", {Dim::symbol(name, 64), 64}, f32), b = graph.input("b", {64, 70}, f32);
    graph.output("y", neg(dot(neg(a), b, {1}, {0})));
    expect_same(graph);
  }
}

}  // namespace
}  // namespace rlx
