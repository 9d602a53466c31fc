// Every registered op on every one of its samples: types, the rule of kernels against the host's, derivatives and batching.
#include <gtest/gtest.h>

#include "ops/registry_cases.h"
#include "ops/sample_operands.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

TEST(EveryOp, ResultsHaveTheInferredTypes) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.name());
    const Attrs attrs = attributes(*c.op, c.sample);
    const auto operands = random_operands(c.sample, 1);
    try {
      Graph graph;
      std::vector<Type> types;
      for (const auto& operand : c.sample.operands) types.push_back(operand.type);
      const Values wanted = apply_op(graph, *c.op, attrs, inputs_for(graph, types));
      const auto results = run_op(*c.op, attrs, operands);
      ASSERT_EQ(results.size(), wanted.size());
      for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(type_of(results[i]).to_string(), wanted[i].type().to_string());
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(EveryOp, HasASampleUnlessItIsASource) {
  for (const auto& [name, op] : op_registry()) EXPECT_TRUE(op->kind == OpKind::source || !op->samples().empty()) << name;
}

/// Sums of n products differ by at most n roundings of the largest partial sum; the samples' reductions have at most 120 terms and the
/// accumulation type's error is far below one rounding of a narrow result.
TEST(EveryOp, IndexMapAgreesWithTheHost) {
  std::size_t compared = 0;
  for (const Case& c : all_cases()) {
    if (!c.op->evaluate || !(c.op->sources || c.op->address || c.op->loop)) continue;
    SCOPED_TRACE(c.name());
    const Attrs attrs = attributes(*c.op, c.sample);
    const auto operands = random_operands(c.sample, 2);
    try {
      const Array wanted = evaluate_node(*c.op, attrs, operands)[0], seen = evaluate_index_map(*c.op, attrs, operands);
      const double allowed = c.op->loop ? 2 * epsilon(wanted.dtype()) * (1 + largest_magnitude(wanted)) : 0;
      // A loop over integers is exact here only while the sum fits: compare modulo the width through the array's own store.
      EXPECT_LE(difference(wanted, seen), allowed);
      ++compared;
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GT(compared, 50u);
}

bool has_tangent(const Type& type) { return is_float(type.dtype); }

/// The sample with f64 in place of every float, so that finite differences are exact to 1e-9; nothing when the op refuses the type.
std::optional<Case> in_f64(Case c) {
  bool any = false;
  std::vector<Type> types;
  for (auto& operand : c.sample.operands) {
    if (is_complex(operand.type.dtype)) return std::nullopt;
    if (has_tangent(operand.type)) operand.type.dtype = f64, any = true;
    types.push_back(operand.type);
  }
  if (!any || !c.sample.differentiable) return std::nullopt;
  try {
    Graph graph;
    for (const Value& y : apply_op(graph, *c.op, attributes(*c.op, c.sample), inputs_for(graph, types)))
      if (y.dtype() != f64 && has_tangent(y.type())) return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
  return c;
}

Array moved(const Array& x, const Array& direction, double step) {
  Array result(x.dtype(), x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) result.set_double(i, x.get_double(i) + step * direction.get_double(i));
  return result;
}

/// Values of the jvp rule in the given directions (an empty array means no tangent). Ops with a transpose only are applied to the tangent.
std::vector<Array> run_jvp(const Case& c, std::span<const Array> x, const std::vector<Array>& direction) {
  const Attrs attrs = attributes(*c.op, c.sample);
  Graph graph;
  std::vector<Type> types;
  for (const Array& array : x) types.push_back(type_of(array));
  Values inputs = inputs_for(graph, types), tangents(x.size());
  std::map<std::string, Array> bound = named(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (direction[i].rank() == 0 && x[i].rank() != 0) continue;
    if (!has_tangent(types[i])) continue;
    tangents[i] = graph.input("d" + std::to_string(i), types[i].shape, types[i].dtype);
    bound["d" + std::to_string(i)] = direction[i];
  }
  Values results;
  if (c.op->jvp) {
    results = c.op->jvp(attrs, inputs, apply_op(graph, *c.op, attrs, inputs), tangents);
  } else {
    for (std::size_t i = 0; i < x.size(); ++i)
      if (tangents[i]) inputs[i] = tangents[i];
    results = apply_op(graph, *c.op, attrs, inputs);
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    graph.output("y" + std::to_string(i), results[i] ? results[i] : scalar(inputs[0], 0, f64));
  return evaluate(graph, bound);
}

std::vector<Array> random_directions(const Case& c, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Array> directions;
  for (const auto& operand : c.sample.operands)
    directions.push_back(has_tangent(operand.type) ? random_array(operand.type, -1, 1, random) : Array());
  return directions;
}

/// Central differences of smooth f64 functions with step 1e-5 are off by about 1e-10 times the third derivative, and 1e-11 by rounding.
TEST(EveryOp, JvpAgreesWithDifferences) {
  std::size_t compared = 0;
  for (const Case& given : all_cases()) {
    const auto c = in_f64(given);
    if (!c || !c->op->jvp) continue;
    SCOPED_TRACE(c->name());
    const Attrs attrs = attributes(*c->op, c->sample);
    const auto x = random_operands(c->sample, 3);
    const auto direction = random_directions(*c, 4);
    auto at = [&](double step) {
      std::vector<Array> operands = x;
      for (std::size_t i = 0; i < x.size(); ++i)
        if (x[i].dtype() == f64) operands[i] = moved(x[i], direction[i], step);
      return run_op(*c->op, attrs, operands);
    };
    try {
      const auto ahead = at(1e-5), behind = at(-1e-5), seen = run_jvp(*c, x, direction);
      for (std::size_t r = 0; r < seen.size(); ++r) {
        if (!has_tangent(type_of(ahead[r])) || seen[r].shape() != ahead[r].shape()) continue;
        Array slope(f64, ahead[r].shape());
        for (std::int64_t i = 0; i < slope.size(); ++i) slope.set_double(i, (ahead[r].get_double(i) - behind[r].get_double(i)) / 2e-5);
        EXPECT_LE(difference(slope, seen[r]), 1e-6 * (1 + largest_magnitude(slope)));
        ++compared;
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GT(compared, 50u);
}

/// Ops with a transpose that are linear only in some kinds or some operands.
bool is_linear(const Case& c, std::size_t operand) {
  if (c.op->name == "triangular_solve" || c.op->name == "linear_recurrence" || c.op->name == "running_extremum_tangent")
    return operand == 1;
  if (c.op->name == "after") return operand == 0;  // the others only give the order
  const Attrs attrs = attributes(*c.op, c.sample);
  if (c.op->name == "reduce" || c.op->name == "cumulative") return std::get<std::string>(attrs[0]) == "sum";
  if (c.op->name == "scatter") return std::get<std::string>(attrs[0]) == "set" || std::get<std::string>(attrs[0]) == "add";
  return true;
}

double dot(const Array& a, const Array& b) {
  double total = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) total += a.get_double(i) * b.get_double(i);
  return total;
}

/// The defining property of a transpose: <dy, A dx> = <A' dy, dx>. Both sides are sums of a few hundred f64 products.
TEST(EveryOp, TransposeIsTheAdjoint) {
  std::size_t compared = 0;
  for (const Case& given : all_cases()) {
    const auto c = in_f64(given);
    if (!c || !c->op->transpose) continue;
    SCOPED_TRACE(c->name());
    const Attrs attrs = attributes(*c->op, c->sample);
    const auto x = random_operands(c->sample, 5);
    const auto direction = random_directions(*c, 6);
    try {
      const Array plain = run_op(*c->op, attrs, x)[0];
      if (!has_tangent(type_of(plain))) continue;
      std::mt19937 random(7);
      const Array dy = random_array(type_of(plain), -1, 1, random);
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i].dtype() != f64 || !is_linear(*c, i)) continue;
        std::vector<Array> only(x.size(), Array());
        only[i] = direction[i];
        std::vector<bool> linear(x.size(), false);
        linear[i] = true;
        Graph graph;
        std::vector<Type> types;
        for (const Array& array : x) types.push_back(type_of(array));
        const Values inputs = inputs_for(graph, types);
        const Values cotangents[] = {{graph.input("dy", Dims(dy.shape().begin(), dy.shape().end()), f64)}};
        const Value back = c->op->transpose(attrs, inputs, linear, cotangents[0]).at(i);
        ASSERT_TRUE(back) << "operand " << i;
        graph.output("dx", back);
        auto bound = named(x);
        bound["dy"] = dy;
        const Array dx = evaluate(graph, bound)[0];
        ASSERT_EQ(dx.shape(), x[i].shape());
        const double forward = dot(run_jvp(*c, x, only)[0], dy), backward = dot(dx, direction[i]);
        EXPECT_NEAR(forward, backward, 1e-11 * (1 + largest_magnitude(plain)) * static_cast<double>(plain.size() + 1)) << "operand " << i;
        ++compared;
      }
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  EXPECT_GT(compared, 50u);
}

/// Entry `k` of the batch on axis 0.
Array entry(const Array& batched, std::int64_t k) {
  Array result(batched.dtype(), {batched.shape().begin() + 1, batched.shape().end()});
  for (std::int64_t i = 0; i < result.size(); ++i) {
    if (is_integer(result.dtype())) result.set_uint(i, batched.get_uint(k * result.size() + i));
    else result.set_complex(i, batched.get_complex(k * result.size() + i));
  }
  return result;
}

/// Checks one choice of batched operands against a loop over the batch.
void check_batch(const Case& c, unsigned choice) {
  const Attrs attrs = attributes(*c.op, c.sample);
  std::mt19937 random(8 + choice);
  std::vector<Array> operands;
  std::vector<bool> batched;
  std::vector<Type> types;
  for (std::size_t i = 0; i < c.sample.operands.size(); ++i) {
    Sample::Operand operand = c.sample.operands[i];
    batched.push_back((choice >> i & 1u) != 0);
    if (batched[i]) operand.type.shape.insert(operand.type.shape.begin(), 3);
    types.push_back(operand.type);
    operands.push_back(random_array(operand.type, operand.low, operand.high, random));
  }
  Graph graph;
  const Values results = c.op->batch(attrs, inputs_for(graph, types), batched, 3);
  for (std::size_t r = 0; r < results.size(); ++r) graph.output("y" + std::to_string(r), results[r]);
  const auto seen = evaluate(graph, named(operands));
  for (std::int64_t k = 0; k < 3; ++k) {
    std::vector<Array> own;
    for (std::size_t i = 0; i < operands.size(); ++i) own.push_back(batched[i] ? entry(operands[i], k) : operands[i]);
    const auto wanted = run_op(*c.op, attrs, own);
    for (std::size_t r = 0; r < wanted.size(); ++r) {
      ASSERT_EQ(seen[r].shape().at(0), 3);
      const double allowed = 2 * epsilon(wanted[r].dtype()) * (1 + largest_magnitude(wanted[r]));  // sums in another order
      EXPECT_LE(difference(entry(seen[r], k), wanted[r]), allowed) << "entry " << k << " choice " << choice;
    }
  }
}

TEST(EveryOp, BatchRuleAgreesWithALoop) {
  std::size_t compared = 0;
  for (const Case& c : all_cases()) {
    if (!c.op->batch || c.sample.operands.empty()) continue;
    SCOPED_TRACE(c.name());
    const unsigned choices = 1u << std::min<std::size_t>(c.sample.operands.size(), 4);
    for (unsigned choice = 1; choice < choices; ++choice, ++compared) {
      try {
        check_batch(c, choice);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "choice " << choice << ": " << error.what();
      }
    }
  }
  EXPECT_GT(compared, 50u);
}

}  // namespace
}  // namespace rlx::test
