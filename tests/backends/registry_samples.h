#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <span>

#include "ir/parts.h"
#include "ops/registry_cases.h"
#include "ops/sample_operands.h"
#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx::test {

/// Which operands are parameters: in the first sample those that are weights of many ops, in the next the others.
inline bool is_param(const Case& c, std::size_t operand) { return (c.number + operand) % 2 == 1; }

/// The sample as a graph with inputs and parameters x0, x1, ... and outputs y0, y1, ...; `wide` has f64 in place of every float operand.
inline Graph graph_of(const Case& c, bool wide) {
  Graph graph(std::string(c.op->name));
  Values operands;
  for (std::size_t i = 0; i < c.sample.operands.size(); ++i) {
    const auto& [dtype, shape] = c.sample.operands[i].type;
    const DType type = wide && is_float(dtype) ? f64 : dtype;
    const std::string name = "x" + std::to_string(i);
    operands.push_back(is_param(c, i) ? graph.param(name, shape, type) : graph.input(name, shape, type));
  }
  const Values results = apply_op(graph, *c.op, attributes(*c.op, c.sample), operands);
  for (std::size_t i = 0; i < results.size(); ++i) graph.output("y" + std::to_string(i), results[i]);
  return graph;
}

inline Array widened(const Array& x) {
  if (!is_float(x.dtype())) return x;
  Array result(f64, x.shape());
  for (std::int64_t i = 0; i < x.size(); ++i) result.set_double(i, x.get_double(i));
  return result;
}

/// The same numbers whatever the type: what rounding inside the reference itself amounts to. 0 when the op refuses f64.
inline std::vector<double> rounding_of_reference(const Case& c, const std::vector<Array>& operands, const std::vector<Array>& wanted) {
  std::vector<double> result(wanted.size(), 0);
  try {
    std::vector<Array> wide;
    for (const Array& operand : operands) wide.push_back(widened(operand));
    const auto exact = evaluate(graph_of(c, true), named(wide));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (is_float(wanted[i].dtype())) result[i] = difference(widened(wanted[i]), widened(exact[i]));
  } catch (const Error&) {
  }
  for (double& d : result) d = std::isfinite(d) ? d : 0;
  return result;
}

/// Integers, bools and moved elements are equal. Otherwise a kernel may differ from the reference
///  - by 4 units in the last place of the element: the bound on a scalar op of the kernels (2) and on its reference (1), and a store;
///  - for ops with inner values, by 4 roundings of the largest result: the samples' sums are short, and kernels add in another order;
///  - by 4 times what the reference is away from its own value in f64: kernels keep narrow floats in f32 between stores, so they
///    round less often, and cancellation inside an op shows there;
///  - by what the sample allows;
///  - by the smallest normal number: kernels flush what is smaller.
inline double allowed(const Case& c, const Array& wanted, double reference_rounding, double element, double largest) {
  const double eps = epsilon(wanted.dtype());
  if (eps == 0 || c.op->kind == OpKind::structure) return 0;
  const double inner = c.op->kind == OpKind::scalar ? 0 : 4 * eps * largest + 4 * reference_rounding;
  return 4 * eps * std::abs(element) + inner + c.sample.tolerance * largest + 0x1p-126;
}

inline void expect_equal(const Case& c, const Array& seen, const Array& wanted, double reference_rounding) {
  ASSERT_EQ(type_of(seen).to_string(), type_of(wanted).to_string());
  const double largest = largest_magnitude(wanted);
  for (std::int64_t i = 0; i < wanted.size(); ++i) {
    const std::complex<double> a = seen.get_complex(i), b = wanted.get_complex(i);
    if (a == b || (std::isnan(a.real()) && std::isnan(b.real()))) continue;
    // What is not finite has no neighbourhood: only the same will do.
    const bool finite = std::isfinite(b.real()) && std::isfinite(b.imag());
    const double limit = finite ? allowed(c, wanted, reference_rounding, std::abs(b), largest) : 0;
    if (std::abs(a - b) <= limit) continue;
    ADD_FAILURE() << "element " << i << " of " << wanted.size() << ": " << a << ", must be " << b << " +- " << limit;
    return;
  }
}

/// A sample as one of the parts of a program, whose names begin with `prefix`, with what it computes.
struct Part {
  const Case* of;
  std::string prefix;
  std::vector<Array> wanted;
  std::vector<double> rounding;
};

/// Samples as one program, with what it reads and what the reference makes of that.
struct SampleProgram {
  explicit SampleProgram(std::span<const Case> cases) {
    for (const Case& c : cases) add(c);
  }
  /// `seen(name)`: an output of the program.
  void expect(const std::function<Array(const std::string& name)>& seen) const {
    for (const Part& part : parts) {
      SCOPED_TRACE(part.of->name());
      for (std::size_t i = 0; i < part.wanted.size(); ++i)
        expect_equal(*part.of, seen(part.prefix + "y" + std::to_string(i)), part.wanted[i], part.rounding[i]);
    }
  }

  Graph graph{"samples"};
  std::vector<Part> parts;
  std::map<std::string, Array> fed, params;

 private:
  void add(const Case& c) {
    const auto operands = random_operands(c.sample, 3);
    const Graph sample = graph_of(c, false);
    Part part{&c, "s" + std::to_string(parts.size()) + "_", evaluate(sample, named(operands)), {}};
    part.rounding = rounding_of_reference(c, operands, part.wanted);
    for (std::size_t i = 0; i < operands.size(); ++i)
      (is_param(c, i) ? params : fed).emplace(part.prefix + "x" + std::to_string(i), operands[i]);
    add_part(graph, sample, part.prefix);
    parts.push_back(std::move(part));
  }
};

/// These samples as one program, as the reference has them; twice: what runs leave behind changes nothing. What was compiled.
inline Executable expect_reference(const Session& session, std::span<const Case> cases) {
  const SampleProgram program(cases);
  Executable executable = session.compile(program.graph);
  executable.set_params(program.params);
  const std::map<std::string, Feed> fed(program.fed.begin(), program.fed.end());
  const Outputs seen = executable.run(fed), again = executable.run(fed);
  program.expect([&](const std::string& name) {
    EXPECT_EQ(difference(seen.at(name), again.at(name)), 0) << name << " in the second run";
    return seen.at(name);
  });
  return executable;
}

/// All of these samples, some as one program, as starting a compiler costs more than a kernel. Programs stay until the end: devices give
/// the kernel of one to another that has the same, as a tenth of them do.
inline void expect_all(const Session& session, const std::vector<Case>& all, std::size_t together = 24) {
  std::vector<Executable> kept;
  for (std::size_t first = 0; first < all.size(); first += together) {
    const auto cases = std::span(all).subspan(first, std::min(together, all.size() - first));
    SCOPED_TRACE("from " + cases.front().name() + " to " + cases.back().name());
    try {
      kept.push_back(expect_reference(session, cases));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

/// The first sample of every op, in two programs.
inline void expect_first_samples(const Session& session) {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [](const Case& c) { return c.number != 0; });
  EXPECT_GT(cases.size(), 100U);
  expect_all(session, cases, cases.size() / 2);
}

/// A state whose rows are replaced where they lie.
inline void expect_states_change(const Session& session) {
  Graph graph;
  const Value cache = graph.state("cache", {4, 3}, f32), row = graph.input("row", {1, 3}, f32), at = graph.input("at", {}, i32);
  graph.output("cache", dynamic_update(cache, row, {at, scalar(at, 0, i32)}));
  Executable program = session.compile(graph);
  std::vector<float> expected(12, 0);
  for (const std::int32_t place : {0, 2, 7}) {  // 7: clamped to the last row
    const std::vector<std::int32_t> places{place};
    const std::vector<float> values{1, 2, static_cast<float>(place)};
    program.run({{"row", values}, {"at", Array::of<std::int32_t>({}, places)}});
    std::ranges::copy(values, expected.begin() + 3 * std::min(place, 3));
    EXPECT_EQ(program.state("cache"), Array::of<float>({4, 3}, expected));
  }
}

/// Every sample of every op.
inline void expect_reference(const Session& session) { expect_all(session, all_cases()); }

/// One of so many parts of them, for where compiling all takes minutes: tests then run side by side. `part`: from 0.
inline void expect_part(const Session& session, std::size_t part, std::size_t parts) {
  std::vector<Case> mine;
  const std::vector<Case> all = all_cases();
  for (std::size_t i = part; i < all.size(); i += parts) mine.push_back(all[i]);
  expect_all(session, mine);
}

}  // namespace rlx::test
