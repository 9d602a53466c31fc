// Speed of the f32 matrix product, as a share of the multiply-add peak that is measured in the same run.
#include <algorithm>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backends/cpu/cpu_features.h"
#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/peaks/peaks.h"
#include "base/cpu_count.h"
#include "base/fastest_seconds.h"
#include "base/thread_pool.h"
#include "rlx/error.h"

namespace {

using namespace rlx;

enum class Weights { packed, strided };  // B packed beforehand, or (n, k) row by row as attention has its keys

struct Shape {
  std::int64_t batch, m, n, k;
  Weights b;
};

const std::vector<Shape> default_shapes{
    {1, 128, 384, 384, Weights::packed},    {1, 128, 1536, 384, Weights::packed},    {1, 128, 384, 1536, Weights::packed},
    {1, 4096, 384, 384, Weights::packed},   {1, 384, 384, 384, Weights::packed},     {1, 1536, 1536, 1536, Weights::packed},
    {1, 1024, 1024, 1024, Weights::packed}, {1, 1024, 1024, 1024, Weights::strided}, {12, 128, 128, 32, Weights::strided},
    {12, 128, 32, 128, Weights::strided},   {1, 1, 384, 1536, Weights::packed},      {1, 1, 32000, 1024, Weights::packed},
    {1, 2, 4096, 4096, Weights::packed},    {1, 4, 4096, 4096, Weights::packed},     {1, 8, 4096, 4096, Weights::packed},
};

/// One product with its matrices, ready to run again and again.
struct Case {
  Shape shape;
  std::vector<float> a, b, c;
  std::vector<cpu::PackedB<float>> packed;  // none or one
  cpu::GemmArgs<float> args;
  std::vector<std::byte> memory;
  double seconds = 1e30;

  Case(const Shape& s, ThreadPool& pool) : shape(s) {
    std::mt19937 bits(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    a.resize(static_cast<std::size_t>(s.batch * s.m * s.k));
    b.resize(static_cast<std::size_t>(s.batch * s.n * s.k));
    c.resize(static_cast<std::size_t>(s.batch * s.m * s.n));
    for (float& value : a) value = uniform(bits);
    for (float& value : b) value = uniform(bits);
    args.batch = s.batch, args.m = s.m, args.n = s.n, args.k = s.k;
    args.a = {a.data(), s.k, 1, s.m * s.k};
    args.b = {b.data(), 1, s.k, s.n * s.k};
    args.c = c.data(), args.c_row_stride = s.n, args.c_batch_stride = s.m * s.n;
    if (s.b == Weights::packed) packed.push_back(cpu::pack_b(args.b, s.batch, s.k, s.n, pool));
    if (s.b == Weights::packed) args.packed_b = packed.data();
    memory.resize(cpu::gemm_workspace(args, pool.size()) + 64);
    args.workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  }
  Case(const Case&) = delete;

  double flops() const { return 2.0 * static_cast<double>(shape.batch * shape.m) * static_cast<double>(shape.n * shape.k); }

  /// Small products run back to back, as in a model, so that the clock's own cost does not count.
  void measure(ThreadPool& pool, double budget) {
    const int calls = static_cast<int>(std::max(1.0, 2e8 / flops()));
    const double now = fastest_seconds(budget, [&] {
      for (int i = 0; i < calls; ++i) cpu::gemm(args, pool);
    });
    seconds = std::min(seconds, now / calls);
  }
};

std::vector<Shape> chosen_shapes(const std::vector<std::int64_t>& sizes, bool strided) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i + 3 < sizes.size(); i += 4) {
    shapes.push_back({sizes[i], sizes[i + 1], sizes[i + 2], sizes[i + 3], strided ? Weights::strided : Weights::packed});
  }
  return shapes.empty() ? default_shapes : shapes;
}

int report(const std::vector<Shape>& shapes, int threads, double budget, int rounds, const std::string& json_path) {
  ThreadPool pool(threads);
  double peak = 0;
  std::vector<std::unique_ptr<Case>> cases;
  for (const Shape& shape : shapes) cases.push_back(std::make_unique<Case>(shape, pool));
  for (int round = 0; round < rounds; ++round) {  // a disturbance of some seconds then hits no figure in all its rounds
    peak = std::max(peak, cpu::compute_peak(pool, cpu::compute_loops(cpu::cpu_level()).front(), budget / rounds));
    for (auto& one : cases) one->measure(pool, budget / rounds);
  }
  nlohmann::json json{{"cpu", cpu::describe(cpu::cpu_features(), cpu::cpu_level())}, {"threads", threads}, {"peak_flops", peak}};
  fmt::print("{}\nlevel {}, {} threads, f32 peak {:.1f} GFLOP/s\n", cpu::describe(cpu::cpu_features(), cpu::cpu_level()),
             cpu::to_string(cpu::cpu_level()), threads, peak / 1e9);
  fmt::print("{:>5} {:>6} {:>6} {:>6} {:>8} {:>11} {:>9} {:>7} {:>7}\n", "batch", "m", "n", "k", "B", "us", "GFLOP/s", "peak %", "B GB/s");
  for (const auto& one : cases) {
    const Shape& s = one->shape;
    const char* kind = s.b == Weights::packed ? "packed" : "strided";
    const double rate = one->flops() / one->seconds;
    fmt::print("{:>5} {:>6} {:>6} {:>6} {:>8} {:>11.1f} {:>9.1f} {:>7.1f} {:>7.1f}\n", s.batch, s.m, s.n, s.k, kind, one->seconds * 1e6,
               rate / 1e9, 100 * rate / peak, static_cast<double>(s.batch * s.n * s.k) * sizeof(float) / one->seconds / 1e9);
    json["products"].push_back(
        {{"batch", s.batch}, {"m", s.m}, {"n", s.n}, {"k", s.k}, {"b", kind}, {"seconds", one->seconds}, {"flops", rate}});
  }
  if (!json_path.empty() && !(std::ofstream(json_path) << json.dump(2) << '\n')) fail("{}: cannot be written", json_path);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Speed of the f32 matrix product against the multiply-add peak");
  int rounds = 5, threads = granted_cpus();
  double budget = 0.5;
  std::vector<std::int64_t> sizes;
  bool strided = false;
  std::string json_path;
  app.add_option("--shapes", sizes, "batch m n k of one product or several, in place of the usual ones")->check(CLI::Range(1, 1 << 20));
  app.add_flag("--strided", strided, "with --shapes: B is not packed beforehand");
  app.add_option("--threads", threads, "threads of the pool")->check(CLI::Range(1, ThreadPool::max_threads));
  app.add_option("--seconds", budget, "time for each shape")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds, "how often to go through all shapes")->check(CLI::Range(1, 1000));
  app.add_option("--json", json_path, "also write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  try {
    return report(chosen_shapes(sizes, strided), threads, budget, rounds, json_path);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
