// jvp, vjp, grad, hvp and jacobian between values of a graph, and of whole graphs.
#include <gtest/gtest.h>

#include "message.h"
#include "transform/numeric.h"

namespace rlx::test {
namespace {

using Program = std::function<Value(const Values&)>;

/// grad of `program` (to a scalar) by every operand against central differences along random directions.
void check_gradient(const Program& program, const std::vector<Array>& x) {
  std::vector<Array> directions;
  for (std::size_t i = 0; i < x.size(); ++i) directions.push_back(random_f64(x[i].shape(), 100 + static_cast<unsigned>(i)));
  const auto gradients = run(x, [&](const Values& v) { return grad(program(v), v); });
  double along = 0;
  for (std::size_t i = 0; i < x.size(); ++i) along += inner_product(gradients[i], directions[i]);
  const double h = 1e-6;
  auto at = [&](double factor) {
    std::vector<Array> shifted;
    for (std::size_t i = 0; i < x.size(); ++i) shifted.push_back(moved(x[i], directions[i], factor));
    return run(shifted, [&](const Values& v) { return Values{program(v)}; })[0].get_double(0);
  };
  EXPECT_NEAR(along, (at(h) - at(-h)) / (2 * h), difference_tolerance * (1 + std::abs(along)));
  std::vector<Array> all = x;
  all.insert(all.end(), directions.begin(), directions.end());
  const auto forward = run(all, [&](const Values& v) {
    const auto half = v.begin() + std::ssize(x);
    const Values primal(v.begin(), half), tangents(half, v.end());
    return jvp({program(primal)}, primal, tangents);
  });
  EXPECT_NEAR(along, forward[0].get_double(0), rounding_tolerance * (1 + std::abs(along)));
}

Value two_layers(const Values& v) { return sum_all(tanh(matmul(tanh(matmul(v[0], v[1])), v[2]))); }
std::vector<Array> two_layer_operands() { return {random_f64({3, 4}, 1), random_f64({4, 5}, 2), random_f64({5, 2}, 3)}; }

TEST(Grad, OfAnMlpMatchesDifferences) { check_gradient(two_layers, two_layer_operands()); }

TEST(Grad, OfSoftmaxAndNormsMatchesDifferences) {
  check_gradient([](const Values& v) { return sum_all(softmax(v[0], -1) * v[1]); }, {random_f64({3, 4}, 1), random_f64({3, 4}, 2)});
  check_gradient([](const Values& v) { return sum_all(layer_norm(v[0], v[1], v[2]) * v[0]); },
                 {random_f64({3, 4}, 1), random_f64({4}, 2), random_f64({4}, 3)});
}

TEST(Grad, FollowsEveryUseOfAValue) {
  const auto g = run({numbers({}, {3})}, [](const Values& v) { return grad(v[0] * v[0] * v[0] + v[0], v); });
  EXPECT_DOUBLE_EQ(g[0].get_double(0), 28);
}

TEST(Grad, OfAValueThatDoesNotReachTheOutputIsZero) {
  const auto g = run({numbers({2}, {3, 4}), numbers({}, {1})}, [](const Values& v) { return grad(v[1] * v[1], v); });
  EXPECT_EQ(g[0].get_double(0), 0);
  EXPECT_EQ(g[0].shape(), std::vector<std::int64_t>{2});
}

TEST(Grad, TakesIntermediateValuesAsIndependent) {
  const auto g = run({numbers({}, {3})}, [](const Values& v) {
    Value square = v[0] * v[0];
    return grad(square * v[0], {square, v[0]});
  });
  EXPECT_DOUBLE_EQ(g[0].get_double(0), 3);
  EXPECT_DOUBLE_EQ(g[1].get_double(0), 9);
}

TEST(Grad, OfAGradientIsTheSecondDerivative) {
  const auto g = run({numbers({}, {0.7})}, [](const Values& v) {
    Value first = grad(sin(v[0]) * exp(v[0]), v)[0], second = grad(first, v)[0];
    return Values{second, grad(second, v)[0]};
  });
  EXPECT_NEAR(g[0].get_double(0), 2 * std::cos(0.7) * std::exp(0.7), 1e-14);
  EXPECT_NEAR(g[1].get_double(0), 2 * std::exp(0.7) * (std::cos(0.7) - std::sin(0.7)), 1e-14);
}

TEST(Hvp, MatchesDifferencesOfTheGradient) {
  const auto x = two_layer_operands();
  const Array v = random_f64({4, 5}, 9);
  auto function = [](Value a, Value c) { return [=](const Values& w) { return Values{two_layers({a, w[0], c})}; }; };
  const auto product = run({x[0], x[1], x[2], v}, [&](const Values& in) { return Values{hvp(function(in[0], in[2]), in[1], in[3])}; })[0];
  const double h = 1e-6;
  auto gradient = [&](double factor) {
    return run({x[0], moved(x[1], v, factor), x[2]}, [](const Values& in) { return grad(two_layers(in), {in[1]}); })[0];
  };
  const Array high = gradient(h), low = gradient(-h);
  for (std::int64_t i = 0; i < product.size(); ++i)
    EXPECT_NEAR(product.get_double(i), (high.get_double(i) - low.get_double(i)) / (2 * h), difference_tolerance);
}

TEST(Jacobian, IsTheSameInBothModesAndHoldsTheDerivatives) {
  const std::vector<Array> x{numbers({2}, {0.5, 2}), numbers({2}, {3, -1})};
  for (JacobianMode mode : {JacobianMode::forward, JacobianMode::reverse}) {
    const auto j = run(x, [&](const Values& v) {
      return jacobian([&](const Values& in) { return Values{matmul(reshape(in[0], {2, 1}), reshape(v[1], {1, 2})), in[0] * in[0]}; }, v[0],
                      mode);
    });
    EXPECT_EQ(j[0].shape(), (std::vector<std::int64_t>{2, 2, 2}));
    EXPECT_EQ(j[0], numbers({2, 2, 2}, {3, 0, -1, 0, 0, 3, 0, -1}));
    EXPECT_EQ(j[1], numbers({2, 2}, {1, 0, 0, 4}));
  }
}

TEST(StopGradient, CutsTheDerivativeAndKeepsTheValue) {
  const auto y = run({numbers({}, {3})}, [](const Values& v) {
    Value product = stop_gradient(v[0]) * v[0];
    return Values{product, grad(product, v)[0]};
  });
  EXPECT_EQ(y[0].get_double(0), 9);
  EXPECT_EQ(y[1].get_double(0), 3);
}

TEST(StopGradient, HoldsUnderVmap) {
  const auto g = run({numbers({2}, {3, 5})}, [](const Values& v) {
    return grad(sum_all(vmap([](const Values& x) { return Values{stop_gradient(x[0]) * x[0]}; }, v, {0})[0]), v);
  });
  EXPECT_EQ(g[0], numbers({2}, {3, 5}));
}

TEST(GradGraph, NamesItsOutputsAndDropsWhatNobodyNeeds) {
  Graph graph("loss");
  Value x = graph.input("x", {2, 3}, f64), w = graph.param("w", {3}, f64);
  graph.output("loss", sum_all(sin(matmul(x, w))));
  const Graph both = grad_graph(graph, {"w", "x"}, true), only = grad_graph(graph, {"w"});
  ASSERT_EQ(both.outputs().size(), 3u);
  EXPECT_EQ(both.outputs()[0].first, "loss");
  EXPECT_EQ(both.outputs()[1].first, "grad_w");
  EXPECT_EQ(both.outputs()[2].first, "grad_x");
  ASSERT_EQ(both.inputs().size(), 2u);
  EXPECT_EQ(both.inputs()[1].first.kind, InputKind::param);
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(only.size()); ++id) EXPECT_NE(only.node(id).op->name, "sin");
}

TEST(GraphTransforms, AgreeWithTheirValueForms) {
  Graph graph("f");
  Value x = graph.input("x", {3}, f64);
  graph.output("y", sum_all(exp(x) * sin(x)));
  const Array at = random_f64({3}, 1), v = random_f64({3}, 2);
  const auto gradient = evaluate(grad_graph(graph, {"x"}), {{"x", at}})[0];
  const auto tangents = evaluate(jvp_graph(graph, {"x"}), {{"x", at}, {"tangent_x", v}});
  EXPECT_NEAR(tangents[1].get_double(0), inner_product(gradient, v), rounding_tolerance);
  const auto product = evaluate(hvp_graph(graph, {"x"}), {{"x", at}, {"vector_x", v}})[0];
  for (int i = 0; i < 3; ++i)  // (exp(x) sin(x))'' = 2 exp(x) cos(x)
    EXPECT_NEAR(product.get_double(i), 2 * std::exp(at.get_double(i)) * std::cos(at.get_double(i)) * v.get_double(i), rounding_tolerance);
  const auto jacobian = evaluate(jacobian_graph(graph, {"x"}), {{"x", at}})[0];
  EXPECT_LE(difference(jacobian, gradient), rounding_tolerance);
}

TEST(GradGraph, WorksForSymbolicSizes) {
  Graph graph("f");
  Value x = graph.input("x", {Dim::symbol("B", 16), 3}, f64);
  graph.output("y", mean_all(softmax(x, -1) * x));
  const Graph gradient = grad_graph(graph, {"x"});
  check_gradient([](const Values& v) { return mean_all(softmax(v[0], -1) * v[0]); }, {random_f64({5, 3}, 4)});
  const auto symbolic = evaluate(gradient, {{"x", random_f64({5, 3}, 4)}})[0];
  const auto fixed = run({random_f64({5, 3}, 4)}, [](const Values& v) { return grad(mean_all(softmax(v[0], -1) * v[0]), v); })[0];
  EXPECT_EQ(difference(symbolic, fixed), 0);
}

TEST(Derivatives, SayWhatTheyCannotDo) {
  Graph graph;
  Value x = graph.input("x", {3}, f32), n = graph.input("n", {3}, i32);
  EXPECT_EQ(error_of([&] { grad(x, {x}); }), "rlx.grad: the output is f32[3] (allowed: a float scalar)");
  EXPECT_EQ(error_of([&] { grad(sum_all(x), {n}); }), "rlx.grad: input 0 is i32[3] (allowed: floats and complex)");
  EXPECT_EQ(error_of([&] { jvp({x}, {x}, {}); }), "rlx.jvp: 0 tangents for 1");
  EXPECT_EQ(error_of([&] { jvp({x}, {x}, {sum_all(x)}); }), "rlx.jvp: tangent 0 is f32[], the value f32[3]");
  Graph twice("f");
  twice.output("y", sum_all(twice.input("x", {2}, f32)));
  EXPECT_EQ(error_of([&] { grad_graph(twice, {"z"}); }), "graph 'f': has no input 'z'");
}

TEST(Derivatives, IntegersBetweenFloatsStopTheTangent) {
  const auto g = run({numbers({3}, {1.5, -2.5, 3})}, [](const Values& v) { return grad(sum_all(cast(cast(v[0], i32), f64) * v[0]), v); });
  EXPECT_EQ(g[0], numbers({3}, {1, -2, 3}));
}

/// A function may give what it was not given: numbers of the program around it.
TEST(Derivatives, OfResultsFromOutsideOfTheRegionAreZero) {
  const auto in_region = [](const auto& derivative) {
    return [=](const Values& v) {
      const auto body = [&](const Values& x) { return derivative(Values{v[1], x[0] * x[0], v[1]}, x); };
      return checkpoint(body, Save::everything)({v[0]});
    };
  };
  const std::vector<Array> x{numbers({2}, {3, 4}), numbers({2}, {7, 8})};
  const auto forward = run(x, in_region([](const Values& y, const Values& in) { return jvp(y, in, in); }));
  const auto backward = run(x, in_region([](const Values& y, const Values& in) { return vjp(y, in, {in[0], in[0], in[0]}); }));
  const auto all_outside = run(x, in_region([](const Values& y, const Values& in) { return jvp({y[0], y[2]}, in, in); }));
  const auto columns = run(x, in_region([](const Values& y, const Values& in) {
                             return jacobian([&](const Values&) { return y; }, in[0], JacobianMode::forward);
                           }));
  const auto elements = [](const Array& y) { return std::vector<double>(y.values<double>().begin(), y.values<double>().end()); };
  const std::vector<double> zeros(2, 0), slopes{18, 32};
  for (const Array& each : {forward[0], forward[2], all_outside[0], all_outside[1]}) EXPECT_EQ(elements(each), zeros);
  for (const Array& each : {forward[1], backward[0]}) EXPECT_EQ(elements(each), slopes);
  EXPECT_EQ(elements(columns[0]), std::vector<double>(4, 0));
  EXPECT_EQ(elements(columns[1]), (std::vector<double>{6, 0, 0, 8}));
}

TEST(Grad, InsideARegionRefusesALostPath) {
  Graph graph;
  Value x = graph.input("x", {}, f64), square = x * x;
  EXPECT_EQ(
      error_of([&] { fori_loop(3, [&](Value, const Values& carry) { return Values{carry[0] + grad(square * carry[0], {x})[0]}; }, {x}); }),
      "rlx.grad: the region 'step' uses a value that the enclosing graph computes from an input of the derivative (pass it as an operand)");
}

}  // namespace
}  // namespace rlx::test
