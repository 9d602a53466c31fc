// Row and elementwise programs of 4096 x 4096 in f32, compiled by a session, as shares of the rate at which memory can be copied.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "base/thread_pool.h"
#include "cases/cases.h"
#include "cases/program.h"
#include "rlx/ops.h"

namespace {

using namespace rlx;

struct RowProgram {
  std::string name;
  std::vector<std::string> inputs;  // all (rows, cols)
  std::function<Value(const std::vector<Value>&, Value gamma, Value beta)> body;
};

const std::vector<RowProgram> programs{
    {"softmax", {"x"}, [](const auto& in, const Value&, const Value&) { return softmax(in[0]); }},
    {"layer_norm", {"x"}, [](const auto& in, const Value& gamma, const Value& beta) { return layer_norm(in[0], gamma, beta); }},
    {"gelu", {"x"}, [](const auto& in, const Value&, const Value&) { return gelu(in[0]); }},
    {"residual_norm", {"x", "y"}, [](const auto& in, const Value& gamma, const Value& beta) {
       return layer_norm(in[0] + in[1], gamma, beta);
     }}};

bench::Case make_case(const RowProgram& program, std::int64_t rows, std::int64_t cols, const Session& session) {
  Graph graph(program.name);
  std::vector<Value> values;
  for (const std::string& name : program.inputs) values.push_back(graph.input(name, {rows, cols}, f32));
  Value gamma = graph.input("gamma", {cols}, f32), beta = graph.input("beta", {cols}, f32);
  graph.output("out", program.body(values, gamma, beta));
  std::map<std::string, Array> inputs{{"gamma", bench::filled({cols}, 11)}, {"beta", bench::filled({cols}, 13)}};
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    inputs.emplace(program.inputs[i], bench::filled({rows, cols}, static_cast<std::uint32_t>(2 * i + 1)));
  }
  const double bytes = static_cast<double>(rows * cols) * sizeof(float);
  return bench::program_case(session, {.graph = graph,
                                       .inputs = inputs,
                                       .params = {},
                                       .shape = {rows, cols},
                                       .name = fmt::format("{} {} x {}", program.name, rows, cols),
                                       .about = {{"kind", program.name}, {"type", "f32"}, {"rows", rows}, {"cols", cols}},
                                       .bytes_read = bytes * static_cast<double>(program.inputs.size()),
                                       .bytes_written = bytes});
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Row and elementwise programs against the rate of copying memory");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  std::int64_t rows = 4096, cols = 4096;
  app.add_option("--rows", rows, "rows")->check(CLI::Range(1, 1 << 20));
  app.add_option("--cols", cols, "columns")->check(CLI::Range(1, 1 << 16));
  return bench::run_command(app, argc, argv, [&] {
    const Session session(Device::cpu(), {.threads = options.threads, .cache_folder = ""});
    std::vector<bench::Case> cases;
    for (const RowProgram& program : programs) cases.push_back(make_case(program, rows, cols, session));
    ThreadPool pool(options.threads);
    bench::run_cases(cases, options, pool);
  });
}
