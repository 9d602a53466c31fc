// vmap of functions, checkpoint, and functions with derivative or batching rules of their own.
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "message.h"
#include "passes/expand.h"
#include "transform/numeric.h"

namespace rlx::test {
namespace {

// `vmap`

TEST(Vmap, TakesAndGivesAnyAxis) {
  const Array a = random_f64({3, 2, 4}, 1), b = random_f64({4, 5}, 2);
  const auto y = run({a, b}, [](const Values& v) {
    return vmap([](const Values& x) { return Values{matmul(x[0], x[1])}; }, v, {1, std::nullopt}, {-1});
  })[0];
  ASSERT_EQ(y.shape(), (std::vector<std::int64_t>{3, 5, 2}));
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 5; ++k)
      for (int n = 0; n < 2; ++n) {
        double wanted = 0;
        for (int j = 0; j < 4; ++j) wanted += a.get_double((i * 2 + n) * 4 + j) * b.get_double(j * 5 + k);
        EXPECT_NEAR(y.get_double((i * 5 + k) * 2 + n), wanted, rounding_tolerance);
      }
}

TEST(Vmap, NestsAndSeesValuesOfAllLevels) {
  const auto y = run({numbers({2}, {1, 2}), numbers({3}, {10, 20, 30}), numbers({}, {100})}, [](const Values& v) {
    return vmap([&](const Values& a) { return vmap([&](const Values& b) { return Values{a[0] * b[0] + v[2]}; }, {v[1]}, {0}); }, {v[0]},
                {0});
  })[0];
  EXPECT_EQ(y, numbers({2, 3}, {110, 120, 130, 120, 140, 160}));
}

TEST(Vmap, GivesEveryExampleAResultThatDependsOnNone) {
  const auto y = run({numbers({2}, {1, 2}), numbers({}, {5})},
                     [](const Values& v) { return vmap([&](const Values&) { return Values{v[1]}; }, {v[0]}, {0}); })[0];
  EXPECT_EQ(y, numbers({2}, {5, 5}));
}

TEST(Vmap, OfGradGivesPerExampleGradients) {
  const Array x = random_f64({4, 3}, 1), w = random_f64({3}, 2);
  auto loss = [](Value example, Value weights) { return tanh(matmul(example, weights)); };
  const auto y =
      run({x, w}, [&](const Values& v) { return vmap([&](const Values& e) { return grad(loss(e[0], v[1]), {e[0]}); }, {v[0]}, {0}); })[0];
  for (int n = 0; n < 4; ++n) {
    const double s = std::tanh(inner_product(slice_of(x, n), w));
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(y.get_double(n * 3 + i), (1 - s * s) * w.get_double(i), rounding_tolerance);
  }
}

TEST(Vmap, OfGradByASharedOperandGivesOneGradientForEachExample) {
  const Array x = random_f64({4, 3}, 1), w = random_f64({3}, 2);
  const auto y = run({x, w}, [&](const Values& v) {
    return vmap([](const Values& e) { return grad(sin(matmul(e[0], e[1])), {e[1]}); }, v, {0, std::nullopt});
  })[0];
  for (int n = 0; n < 4; ++n)
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(y.get_double(n * 3 + i), std::cos(inner_product(slice_of(x, n), w)) * x.get_double(n * 3 + i), rounding_tolerance);
}

TEST(Vmap, KeepsCompositesWholeWhereItCan) {
  Graph graph;
  Value x = graph.input("x", {2, 3, 4}, f32);
  std::set<std::string_view> ops;
  vmap([](const Values& e) { return Values{softmax(gelu(e[0]), 0)}; }, {x}, {0});
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) ops.insert(graph.node(id).op->name);
  EXPECT_TRUE(ops.contains("softmax"));
  EXPECT_TRUE(ops.contains("gelu"));
}

TEST(Vmap, KeepsADerivativeThatTheBodyAloneWouldLose) {
  // atan2's body is not smooth on the diagonal; its rule is.
  const Array x = numbers({2, 1}, {1, 0.5});
  const auto g = run({x, x}, [](const Values& v) {
    return grad(sum_all(vmap([](const Values& e) { return Values{atan2(e[0], e[1])}; }, v, {0, 0})[0]), v);
  });
  EXPECT_NEAR(g[0].get_double(0), 0.5, rounding_tolerance);
  EXPECT_NEAR(g[0].get_double(1), 1, rounding_tolerance);
}

TEST(Vmap, SaysWhatDoesNotFit) {
  Graph graph;
  Value x = graph.input("x", {2, 3}, f32), y = graph.input("y", {4}, f32);
  auto identity = [](const Values& v) { return v; };
  EXPECT_EQ(error_of([&] { vmap(identity, {x, y}, {0, 0}); }), "rlx.vmap: axis 0 of operand 1, f32[4], is 4, other batches are 2");
  EXPECT_EQ(error_of([&] { vmap(identity, {x}, {2}); }), "rlx.vmap: axis 2 is out of range for f32[2,3] (allowed: -2..1)");
  EXPECT_EQ(error_of([&] { vmap(identity, {x}, {std::nullopt}); }), "rlx.vmap: no operand has a batch axis");
  EXPECT_EQ(error_of([&] { vmap(identity, {x}, {0}, {0, 0}); }), "rlx.vmap: 2 out_axes for 1 results");
}

TEST(VmapGraph, BatchesNamedInputs) {
  Graph graph("affine");
  Value x = graph.input("x", {3}, f64), w = graph.param("w", {3}, f64);
  graph.output("y", x * w);
  const Graph batched = vmap_graph(graph, {{"x", 1}}, 0, 2);
  const auto y = evaluate(batched, {{"x", numbers({3, 2}, {1, 2, 3, 4, 5, 6})}, {"w", numbers({3}, {1, 10, 100})}})[0];
  EXPECT_EQ(y, numbers({2, 3}, {1, 30, 500, 2, 40, 600}));
  EXPECT_EQ(error_of([&] { vmap_graph(graph, {{"z", 0}}, 0, 2); }), "rlx.vmap: graph 'affine' has no input 'z'");
}

// `checkpoint`

Values block(const Values& v) { return {tanh(matmul(sin(matmul(v[0], v[1])), v[1]))}; }

std::vector<Array> block_gradients(Save save) {
  return run({random_f64({2, 3}, 1), random_f64({3, 3}, 2)}, [&](const Values& v) {
    Value hidden = checkpoint(block, save)(v)[0];
    return grad(sum_all(checkpoint(block, save)({hidden, v[1]})[0]), v);
  });
}

std::map<std::string_view, int> counts(const Graph& graph) {
  std::map<std::string_view, int> result;
  for (std::int32_t id : needed_nodes(graph.data(), output_ids(graph))) ++result[graph.node(id).op->name];
  return result;
}

std::map<std::string_view, int> block_ops(Save save) {
  Graph graph;
  Value x = graph.input("x", {2, 3}, f64), w = graph.input("w", {3, 3}, f64);
  graph.output("loss", sum_all(checkpoint(block, save)({x, w})[0]));
  return counts(expand(grad_graph(graph, {"x", "w"}, true), [](const Graph&, const Node&) { return false; }));
}

TEST(Checkpoint, ChangesNoGradient) {
  const auto wanted = block_gradients(Save::everything);
  for (Save save : {Save::dots, Save::nothing})
    for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_LE(difference(block_gradients(save)[i], wanted[i]), rounding_tolerance);
}

TEST(Checkpoint, ComputesAgainWhatItDoesNotSave) {
  auto everything = block_ops(Save::everything), dots = block_ops(Save::dots), nothing = block_ops(Save::nothing);
  EXPECT_EQ(everything["sin"], 1);
  EXPECT_EQ(everything["dot"], 6);  // two forward, and two gradients of each
  EXPECT_EQ(dots["sin"], 2);
  EXPECT_EQ(dots["dot"], 6);
  EXPECT_EQ(nothing["sin"], 2);
  EXPECT_EQ(nothing["dot"], 8);
}

TEST(Checkpoint, KeepsRulesInside) {
  for (Save save : {Save::everything, Save::dots, Save::nothing}) {
    const auto g = run({numbers({}, {3})}, [&](const Values& v) {
      return grad(checkpoint([](const Values& x) { return Values{stop_gradient(x[0]) * x[0]}; }, save)(v)[0], v);
    });
    EXPECT_EQ(g[0].get_double(0), 3);
  }
}

TEST(Checkpoint, ComposesWithTheOtherTransforms) {
  const Array x = random_f64({2, 3, 3}, 1);
  auto per_example = [](Save save) { return [=](const Values& e) { return Values{sum_all(checkpoint(block, save)({e[0], e[0]})[0])}; }; };
  auto results = [&](Save save) {
    return run({x}, [&](const Values& v) {
      Value total = sum_all(vmap(per_example(save), v, {0})[0]);
      Values g = grad(total, v), per = vmap([&](const Values& e) { return grad(per_example(save)(e)[0], e); }, v, {0});
      return Values{g[0], per[0], jvp(g, v, {v[0] * 0.5})[0], grad(sum_all(g[0] * v[0]), v)[0]};
    });
  };
  const auto wanted = results(Save::everything), seen = results(Save::nothing);
  for (std::size_t i = 0; i < wanted.size(); ++i)
    EXPECT_LE(difference(seen[i], wanted[i]), rounding_tolerance * (1 + magnitude(wanted))) << i;
}

// Custom rules.

/// exp with a derivative that is ten times too large, so that one sees who was asked.
Function loud_exp_jvp() {
  return custom_jvp([](const Values& x) { return Values{exp(x[0])}; },
                    [](const Values& x, const Values& dx) { return Values{exp(x[0]) * dx[0] * 10}; });
}

Function loud_exp_vjp() {
  return custom_vjp([](const Values& x) { return Values{exp(x[0])}; },
                    [](const Values& x) {
                      Value y = exp(x[0]);
                      return std::pair{Values{y}, Values{y}};
                    },
                    [](const Values& kept, const Values& dy) { return Values{kept[0] * dy[0] * 10}; });
}

TEST(CustomJvp, IsUsedInBothModesAndUnderVmap) {
  const Array x = random_f64({3}, 1);
  const auto y = run({x}, [](const Values& v) {
    const Function f = loud_exp_jvp();
    Value ones = v[0] * 0 + 1;
    return Values{f(v)[0],
                  jvp(f(v), v, {ones})[0],
                  grad(sum_all(f(v)[0]), v)[0],
                  grad(sum_all(vmap(f, v, {0})[0]), v)[0],
                  vmap([&](const Values& e) { return grad(f(e)[0], e); }, v, {0})[0],
                  jvp(vmap(f, v, {0}), v, {ones})[0]};
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(y[0].get_double(i), std::exp(x.get_double(i)), rounding_tolerance);
    for (std::size_t k = 1; k < y.size(); ++k) EXPECT_NEAR(y[k].get_double(i), 10 * std::exp(x.get_double(i)), rounding_tolerance) << k;
  }
}

TEST(CustomJvp, IsDifferentiatedItselfForSecondOrder) {
  const auto y = run({numbers({}, {0.5})}, [](const Values& v) { return grad(grad(loud_exp_jvp()(v)[0], v)[0], v); });
  EXPECT_NEAR(y[0].get_double(0), 10 * std::exp(0.5), rounding_tolerance);  // of the rule exp(x) * 10, whose exp is the plain one
}

TEST(CustomVjp, IsUsedInReverseModeAndUnderVmap) {
  const Array x = random_f64({3}, 1);
  const auto y = run({x}, [](const Values& v) {
    const Function f = loud_exp_vjp();
    return Values{f(v)[0], grad(sum_all(f(v)[0]), v)[0], grad(sum_all(vmap(f, v, {0})[0]), v)[0],
                  vmap([&](const Values& e) { return grad(f(e)[0], e); }, v, {0})[0]};
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(y[0].get_double(i), std::exp(x.get_double(i)), rounding_tolerance);
    for (std::size_t k = 1; k < y.size(); ++k) EXPECT_NEAR(y[k].get_double(i), 10 * std::exp(x.get_double(i)), rounding_tolerance) << k;
  }
}

TEST(CustomVjp, WorksInsideScanAndCond) {
  const auto y = run({numbers({}, {0.1})}, [](const Values& v) {
    Value looped = fori_loop(2, [](Value, const Values& c) { return loud_exp_vjp()(c); }, v)[0];
    Value chosen = cond(gt(v[0], scalar(v[0], 0, f64)), v, loud_exp_vjp(), [](const Values& x) { return x; })[0];
    return Values{grad(looped, v)[0], grad(chosen, v)[0]};
  });
  EXPECT_NEAR(y[0].get_double(0), 100 * std::exp(0.1) * std::exp(std::exp(0.1)), 1e-10);
  EXPECT_NEAR(y[1].get_double(0), 10 * std::exp(0.1), rounding_tolerance);
}

TEST(CustomVjp, SumsOverTheBatchForASharedOperand) {
  auto product =
      custom_vjp([](const Values& x) { return Values{x[0] * x[1]}; }, [](const Values& x) { return std::pair{Values{x[0] * x[1]}, x}; },
                 [](const Values& kept, const Values& dy) { return Values{dy[0] * kept[1] * 10, dy[0] * kept[0] * 10}; });
  const auto g = run({numbers({3}, {1, 2, 3}), numbers({}, {5})},
                     [&](const Values& v) { return grad(sum_all(vmap(product, v, {0, std::nullopt})[0]), v); });
  EXPECT_EQ(g[0], numbers({3}, {50, 50, 50}));
  EXPECT_EQ(g[1], numbers({}, {60}));
}

TEST(CustomRules, HandleIntegerOperands) {
  auto scaled = custom_vjp([](const Values& x) { return Values{x[0] * cast(x[1], f64)}; },
                           [](const Values& x) { return std::pair{Values{x[0] * cast(x[1], f64)}, Values{x[1]}}; },
                           [](const Values& kept, const Values& dy) { return Values{dy[0] * cast(kept[0], f64) * 10, Value()}; });
  const auto g = run({numbers({}, {2}), Array::of<std::int32_t>({}, std::vector<std::int32_t>{3})},
                     [&](const Values& v) { return grad(scaled(v)[0], {v[0]}); });
  EXPECT_EQ(g[0].get_double(0), 30);
}

TEST(CustomRules, RefuseDerivativesByCapturedValues) {
  Graph graph;
  Value x = graph.input("x", {}, f64), w = graph.input("w", {}, f64);
  const Function f =
      custom_jvp([=](const Values& v) { return Values{v[0] * w}; }, [=](const Values&, const Values& dx) { return Values{dx[0] * w}; });
  grad(f({x})[0], {x});
  EXPECT_EQ(error_of([&] { grad(f({x})[0], {w}); }),
            "rlx.call: not differentiable: 'custom_jvp' has a jvp of its own and captures f64[], by which it is differentiated: pass that "
            "as an operand");
}

TEST(CustomRules, CheckWhatTheRuleGives) {
  Graph graph;
  Value x = graph.input("x", {3}, f64);
  auto identity = [](const Values& v) { return v; };
  EXPECT_EQ(error_of([&] { custom_jvp(identity, [](const Values&, const Values&) { return Values{}; })({x}); }),
            "rlx.custom_jvp: the rule gives 0 values for 1");
  EXPECT_EQ(error_of([&] { custom_jvp(identity, [](const Values&, const Values& dx) { return Values{sum_all(dx[0])}; })({x}); }),
            "rlx.custom_jvp: the rule gives f64[] for a value of f64[3]");
  EXPECT_EQ(error_of([&] { custom_vmap(identity, [](const Values& v) { return Values{sum(v[0], {0})}; })({x}); }),
            "rlx.custom_vmap: the rule must give the results of the function with the batch as axis 0");
}

TEST(CustomVmap, IsUsedForFixedAndSymbolicBatches) {
  const Function f =
      custom_vmap([](const Values& x) { return Values{x[0] + x[1]}; }, [](const Values& x) { return Values{x[0] + x[1] + 100}; });
  const auto y = run({numbers({2}, {1, 2}), numbers({}, {10})},
                     [&](const Values& v) { return Values{f({v[0], v[0]})[0], vmap(f, v, {0, std::nullopt})[0]}; });
  EXPECT_EQ(y[0], numbers({2}, {2, 4}));
  EXPECT_EQ(y[1], numbers({2}, {111, 112}));
  Graph graph;
  Value x = graph.input("x", {Dim::symbol("B", 8)}, f64);
  graph.output("y", vmap(f, {x, x}, {0, 0})[0] + f({x, x})[0]);
  EXPECT_EQ(evaluate(graph, {{"x", numbers({3}, {1, 2, 3})}})[0], numbers({3}, {104, 108, 112}));
}

}  // namespace
}  // namespace rlx::test
