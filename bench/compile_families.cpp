// Whether compiling takes time in proportion to the graph: families of graphs whose values are read at many places, each at two sizes.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "backends/cpu/machine/cpu_features.h"
#include "cases/new_process.h"
#include "cases/program.h"
#include "rlx/error.h"
#include "rlx/ops.h"
#include "rlx/transform.h"

namespace {

using namespace rlx;

struct Family {
  std::string name;
  std::vector<std::int64_t> sizes;
  std::function<Value(Graph&, std::int64_t size)> make;
};

Value input(Graph& graph, std::vector<std::int64_t> shape) { return graph.input("x", {shape.begin(), shape.end()}, f32); }

Value sum_of_all(Value x) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < x.type().rank(); ++axis) axes.push_back(axis);
  return sum(x, axes);
}

/// Explicit steps of the heat equation on a torus.
Value periodic_heat(Value x, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; ++step) {
    Value around = x * (-2.0 * x.type().rank());
    for (std::int64_t axis = 0; axis < x.type().rank(); ++axis) around = around + roll(x, {1}, {axis}) + roll(x, {-1}, {axis});
    x = x + 0.1 * around;
  }
  return x;
}

/// The same with zeros around.
Value bounded_heat(Value x, std::int64_t steps) {
  const std::int64_t n = x.dim(0).value(), m = x.dim(1).value();
  for (std::int64_t step = 0; step < steps; ++step) {
    const Value wide = pad(x, {1, 1}, {1, 1});
    const auto moved = [&](std::int64_t i, std::int64_t j) { return slice(wide, {i, j}, {i + n, j + m}, {1, 1}); };
    x = x + 0.1 * (moved(0, 1) + moved(2, 1) + moved(1, 0) + moved(1, 2) - 4 * x);
  }
  return x;
}

/// Waves with a velocity beside the height, as two values that need each other.
Value periodic_wave(Value x, std::int64_t steps) {
  Value velocity = 0 * x;
  for (std::int64_t step = 0; step < steps; ++step) {
    velocity = velocity + 0.1 * (roll(x, {1}, {0}) + roll(x, {-1}, {0}) + roll(x, {1}, {1}) + roll(x, {-1}, {1}) - 4 * x);
    x = x + 0.1 * velocity;
  }
  return x;
}

Value doubled(Value x, std::int64_t levels) {
  for (std::int64_t level = 0; level < levels; ++level) x = concat({x, x}, 0);
  return x;
}

/// The Walsh-Hadamard transform by halves, 2^levels elements.
Value butterflies(Value x, std::int64_t levels) {
  const Dim n = x.dim(0), half = n.value() / 2;
  for (std::int64_t level = 0; level < levels; ++level) {
    const Value a = slice_axis(x, 0, 0, half), b = slice_axis(x, 0, half, n);
    x = reshape(stack({a + b, a - b}, 1), {n});
  }
  return x;
}

/// The sum of all prefixes, by shifts of 1, 1, 1 ...: each value is read where it is and beside it.
Value shifted_sums(Value x, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; ++step) x = x + 0.5 * pad(x, {1}, {-1});
  return x;
}

Value pads(Value x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x = pad(x, {1, 0}, {0, 1}, {}, static_cast<double>(i));
  return x;
}

/// A recurrence written out step by step, all of whose states are kept.
Value unrolled_scan(Value x, std::int64_t steps) {
  Values states;
  Value h = slice_axis(x, 0, 0, 1);
  for (std::int64_t step = 0; step < steps; ++step) {
    h = tanh(0.5 * h + slice_axis(x, 0, step, step + 1));
    states.push_back(h);
  }
  return concat(states, 0);
}

Value squares_gradient(Value y, Value x) { return grad(sum_of_all(y * y), {x})[0]; }

Value cumulative_gradients(Value x) {
  Value loss = sum_of_all(cumprod(x, 0));
  loss = loss + sum_of_all(cumprod(x, 0, true, true)) + sum_of_all(cummax(x, 0)) + sum_of_all(cummin(x, 0, true));
  return grad(loss, {x})[0];
}

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {"periodic heat, 1-d", {10, 100}, [](Graph& g, auto n) { return periodic_heat(input(g, {100000}), n); }},
      {"periodic heat, 2-d", {10, 100, 1000}, [](Graph& g, auto n) { return periodic_heat(input(g, {512, 512}), n); }},
      {"periodic heat, 3-d", {10, 100}, [](Graph& g, auto n) { return periodic_heat(input(g, {64, 64, 64}), n); }},
      {"bounded heat, 2-d", {10, 100}, [](Graph& g, auto n) { return bounded_heat(input(g, {512, 512}), n); }},
      {"periodic wave, gradient",
       {5, 50, 500},
       [](Graph& g, auto n) {
         const Value x = input(g, {256, 256});
         return squares_gradient(periodic_wave(x, n), x);
       }},
      {"tree of concat(x, x)", {8, 20}, [](Graph& g, auto n) { return doubled(input(g, {3}), n); }},
      {"butterflies", {8, 20}, [](Graph& g, auto n) { return butterflies(input(g, {std::int64_t{1} << n}), n); }},
      {"shifted sums", {20, 200, 2000}, [](Graph& g, auto n) { return shifted_sums(input(g, {100000}), n); }},
      {"chain of pads", {30, 300}, [](Graph& g, auto n) { return pads(input(g, {200, 200}), n); }},
      {"unrolled scan", {20, 200}, [](Graph& g, auto n) { return unrolled_scan(input(g, {n, 256}), n); }},
      {"unrolled scan, gradient",
       {20, 200},
       [](Graph& g, auto n) {
         const Value x = input(g, {n, 256});
         return squares_gradient(unrolled_scan(x, n), x);
       }},
      {"cumulative gradients", {64, 1000, 1000000}, [](Graph& g, auto n) { return cumulative_gradients(input(g, {n})); }},
  };
  return all;
}

/// By a session that has compiled something: that loads LLVM, which takes 30 ms once.
nlohmann::json compiled(const Family& family, std::int64_t size, const std::filesystem::path& cache, int threads) {
  Graph first("first"), graph("family");
  first.output("y", cos(input(first, {17})));
  graph.output("y", family.make(graph, size));
  const Session session(Device::cpu(), {.threads = threads, .cache_folder = cache});
  const Executable before = session.compile(first);
  const std::int64_t known = session.counters().kernels_compiled;
  const auto begin = std::chrono::steady_clock::now();
  const Executable executable = session.compile(graph);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {{"size", size}, {"nodes", graph.size()}, {"seconds", seconds}, {"kernels", session.counters().kernels_compiled - known}};
}

/// One line for each size; a size that fails, or takes longer than a minute, says so and leaves out the larger ones.
nlohmann::json measure(const Family& family, const bench::Options& options) {
  constexpr unsigned most_seconds = 60;
  const std::filesystem::path cache = std::filesystem::temp_directory_path() / fmt::format("rlx_bench_families_{}", getpid());
  nlohmann::json sizes = nlohmann::json::array();
  for (std::int64_t size : family.sizes) {
    nlohmann::json best;
    try {
      for (int round = 0; round < options.rounds; ++round) {
        std::filesystem::remove_all(cache);
        const nlohmann::json next = bench::in_new_process([&] { return compiled(family, size, cache, options.threads); }, most_seconds);
        if (best.is_null() || next["seconds"] < best["seconds"]) best = next;
      }
    } catch (const Error& error) {
      fmt::print("{:<26} {:>8}: {}\n", family.name, size, error.what());
      sizes.push_back({{"size", size}, {"error", error.what()}});
      break;
    }
    const double ms = 1e3 * best["seconds"].get<double>();
    fmt::print("{:<26} {:>8} {:>6} nodes {:>9.1f} ms {:>7.3f} ms a node, {} kernels compiled\n", family.name, size,
               best["nodes"].get<int>(), ms, ms / best["nodes"].get<double>(), best["kernels"].get<int>());
    std::fflush(stdout);
    sizes.push_back(std::move(best));
  }
  std::filesystem::remove_all(cache);
  return {{"name", family.name}, {"sizes", std::move(sizes)}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time to compile families of graphs whose values are read at many places, with an empty cache, for graphs of several sizes");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  for (const char* unused : {"--serve", "--seconds"}) app.remove_option(app.get_option(unused));
  std::string only;
  app.add_option("--only", only, "Families whose names begin so");
  return bench::run_command(app, argc, argv, [&] {
    nlohmann::json results = nlohmann::json::array();
    for (const Family& family : families())
      if (family.name.starts_with(only)) results.push_back(measure(family, options));
    bench::write_json(options, {{"command", options.command},
                                {"cpu", cpu::describe(cpu::cpu_features(), cpu::cpu_level())},
                                {"threads", options.threads},
                                {"families", std::move(results)}});
  });
}
