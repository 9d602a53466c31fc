// Every registered op on every one of its samples: derivatives of both modes and both orders against differences and each other, and
// batches against a loop over examples.
#include <gtest/gtest.h>

#include <set>

#include <fmt/format.h>

#include "ir/op.h"
#include "ir/sources.h"
#include "message.h"
#include "transform/numeric.h"

namespace rlx::test {
namespace {

struct Case {
  const OpDef* op;
  Sample sample;
  Attrs attrs;
  std::vector<Array> x;
  bool differentiable;
  std::string name;
};

std::string describe(const OpDef& op, const std::vector<Array>& x, const Attrs& attrs, std::size_t number) {
  std::string text = std::string(op.name) + " sample " + std::to_string(number) + ":";
  for (const Array& array : x) text += " " + type_of(array).to_string();
  for (const Attr& attr : attrs) text += " " + to_string(attr);
  return text;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const auto& [name, op] : op_registry()) {
    std::size_t number = 0;
    for (const Sample& sample : op->samples()) {
      const std::vector<Array> x = random_operands(sample, 1);
      const Attrs attrs = attributes(*op, sample);
      cases.push_back({op, sample, attrs, x, sample.differentiable, describe(*op, x, attrs, number++)});
    }
  }
  return cases;
}

bool varies(const Type& type) { return is_float(type.dtype); }
bool varies(const OpDef& op, std::size_t i, const Array& x) {
  return is_float(x.dtype()) && !op.integer_operands.contains(static_cast<int>(i));
}

std::vector<Array> evaluated(const Case& c, const std::vector<Array>& x) { return run_op(*c.op, c.attrs, x); }

/// The sample drawn in f64 throughout, for differences; nothing for what has no real derivative: integer and complex samples, ops that
/// refuse f64 or give a narrower float, and samples that say they lie on a kink.
std::optional<Case> smooth(Case c) {
  bool any = false;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    if (is_complex(c.x[i].dtype())) return std::nullopt;
    any = any || varies(*c.op, i, c.x[i]);
    if (is_float(c.x[i].dtype())) c.sample.operands[i].type.dtype = f64;
  }
  c.x = random_operands(c.sample, 1);
  if (!any || !c.differentiable || !c.op->not_differentiable.empty()) return std::nullopt;
  for (Attr& attr : c.attrs)
    if (DType* dtype = std::get_if<DType>(&attr); dtype && is_float(*dtype)) *dtype = f64;
  try {
    bool continuous = false;
    for (const Array& y : evaluated(c, c.x)) {
      if ((is_float(y.dtype()) && y.dtype() != f64) || is_complex(y.dtype())) return std::nullopt;
      continuous = continuous || is_float(y.dtype());
    }
    return continuous ? std::optional(c) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Random directions for the operands that vary; empty arrays for the others.
std::vector<Array> directions(const Case& c, unsigned seed) {
  std::vector<Array> result;
  for (std::size_t i = 0; i < c.x.size(); ++i)
    result.push_back(varies(*c.op, i, c.x[i]) ? random_f64(c.x[i].shape(), seed + static_cast<unsigned>(i)) : Array());
  return result;
}

bool given(const Case& c, std::size_t i) { return varies(*c.op, i, c.x[i]); }

std::vector<Array> shifted(const Case& c, const std::vector<Array>& d, double factor) {
  std::vector<Array> result = c.x;
  for (std::size_t i = 0; i < result.size(); ++i)
    if (given(c, i)) result[i] = moved(result[i], d[i], factor);
  return result;
}

/// The op as a program of the operands that vary; the others are constants of the graph.
struct CaseProgram {
  const Case& c;
  Values operator()(const Values& varying) const {
    Values operands;
    for (std::size_t i = 0, next = 0; i < c.x.size(); ++i) operands.push_back(given(c, i) ? varying[next++] : constant(varying[0], c.x[i]));
    Values floats;
    for (Value y : apply(*c.op, c.attrs, operands))
      if (varies(y.type())) floats.push_back(y);
    return floats;
  }
  static Value constant(Value near, const Array& value) { return make_constant(near.graph(), value); }
};

std::vector<Array> varying(const Case& c, const std::vector<Array>& from) {
  std::vector<Array> result;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (given(c, i)) result.push_back(from[i]);
  return result;
}

std::vector<Array> joined(std::vector<Array> a, const std::vector<Array>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Values part(const Values& all, std::size_t first, std::size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

std::vector<Array> cotangents_for(const std::vector<Array>& y, unsigned seed) {
  std::vector<Array> result;
  for (const Array& each : y) result.push_back(random_f64(each.shape(), seed++));
  return result;
}

double dot_product(const std::vector<Array>& a, const std::vector<Array>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += inner_product(a[i], b[i]);
  return total;
}

/// A test body for each smooth case, once for samples that differ by the width of floats only; exceptions become failures that name
/// the case.
std::size_t for_each_smooth(const std::function<void(const Case&)>& body) {
  std::size_t cases = 0;
  std::set<std::string> seen;
  for (const Case& c : all_cases()) {
    const std::optional<Case> wide = smooth(c);
    if (!wide || !seen.insert(describe(*wide->op, wide->x, wide->attrs, 0)).second) continue;
    SCOPED_TRACE(c.name);
    ++cases;
    try {
      body(*wide);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  return cases;
}

std::vector<Array> run_jvp(const Case& c, const std::vector<Array>& d) {
  const std::vector<Array> x = varying(c, c.x);
  return run(joined(x, varying(c, d)), [&](const Values& v) {
    const Values primal = part(v, 0, x.size());
    return jvp(CaseProgram{c}(primal), primal, part(v, x.size(), x.size()));
  });
}

std::vector<Array> run_vjp(const Case& c, const std::vector<Array>& x, const std::vector<Array>& dy) {
  return run(joined(x, dy), [&](const Values& v) {
    const Values primal = part(v, 0, x.size());
    return vjp(CaseProgram{c}(primal), primal, part(v, x.size(), dy.size()));
  });
}

/// Central differences with h = 1e-5: rounding 1e-11, and h^2 / 6 = 2e-11 times the third derivative, which is up to 1e4 near the ends
/// of the sampled ranges (1/x^4 at 0.1).
TEST(EveryOp, JvpMatchesDifferences) {
  const std::size_t cases = for_each_smooth([](const Case& c) {
    const std::vector<Array> d = directions(c, 50), dy = run_jvp(c, d);
    const double h = 1e-5;
    const std::vector<Array> high = evaluated(c, shifted(c, d, h)), low = evaluated(c, shifted(c, d, -h));
    std::size_t next = 0;
    for (std::size_t i = 0; i < high.size(); ++i) {
      if (!is_float(high[i].dtype())) continue;
      const Array& tangent = dy[next++];
      const double allowed = 2e-7 * (1 + largest_magnitude(tangent) + largest_magnitude(high[i]));
      for (std::int64_t k = 0; k < tangent.size(); ++k)
        ASSERT_NEAR(tangent.get_double(k), (high[i].get_double(k) - low[i].get_double(k)) / (2 * h), allowed) << "element " << k;
    }
  });
  EXPECT_GT(cases, 100u);
}

/// <dy, J dx> = <J^T dy, dx>: both are sums of at most some hundred f64 terms.
TEST(EveryOp, VjpIsTheTransposeOfJvp) {
  for_each_smooth([](const Case& c) {
    const std::vector<Array> d = directions(c, 60), tangents = run_jvp(c, d), dy = cotangents_for(tangents, 70);
    const std::vector<Array> dx = run_vjp(c, varying(c, c.x), dy);
    const double forward = dot_product(dy, tangents), backward = dot_product(dx, varying(c, d));
    EXPECT_NEAR(forward, backward, 1e-10 * (1 + magnitude(tangents) + magnitude(dx)));
  });
}

/// The gradient's own derivative: forward over reverse against differences, reverse over reverse against forward over reverse.
TEST(EveryOp, SecondDerivativesAgree) {
  for_each_smooth([](const Case& c) {
    const std::vector<Array> x = varying(c, c.x), d = varying(c, directions(c, 80)), w = varying(c, directions(c, 90));
    const std::vector<Array> dy = cotangents_for(run_jvp(c, directions(c, 80)), 70);
    auto gradient = [&](const Values& primal, const Values& cotangents) { return vjp(CaseProgram{c}(primal), primal, cotangents); };
    const auto both = run(joined(joined(joined(x, dy), d), w), [&](const Values& v) {
      const Values primal = part(v, 0, x.size()), g = gradient(primal, part(v, x.size(), dy.size()));
      Values results = jvp(g, primal, part(v, x.size() + dy.size(), x.size()));
      for (Value each : vjp(g, primal, part(v, x.size() * 2 + dy.size(), x.size()))) results.push_back(each);
      return results;
    });
    const std::vector<Array> forward(both.begin(), both.begin() + std::ssize(x)), reverse(both.begin() + std::ssize(x), both.end());
    EXPECT_NEAR(dot_product(w, forward), dot_product(reverse, d), 1e-9 * (1 + magnitude(both)));
    const double h = 1e-5;
    const std::vector<Array> high = run_vjp(c, varying(c, shifted(c, directions(c, 80), h)), dy),
                             low = run_vjp(c, varying(c, shifted(c, directions(c, 80), -h)), dy);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double allowed = 1e-6 * (1 + largest_magnitude(forward[i]) + largest_magnitude(high[i]));
      for (std::int64_t k = 0; k < x[i].size(); ++k)
        ASSERT_NEAR(forward[i].get_double(k), (high[i].get_double(k) - low[i].get_double(k)) / (2 * h), allowed)
            << "operand " << i << " element " << k;
    }
  });
}

TEST(EveryOp, SaysByNameThatItHasNoDerivative) {
  for (const Case& c : all_cases()) {
    if (c.op->not_differentiable.empty() || c.x.empty()) continue;
    SCOPED_TRACE(c.name);
    Graph graph;
    std::vector<Type> types;
    for (const Array& array : c.x) types.push_back(type_of(array));
    const Values x = inputs_for(graph, types);
    Values varying_inputs, results;
    for (std::size_t i = 0; i < x.size(); ++i)
      if (given(c, i)) varying_inputs.push_back(x[i]);
    for (Value y : apply(*c.op, c.attrs, x))
      if (varies(y.type())) results.push_back(y);
    if (varying_inputs.empty() || results.empty()) continue;
    const std::string wanted = fmt::format("rlx.{}: not differentiable: {}", c.op->name, c.op->not_differentiable);
    try {
      vjp(results, varying_inputs, results);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(without_place(error.what()), wanted);
    }
  }
}

/// A stack of `size` random variations of the operand: the op's own sample, with the elements of floats and integers moved round.
Array stacked(const Array& x, std::int64_t size) {
  std::vector<std::int64_t> shape = x.shape();
  shape.insert(shape.begin(), size);
  Array result(x.dtype(), shape);
  for (std::int64_t i = 0; i < result.size(); ++i) {
    const std::int64_t from = (i + i / std::max<std::int64_t>(x.size(), 1)) % std::max<std::int64_t>(x.size(), 1);
    if (is_integer(x.dtype())) result.set_uint(i, x.get_uint(from));
    else result.set_complex(i, x.get_complex(from));
  }
  return result;
}

std::vector<std::vector<bool>> batch_patterns(std::size_t operands) {
  std::vector<std::vector<bool>> patterns{std::vector<bool>(operands, true)};
  for (std::size_t i = 0; operands > 1 && i < operands; ++i) {
    patterns.emplace_back(operands, false);
    patterns.back()[i] = true;
  }
  return patterns;
}

void check_batch(const Case& c, const std::vector<bool>& batched, const Function& body, double roundings) {
  constexpr std::int64_t size = 3;
  std::vector<Array> operands;
  std::vector<std::optional<std::int64_t>> axes;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    operands.push_back(batched[i] ? stacked(c.x[i], size) : c.x[i]);
    axes.push_back(batched[i] ? std::optional<std::int64_t>(0) : std::nullopt);
  }
  const auto all = run(operands, [&](const Values& v) { return vmap(body, v, axes); });
  for (std::int64_t n = 0; n < size; ++n) {
    std::vector<Array> one;
    for (std::size_t i = 0; i < operands.size(); ++i) one.push_back(batched[i] ? slice_of(operands[i], n) : operands[i]);
    const auto wanted = run(one, body);
    ASSERT_EQ(all.size(), wanted.size());
    for (std::size_t k = 0; k < wanted.size(); ++k)
      ASSERT_LE(difference(slice_of(all[k], n), wanted[k]), roundings * epsilon(wanted[k].dtype()) * (1 + largest_magnitude(wanted[k])))
          << "example " << n << " result " << k;
  }
}

/// The batch computes the same sums in f64; a narrow result may still be rounded differently once where a body is run in other pieces.
TEST(EveryOp, VmapMatchesALoop) {
  for (const Case& c : all_cases()) {
    if (c.x.empty()) continue;
    SCOPED_TRACE(c.name);
    for (const std::vector<bool>& batched : batch_patterns(c.x.size())) {
      try {
        check_batch(c, batched, [&](const Values& v) { return apply(*c.op, c.attrs, v); }, 2);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

/// vmap of vjp; cotangents are the results themselves, so that one list of operands makes a case.
TEST(EveryOp, VmapOfVjpMatchesALoop) {
  for_each_smooth([](const Case& c) {
    for (const std::vector<bool>& batched : batch_patterns(c.x.size()))
      check_batch(
          c, batched,
          [&](const Values& v) {
            Values inputs, floats;
            for (std::size_t i = 0; i < v.size(); ++i)
              if (given(c, i)) inputs.push_back(v[i]);
            for (Value y : apply(*c.op, c.attrs, v))
              if (varies(y.type())) floats.push_back(y);
            return vjp(floats, inputs, floats);
          },
          1e4);  // f64: 2e-12 relative; sums of cotangents come in another order
  });
}

/// Gradients of a sum over a batch are the batch of gradients.
TEST(EveryOp, GradOfVmapMatchesVmapOfGrad) {
  for_each_smooth([](const Case& c) {
    std::vector<Array> operands;
    for (const Array& x : c.x) operands.push_back(stacked(x, 2));
    const std::vector<std::optional<std::int64_t>> axes(operands.size(), 0);
    auto total = [&](const Values& v) {
      Value sum;
      for (Value y : apply(*c.op, c.attrs, v))
        if (varies(y.type())) sum = sum ? sum + sum_all(sin(y)) : sum_all(sin(y));
      return sum;
    };
    auto floats = [&](const Values& v) {
      Values inputs;
      for (std::size_t i = 0; i < v.size(); ++i)
        if (given(c, i)) inputs.push_back(v[i]);
      return inputs;
    };
    const auto both = run(operands, [&](const Values& v) {
      Values results = grad(sum_all(vmap([&](const Values& x) { return Values{total(x)}; }, v, axes)[0]), floats(v));
      for (Value each : vmap([&](const Values& x) { return grad(total(x), floats(x)); }, v, axes)) results.push_back(each);
      return results;
    });
    for (std::size_t i = 0; i < both.size() / 2; ++i)
      EXPECT_LE(difference(both[i], both[i + both.size() / 2]), 1e-10 * (1 + magnitude(both))) << "operand " << i;
  });
}

}  // namespace
}  // namespace rlx::test
