// Fourier transforms, factorisations, sorts, scatters and running sums, as a session runs them: answers lines "OP TYPE SECONDS SIZE..."
// with the fastest and the median run in seconds. bench/library_peers.py asks it and its peers in turn. `library NAME` runs them on the
// device of that name.
#include <algorithm>
#include <complex>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "rlx/ops.h"
#include "rlx/session.h"
#include "timed.h"

namespace {

using namespace rlx;

/// Rows of x added to those of a smaller table, as the gradient of an embedding is.
Value scattered(Graph& graph, Value x) {
  const std::int64_t rows = x.dim(0).value() * 3 / 5;
  const Value indices = graph.input("indices", {x.dim(0), 1}, i64);
  return scatter(full(x, {rows, x.dim(1)}, 0, x.dtype()), indices, x, {{1}, {0}, {0}}, ScatterKind::add);
}

Value built(Graph& graph, const std::string& op, Value x) {
  if (op == "fft") return fft(x);
  if (op == "fft2") return fftn(x, {-2, -1});
  if (op == "rfft") return rfft(x);
  if (op == "scatter_add") return scattered(graph, x);
  if (op == "sort") return sort({x})[0];
  if (op == "argsort") return argsort(x);
  if (op == "top_k") return top_k(x, 50)[0];
  if (op == "cumsum0") return cumsum(x, 0);
  if (op == "cumsum1") return cumsum(x, 1);
  if (op == "lu") return lu(x)[0];
  if (op == "cholesky") return cholesky(x);
  return triangular_solve(x, x);
}

/// Uniform numbers; matrices get a diagonal that keeps them positive definite.
Array operand(DType type, const std::vector<std::int64_t>& shape, bool matrix) {
  Array x(type, shape);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const bool diagonal = matrix && i / shape.back() % shape.back() == i % shape.back();
    const double value = uniform(random) + (diagonal ? 2 * static_cast<double>(shape.back()) : 0);
    if (is_complex(type)) x.set_complex(i, {value, uniform(random)});
    else x.set_double(i, value);
  }
  return x;
}

Array places(std::int64_t count, std::int64_t rows) {
  Array indices(i64, {count, 1});
  std::mt19937 random(2);
  std::uniform_int_distribution<std::int64_t> uniform(0, rows - 1);
  for (std::int64_t i = 0; i < count; ++i) indices.set_int(i, uniform(random));
  return indices;
}

std::vector<double> times(const Executable& executable, const std::map<std::string, Feed>& inputs, double seconds) {
  Array y = executable.run(inputs).at("y");  // whose pages are there, as those of torch's heap are
  const std::map<std::string, Target> into{{"y", {y.dtype(), y.mutable_bytes()}}};
  return bench::timed([&] { executable.run(inputs, into); }, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const Session session = bench::peers_session(argc > 1 ? Device::named(argv[1]) : Device::cpu());
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string op, type;
    double seconds = 0;
    words >> op >> type >> seconds;
    std::vector<std::int64_t> shape;
    for (std::int64_t size = 0; words >> size;) shape.push_back(size);
    const std::map<std::string, DType> dtypes{{"f32", f32}, {"f64", f64}, {"bf16", bf16}, {"c64", c64}, {"c128", c128}};
    const bool matrix = op == "lu" || op == "cholesky" || op == "triangular_solve";
    const Array x = operand(dtypes.at(type), shape, matrix);
    Graph graph;
    graph.output("y", built(graph, op, graph.input("x", Dims(shape.begin(), shape.end()), x.dtype())));
    std::map<std::string, Feed> inputs{{"x", x}};
    if (op == "scatter_add") inputs.emplace("indices", places(shape[0], shape[0] * 3 / 5));
    const std::vector<double> all = times(session.compile(graph), inputs, seconds);
    fmt::print("{} {}\n", all.front(), all[all.size() / 2]);
    std::fflush(stdout);
  }
}
