// Sums as a session runs them: reads lines "OP TYPE SECONDS AXES SIZE..." (AXES: 0,1) and answers with the fastest and the median run in
// seconds, and the largest and the mean relative error over all results. bench/sums_peers.py asks it and its peers in turn, over the same
// numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "rlx/ops.h"
#include "rlx/session.h"
#include "timed.h"

namespace {

using namespace rlx;

/// 24 bits of the finisher of MurmurHash3.
double bits(std::uint32_t i) {
  i = (i ^ (i >> 16)) * 0x85ebca6bU;
  i = (i ^ (i >> 13)) * 0xc2b2ae35U;
  return (i ^ (i >> 16)) >> 8;
}
/// Number i of a sequence in [0, 1) that every language makes alike.
double number(std::uint32_t i) { return (bits(i) + bits(~i) / 0x1p24) / 0x1p24; }

struct Case {
  std::string op;
  DType type;
  std::vector<std::int64_t> axes, shape;
  bool reduced(std::size_t axis) const { return std::ranges::find(axes, static_cast<std::int64_t>(axis)) != axes.end(); }
  /// Where element `i` of the operand ends up.
  std::int64_t target(std::int64_t i) const {
    std::int64_t to = 0, stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; i /= shape[axis])
      if (!reduced(axis)) to += i % shape[axis] * stride, stride *= shape[axis];
    return to;
  }
};

Value built(const Case& c, const Value& x) {
  if (c.op == "mean") return mean(x, c.axes);
  if (c.op == "squares") return sum(x * x, c.axes);
  return c.op == "var" ? var(x, c.axes, 0) : sum(x, c.axes);
}

/// Sums of the operand's numbers (or of their squares) in long double.
std::vector<long double> exact_sums(const Case& c, const Array& x, std::int64_t results, bool squares) {
  std::vector<long double> sums(static_cast<std::size_t>(results), 0);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const long double v = x.get_double(i);
    sums[static_cast<std::size_t>(c.target(i))] += squares ? v * v : v;
  }
  return sums;
}

std::vector<long double> exact(const Case& c, const Array& x, std::int64_t results) {
  std::vector<long double> sums = exact_sums(c, x, results, c.op == "squares");
  const auto terms = static_cast<long double>(x.size() / results);
  if (c.op == "mean")
    for (long double& sum : sums) sum /= terms;
  if (c.op != "var") return sums;
  std::vector<long double> squares = exact_sums(c, x, results, true);
  for (std::size_t i = 0; i < sums.size(); ++i) squares[i] = (squares[i] - sums[i] * sums[i] / terms) / terms;
  return squares;
}

void answer(const Session& session, const Case& c, double seconds) {
  Array x(c.type, c.shape);
  for (std::int64_t i = 0; i < x.size(); ++i) x.set_double(i, number(static_cast<std::uint32_t>(i)));
  Graph graph;
  graph.output("y", built(c, graph.input("x", Dims(c.shape.begin(), c.shape.end()), c.type)));
  const Executable executable = session.compile(graph);
  const std::map<std::string, Feed> inputs{{"x", x}};
  const Array y = executable.run(inputs).at("y");
  const std::vector<long double> wanted = exact(c, x, y.size());
  double largest = 0, total = 0;
  for (std::int64_t i = 0; i < y.size(); ++i) {
    const long double want = wanted[static_cast<std::size_t>(i)];
    const auto error = static_cast<double>(std::abs((y.get_double(i) - want) / want));
    largest = std::max(largest, error), total += error;
  }
  const std::vector<double> times = bench::timed([&] { executable.run(inputs); }, seconds);
  fmt::print("{} {} {} {}\n", times.front(), times[times.size() / 2], largest, total / static_cast<double>(y.size()));
  std::fflush(stdout);
}

}  // namespace

int main() {
  const Session session = bench::peers_session();
  const std::map<std::string, DType> types{{"f32", f32}, {"f64", f64}, {"bf16", bf16}, {"f16", f16}};
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string op, type, axes;
    double seconds = 0;
    words >> op >> type >> seconds >> axes;
    Case c{op, types.at(type), {}, {}};
    std::istringstream list(axes);
    for (std::string axis; std::getline(list, axis, ',');) c.axes.push_back(std::stoll(axis));
    for (std::int64_t size = 0; words >> size;) c.shape.push_back(size);
    answer(session, c, seconds);
  }
}
