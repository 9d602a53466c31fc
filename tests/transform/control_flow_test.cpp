// cond, while, scan and their relatives: values, derivatives of both modes and orders, batches, errors.
#include <gtest/gtest.h>

#include "ir/op.h"
#include "ir/rebuild.h"
#include "ir/sources.h"
#include "message.h"
#include "transform/numeric.h"

namespace rlx::test {
namespace {

using Program = std::function<Value(const Values&)>;

double value_at(const Program& program, const std::vector<Array>& x) {
  return run(x, [&](const Values& v) { return Values{program(v)}; })[0].get_double(0);
}

std::vector<Array> along(const std::vector<Array>& x, const std::vector<Array>& d, double factor) {
  std::vector<Array> result;
  for (std::size_t i = 0; i < x.size(); ++i) result.push_back(moved(x[i], d[i], factor));
  return result;
}

std::vector<Array> directions(const std::vector<Array>& x, unsigned seed) {
  std::vector<Array> result;
  for (const Array& each : x) result.push_back(random_f64(each.shape(), seed++));
  return result;
}

/// jvp against differences; with `reverse` also grad, and the two second derivatives against differences of the gradient.
void check(const Program& program, const std::vector<Array>& x, bool reverse = true) {
  const std::vector<Array> d = directions(x, 40);
  const double h = 1e-6, slope = (value_at(program, along(x, d, h)) - value_at(program, along(x, d, -h))) / (2 * h);
  std::vector<Array> all = x;
  all.insert(all.end(), d.begin(), d.end());
  const auto split = [&](const Values& v) {
    return std::pair{Values(v.begin(), v.begin() + std::ssize(x)), Values(v.begin() + std::ssize(x), v.end())};
  };
  const double forward = run(all,
                             [&](const Values& v) {
                               const auto [primal, tangents] = split(v);
                               return jvp({program(primal)}, primal, tangents);
                             })[0]
                             .get_double(0);
  EXPECT_NEAR(forward, slope, difference_tolerance * (1 + std::abs(slope)));
  if (!reverse) return;
  auto gradient = [&](const std::vector<Array>& at) { return run(at, [&](const Values& v) { return grad(program(v), v); }); };
  double backward = 0;
  const std::vector<Array> g = gradient(x), high = gradient(along(x, d, h)), low = gradient(along(x, d, -h));
  for (std::size_t i = 0; i < x.size(); ++i) backward += inner_product(g[i], d[i]);
  EXPECT_NEAR(backward, forward, rounding_tolerance * (1 + std::abs(forward)));
  const auto second = run(all, [&](const Values& v) {
    const auto [primal, tangents] = split(v);
    const Values slopes = grad(program(primal), primal);
    Values results = jvp(slopes, primal, tangents);
    for (Value each : vjp(slopes, primal, tangents)) results.push_back(each);
    return results;
  });
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(difference(second[i], second[i + x.size()]), rounding_tolerance * (1 + magnitude(second)));  // a Hessian is symmetric
    for (std::int64_t k = 0; k < x[i].size(); ++k)
      EXPECT_NEAR(second[i].get_double(k), (high[i].get_double(k) - low[i].get_double(k)) / (2 * h),
                  difference_tolerance * (1 + magnitude(second)));
  }
}

Array int_scalar(int value) { return Array::of<std::int32_t>({}, std::vector<std::int32_t>{value}); }

/// The vmap of `function` over axis 0 of all operands against a loop, and the gradients of the two.
void check_vmap(const Function& function, const std::vector<Array>& x) {
  const std::vector<std::optional<std::int64_t>> axes(x.size(), 0);
  const auto all = run(x, [&](const Values& v) { return vmap(function, v, axes); });
  for (std::int64_t n = 0; n < x[0].shape()[0]; ++n) {
    std::vector<Array> one;
    for (const Array& each : x) one.push_back(slice_of(each, n));
    const auto wanted = run(one, function);
    for (std::size_t k = 0; k < wanted.size(); ++k)
      EXPECT_LE(difference(slice_of(all[k], n), wanted[k]), rounding_tolerance) << "example " << n;
  }
}

// `cond`

Value branches(Value predicate, Value x, Value w) {
  return cond(
      predicate, {x}, [&](const Values& v) { return Values{sum_all(sin(v[0]) * w)}; },
      [](const Values& v) { return Values{sum_all(v[0] * v[0])}; })[0];
}

TEST(Cond, RunsTheBranchThatThePredicateChooses) {
  for (double at : {1.0, -1.0}) {
    const double y = value_at([](const Values& v) { return branches(gt(v[0], scalar(v[0], 0, f64)), v[0], v[0]); }, {numbers({}, {at})});
    EXPECT_DOUBLE_EQ(y, at > 0 ? std::sin(at) * at : at * at);
  }
}

TEST(Cond, IsDifferentiableInBothModesByOperandsAndCaptures) {
  for (double at : {0.5, -0.5})
    check([](const Values& v) { return branches(gt(v[2], scalar(v[2], 0, f64)), v[0], v[1]) * v[2]; },
          {random_f64({3}, 1), random_f64({3}, 2), numbers({}, {at})});
}

TEST(Cond, BatchesWithACommonAndWithABatchedPredicate) {
  check_vmap([](const Values& v) { return Values{branches(gt(v[0], scalar(v[0], 0, f64)), v[1], v[1])}; },
             {numbers({2}, {1, -1}), random_f64({2, 3}, 1)});
  const auto y = run({numbers({}, {-1}), random_f64({2, 3}, 1)}, [](const Values& v) {
    return vmap([&](const Values& x) { return Values{branches(gt(v[0], scalar(v[0], 0, f64)), x[0], x[0])}; }, {v[1]}, {0});
  })[0];
  const Array x = random_f64({2, 3}, 1);
  for (int n = 0; n < 2; ++n) EXPECT_NEAR(y.get_double(n), inner_product(slice_of(x, n), slice_of(x, n)), rounding_tolerance);
}

TEST(SwitchCase, TakesTheNearestBranchForAnIndexOutside) {
  const double wanted[] = {10, 10, 20, 30, 30};
  for (int i = -1; i <= 3; ++i) {
    const auto y = run({int_scalar(i), numbers({}, {1})}, [](const Values& v) {
      std::vector<std::function<Values(const Values&)>> list;
      for (double factor : {10., 20., 30.}) list.push_back([=](const Values& x) { return Values{x[0] * factor}; });
      return switch_case(v[0], {v[1]}, list);
    })[0];
    EXPECT_EQ(y.get_double(0), wanted[i + 1]) << i;
  }
}

TEST(SwitchCase, NamesTheBranchesThatDiffer) {
  const auto message = [](const std::function<Values(const Values&)>& last) {
    return error_of([&] {
      const std::function<Values(const Values&)> same = [](const Values& x) { return x; };
      run({int_scalar(0), numbers({3}, {1, 2, 3})}, [&](const Values& v) { return switch_case(v[0], {v[1]}, {same, same, last}); });
    });
  };
  EXPECT_NE(message([](const Values& x) {
              return Values{sum(x[0], {0})};
            }).find("rlx.switch_case: result 0 is f64[3] from branches[0] and f64[] from branches[2] (allowed: the same of all)"),
            std::string::npos);
  EXPECT_NE(message([](const Values& x) { return Values{x[0], x[0]}; }).find("branches[0] gives 1 results, branches[2] 2"),
            std::string::npos);
}

// `while`

/// Doubles the sine of x until the sum of the carry is above 4: how often depends on the value.
Value grow(Value x, Value factor) {
  return while_loop([](const Values& c) { return lt(c[0], scalar(c[0], 4, f64)); },
                    [&](const Values& c) { return Values{c[0] * factor + c[1] * c[1], c[1] * 1.5}; }, {x, x * x})[0];
}

TEST(While, RunsUntilTheConditionFails) {
  double carry = 0.3, other = 0.09;
  while (carry < 4) carry = carry * 1.5 + other * other, other *= 1.5;
  EXPECT_DOUBLE_EQ(value_at([](const Values& v) { return grow(v[0], scalar(v[0], 1.5, f64)); }, {numbers({}, {0.3})}), carry);
}

TEST(While, IsDifferentiableInForwardMode) {
  check([](const Values& v) { return grow(v[0], v[1]); }, {numbers({}, {0.3}), numbers({}, {1.5})}, false);
}

TEST(While, RefusesReverseModeByName) {
  Graph graph;
  Value x = graph.input("x", {}, f64);
  EXPECT_EQ(error_of([&] { grad(grow(x, x), {x}); }),
            "rlx.while: not differentiable in reverse mode: the number of iterations is unknown (use scan or fori_loop, or forward mode)");
}

TEST(While, AllowsReverseModeAroundIt) {
  const auto g = run({numbers({}, {0.3})}, [](const Values& v) { return grad(stop_gradient(grow(v[0], v[0] + 1)) * v[0], v); });
  EXPECT_DOUBLE_EQ(g[0].get_double(0), value_at([](const Values& v) { return grow(v[0], v[0] + 1); }, {numbers({}, {0.3})}));
}

TEST(While, BatchesExamplesThatEndAtDifferentTimes) {
  check_vmap([](const Values& v) { return Values{grow(v[0], v[1])}; }, {numbers({3}, {0.3, 5, 2}), numbers({3}, {1.5, 2, 1.1})});
}

TEST(While, BatchesWithACommonCounter) {
  auto function = [](const Values& v) {
    Value zero = scalar(v[0], 0, i32);
    return while_loop([](const Values& c) { return lt(c[0], scalar(c[0], 3, i32)); },
                      [](const Values& c) { return Values{c[0] + 1, sin(c[1])}; }, {zero, v[0]});
  };
  check_vmap(function, {random_f64({2, 3}, 1)});
  Graph graph;
  Value x = graph.input("x", {2, 3}, f64);
  const Values y = vmap(function, {x}, {0});
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id)
    if (graph.node(id).op->name == "while") {
      EXPECT_EQ(graph.node(id).results[0].rank(), 0);  // the counter stays one number
    }
}

TEST(While, NamesTheCarryThatChangesItsType) {
  Graph graph;
  Value x = graph.input("x", {3}, f32);
  EXPECT_EQ(error_of([&] {
              while_loop([](const Values& c) { return lt(c[0], scalar(c[0], 1, f32)); },
                         [](const Values& c) { return Values{c[0], sum_all(c[1])}; }, {sum_all(x), x});
            }),
            "rlx.while_loop: carry 1 is f32[3], the step gives f32[]");
  EXPECT_EQ(error_of([&] { while_loop([](const Values& c) { return c[0]; }, [](const Values& c) { return c; }, {x}); }),
            "rlx.while_loop: the predicate is f32[3] (allowed: a bool scalar)");
}

// `scan`

/// A small recurrent network: state (3), inputs (T, 3), weights (3, 3) captured. Gives the last state and all outputs.
Values recurrence(Value state, Value inputs, Value weights, bool reverse = false) {
  return scan(
      [&](const Values& carry, const Values& x) {
        Value next = tanh(matmul(weights, carry[0]) + x[0]);
        return std::pair{Values{next}, Values{next * x[0], sum_all(carry[0] * carry[0])}};
      },
      {state}, {inputs}, {}, reverse);
}

Value recurrence_loss(const Values& v, bool reverse = false) {
  const Values y = recurrence(v[0], v[1], v[2], reverse);
  return sum_all(y[0] * y[0]) + sum_all(y[1] * 0.5) + sum_all(sin(y[2]));
}

std::vector<Array> recurrence_operands() { return {random_f64({3}, 1), random_f64({4, 3}, 2), random_f64({3, 3}, 3)}; }

TEST(Scan, CarriesAndStacksInTheOrderOfTheSlices) {
  for (bool reverse : {false, true}) {
    const auto y = run({numbers({}, {1}), numbers({3}, {1, 2, 3})}, [&](const Values& v) {
      return scan([](const Values& c, const Values& x) { return std::pair{Values{c[0] * 2 + x[0]}, Values{c[0]}}; }, {v[0]}, {v[1]}, {},
                  reverse);
    });
    EXPECT_EQ(y[0].get_double(0), reverse ? 25 : 19);
    EXPECT_EQ(y[1], reverse ? numbers({3}, {12, 5, 1}) : numbers({3}, {1, 3, 8}));
  }
}

TEST(Scan, OfLengthZeroGivesTheCarry) {
  const auto y = run({numbers({}, {7}), random_f64({0, 3}, 1)}, [](const Values& v) {
    return scan([](const Values& c, const Values& x) { return std::pair{Values{c[0] + sum_all(x[0])}, Values{x[0]}}; }, {v[0]}, {v[1]});
  });
  EXPECT_EQ(y[0].get_double(0), 7);
  EXPECT_EQ(y[1].size(), 0);
}

TEST(Scan, IsDifferentiableInBothModes) {
  for (bool reverse : {false, true}) check([=](const Values& v) { return recurrence_loss(v, reverse); }, recurrence_operands());
}

TEST(Scan, IsDifferentiableByOneOperandAlone) {
  const auto x = recurrence_operands();
  check([&](const Values& v) { return recurrence_loss({v[0], make_constant(v[0].graph(), x[1]), make_constant(v[0].graph(), x[2])}); },
        {x[0]});
  check([&](const Values& v) { return recurrence_loss({make_constant(v[0].graph(), x[0]), v[0], make_constant(v[0].graph(), x[2])}); },
        {x[1]});
  check([&](const Values& v) { return recurrence_loss({make_constant(v[0].graph(), x[0]), make_constant(v[0].graph(), x[1]), v[0]}); },
        {x[2]});
}

TEST(Scan, ActivatesCarriesThatBecomeActiveLater) {
  // x reaches the third carry after three steps only.
  check(
      [](const Values& v) {
        Value zero = v[0] * 0 + 1;
        const Values y =
            scan([&](const Values& c, const Values&) { return std::pair{Values{c[0] * v[0], c[0] * c[1], sin(c[1]) + c[2]}, Values{}}; },
                 {stop_gradient(zero), stop_gradient(zero), stop_gradient(zero)}, {}, 4);
        return y[2] * v[0];
      },
      {numbers({}, {0.8})});
}

TEST(Scan, NestsWithDerivatives) {
  check(
      [](const Values& v) {
        return scan(
            [&](const Values& carry, const Values& row) {
              Value inner = scan([&](const Values& c, const Values& x) { return std::pair{Values{sin(c[0] * v[2] + x[0])}, Values{}}; },
                                 {carry[0]}, {row[0]})[0];
              return std::pair{Values{inner * carry[0] + 0.1}, Values{}};
            },
            {v[0]}, {v[1]})[0];
      },
      {numbers({}, {0.7}), random_f64({3, 2}, 5), numbers({}, {0.9})});
}

TEST(Scan, HoldsACondWithDerivatives) {
  check(
      [](const Values& v) {
        return scan(
            [&](const Values& carry, const Values& x) {
              return std::pair{
                  cond(
                      gt(x[0], scalar(x[0], 0, f64)), {carry[0]}, [&](const Values& c) { return Values{sin(c[0]) * x[0] + v[2]}; },
                      [&](const Values& c) { return Values{c[0] * c[0] * v[2]}; }),
                  Values{}};
            },
            {v[0]}, {v[1]})[0];
      },
      {numbers({}, {0.7}), numbers({4}, {0.5, -0.3, 0.9, -1}), numbers({}, {0.9})});
}

TEST(Scan, KeepsLoopInvariantsOutOfTheResiduals) {
  Graph graph;
  Value state = graph.input("s", {3}, f64), inputs = graph.input("x", {4, 3}, f64), weights = graph.input("w", {3, 3}, f64);
  grad(sum_all(recurrence(state, inputs, weights)[0]), {state});
  std::size_t scans = 0;
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
    if (graph.node(id).op->name != "scan") continue;
    ++scans;
    for (const Type& type : graph.node(id).results) EXPECT_NE(type.shape, (Dims{4, 3, 3})) << "the weights are stacked";
  }
  EXPECT_EQ(scans, 3u);  // the program's own, the one that saves residuals, the backward one
}

TEST(Scan, SumsProductsForWeightsBehindTheBackwardLoop) {
  Graph graph;
  Value state = graph.input("s", {2, 5}, f64), inputs = graph.input("x", {4, 2, 5}, f64), weights = graph.input("w", {5, 5}, f64);
  Value bias = graph.input("b", {5}, f64);
  const auto step = [&](const Values& carry, const Values& x) {
    Value next = tanh(matmul(carry[0], weights) + bias + x[0]);
    return std::pair{Values{next}, Values{next}};
  };
  graph.output("dw", grad(sum_all(sin(scan(step, {state}, {inputs})[1])), {weights, bias})[0]);
  bool over_steps = false;
  for (std::int32_t id : needed_nodes(graph.data(), output_ids(graph))) {
    const Node& node = graph.node(id);
    EXPECT_FALSE(node.op->name == "scan" && node.results[0].shape == Dims({5, 5})) << "the loop carries a sum of products";
    over_steps = over_steps || (node.op->name == "dot" && graph.type(node.operands[0]).shape[0] == Dim(4));
  }
  EXPECT_TRUE(over_steps);
}

TEST(Scan, KeepsASumInTheLoopThatSomethingElseReads) {
  // The carry grows by products, but every step reads it.
  check(
      [](const Values& v) {
        const Values y =
            scan([&](const Values& c, const Values& x) { return std::pair{Values{c[0] + matmul(v[2], x[0] * c[0])}, Values{c[0]}}; },
                 {v[0]}, {v[1]});
        return sum_all(y[0] * y[0]) + sum_all(sin(y[1]));
      },
      recurrence_operands());
}

TEST(Scan, KeepsASumInTheLoopThatTheStepReads) {
  // Attention without a softmax: the backward step adds to the derivative of the state, and multiplies with the sum.
  check(
      [](const Values& v) {
        const auto step = [](const Values& state, const Values& at) {
          const Value next = state[0] + matmul(transpose(at[1], {1, 0}), at[2]);
          return std::pair{Values{next}, Values{matmul(at[0], next)}};
        };
        return sum_all(sin(scan(step, {v[0]}, {v[1], v[2], v[3]})[1]));
      },
      {random_f64({3, 2}, 1), random_f64({4, 2, 3}, 2), random_f64({4, 2, 3}, 3), random_f64({4, 2, 2}, 4)});
  // The sum itself is the derivative of what is added in each step.
  check(
      [](const Values& v) {
        const auto step = [](const Values& state, const Values& at) {
          const Value next = state[0] + at[0];
          return std::pair{Values{next}, Values{broadcast_to(next, {3, 2}) * at[1]}};
        };
        return sum_all(sin(scan(step, {v[0]}, {v[1], v[2]})[1]));
      },
      {random_f64({2}, 1), random_f64({4, 2}, 2), random_f64({4, 3, 2}, 3)});
}

TEST(Scan, BatchesItsOperandsAndCaptures) {
  const std::vector<Array> x{random_f64({2, 3}, 1), random_f64({2, 4, 3}, 2), random_f64({2, 3, 3}, 3)};
  check_vmap([](const Values& v) { return recurrence(v[0], v[1], v[2]); }, x);
  check_vmap([](const Values& v) { return grad(recurrence_loss(v), v); }, x);
  check([](const Values& v) { return sum_all(vmap([](const Values& e) { return Values{recurrence_loss(e)}; }, v, {0, 0, 0})[0]); }, x);
}

TEST(Scan, BatchesWhatOneOperandMakesBatched) {
  const auto x = recurrence_operands();
  const Array states = random_f64({2, 3}, 8);
  const auto y = run({states, x[1], x[2]}, [](const Values& v) {
    return vmap([&](const Values& s) { return recurrence(s[0], v[1], v[2]); }, {v[0]}, {0}, {0, 1, 0});
  });
  for (int n = 0; n < 2; ++n)
    EXPECT_LE(difference(slice_of(y[0], n),
                         run({slice_of(states, n), x[1], x[2]}, [](const Values& v) { return recurrence(v[0], v[1], v[2]); })[0]),
              rounding_tolerance);
  EXPECT_EQ(y[1].shape(), (std::vector<std::int64_t>{4, 2, 3}));
}

TEST(Scan, SaysWhichPartDoesNotFit) {
  Graph graph;
  Value x = graph.input("x", {4, 3}, f32), n = graph.input("n", {5}, f32);
  auto step = [](const Values& c, const Values&) { return std::pair{Values{c[0] * 2}, Values{}}; };
  EXPECT_EQ(error_of([&] { scan(step, {n}, {x, n}); }), "rlx.scan: operand 1 is f32[5]: its axis 0 must have the length 4");
  EXPECT_EQ(error_of([&] { scan(step, {n}, {}); }), "rlx.scan: without operands to scan it needs a length");
  EXPECT_EQ(error_of([&] {
              scan([](const Values& c, const Values& v) { return std::pair{Values{c[0] + sum_all(v[0]), c[0]}, Values{}}; }, {n}, {x});
            }),
            "rlx.scan: the carry has 1 values, the step gives 2");
  EXPECT_EQ(error_of([&] { scan([](const Values& c, const Values&) { return std::pair{Values{cast(c[0], f64)}, Values{}}; }, {n}, {x}); }),
            "rlx.scan: carry 0 is f32[5], the step gives f64[5]");
}

TEST(Scan, WorksForASymbolicLength) {
  Graph graph;
  Value state = graph.input("s", {3}, f64), inputs = graph.input("x", {Dim::symbol("T", 8), 3}, f64),
        weights = graph.input("w", {3, 3}, f64);
  graph.output("y", recurrence_loss({state, inputs, weights}));
  const auto x = recurrence_operands();
  const auto symbolic = evaluate(grad_graph(graph, {"s", "x", "w"}), {{"s", x[0]}, {"x", x[1]}, {"w", x[2]}});
  const auto fixed = run(x, [](const Values& v) { return grad(recurrence_loss(v), v); });
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(difference(symbolic[i], fixed[i]), 0);
}

TEST(ForiLoop, CountsAndIsDifferentiable) {
  EXPECT_EQ(
      value_at(
          [](const Values& v) { return fori_loop(4, [](Value i, const Values& c) { return Values{c[0] + cast(i, f64)}; }, {v[0]})[0]; },
          {numbers({}, {1})}),
      7);
  check(
      [](const Values& v) {
        return fori_loop(4, [&](Value i, const Values& c) { return Values{sin(c[0] * v[1]) + cast(i, f64)}; }, {v[0]})[0];
      },
      {numbers({}, {0.3}), numbers({}, {0.7})});
}

TEST(Grad, InsideAScanStepIsGradientDescent) {
  const auto y = run({numbers({2}, {1, -3})}, [](const Values& v) {
    return fori_loop(50, [](Value, const Values& c) { return Values{c[0] - grad(sum_all((c[0] - 2) * (c[0] - 2)), c)[0] * 0.25}; }, v);
  });
  EXPECT_NEAR(y[0].get_double(0), 2, 1e-12);  // the distance halves fifty times
  EXPECT_NEAR(y[0].get_double(1), 2, 1e-12);
}

}  // namespace
}  // namespace rlx::test
