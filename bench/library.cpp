// Fourier transforms and factorisations, as a session runs them: answers lines "OP TYPE SECONDS SIZE..." with the fastest and the median
// run in seconds. bench/library_peers.py asks it and its peers in turn.
#include <algorithm>
#include <chrono>
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

namespace {

using namespace rlx;
using Clock = std::chrono::steady_clock;

Value built(const std::string& op, Value x) {
  if (op == "fft") return fft(x);
  if (op == "fft2") return fftn(x, {-2, -1});
  if (op == "rfft") return rfft(x);
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

Target target_of(Array& y) {
  if (y.dtype() == f32) return y.mutable_values<float>();
  if (y.dtype() == f64) return y.mutable_values<double>();
  if (y.dtype() == c64) return y.mutable_values<std::complex<float>>();
  return y.mutable_values<std::complex<double>>();
}

std::vector<double> times(const Executable& executable, const Array& x, double seconds) {
  std::vector<double> all;
  const std::map<std::string, Feed> inputs{{"x", x}};
  Array y = executable.run(inputs).at("y");
  const std::map<std::string, Target> into{{"y", target_of(y)}};  // torch's results come from its heap, whose pages are there already
  for (const auto begin = Clock::now(); all.size() < 3 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds;) {
    const auto start = Clock::now();
    executable.run(inputs, into);
    all.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

int main() {
  SessionOptions options;
  options.threads = 2;
  options.cache_folder = "";
  const Session session(Device::cpu(), options);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string op, type;
    double seconds = 0;
    words >> op >> type >> seconds;
    std::vector<std::int64_t> shape;
    for (std::int64_t size = 0; words >> size;) shape.push_back(size);
    const std::map<std::string, DType> dtypes{{"f32", f32}, {"f64", f64}, {"c64", c64}, {"c128", c128}};
    const bool matrix = op == "lu" || op == "cholesky" || op == "triangular_solve";
    const Array x = operand(dtypes.at(type), shape, matrix);
    Graph graph;
    graph.output("y", built(op, graph.input("x", Dims(shape.begin(), shape.end()), x.dtype())));
    const std::vector<double> all = times(session.compile(graph), x, seconds);
    fmt::print("{} {}\n", all.front(), all[all.size() / 2]);
    std::fflush(stdout);
  }
}
