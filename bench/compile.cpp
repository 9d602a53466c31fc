// How long a program of a decoder takes to compile: with an empty cache, from the kernels that another process left there, and for a new
// length.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "backends/cpu/machine/cpu_features.h"
#include "cases/new_process.h"
#include "cases/program.h"
#include "models/layers/flow.h"
#include "rlx/ops.h"

namespace {

using namespace rlx;

constexpr std::int64_t layers = 24, width = 2048, heads = 32, kv_heads = 4, head_size = 64, hidden = 5632, words = 32000;

Value normalised(Flow flow, std::string_view name, Value x) { return rms_norm(x, flow.scope(name).param("weight", {width})); }

/// (S, heads * head_size) -> (1, heads, S, head_size)
Value split_heads(Value x, std::int64_t count) { return transpose(reshape(x, {1, x.dim(0), count, head_size}), {0, 2, 1, 3}); }

Value attend(Flow flow, Value x, Value positions) {
  Value q = rope(split_heads(flow.linear("q_proj", x, heads * head_size, false), heads), positions);
  Value k = rope(split_heads(flow.linear("k_proj", x, kv_heads * head_size, false), kv_heads), positions);
  Value v = split_heads(flow.linear("v_proj", x, kv_heads * head_size, false), kv_heads);
  AttentionOptions options;
  options.causal = true;
  Value context = reshape(transpose(attention(q, k, v, options), {0, 2, 1, 3}), {x.dim(0), width});
  return flow.linear("o_proj", context, width, false);
}

Value feed_forward(Flow flow, Value x) {
  Value gate = flow.linear("gate_proj", x, hidden, false);
  return flow.linear("down_proj", swiglu(gate, flow.linear("up_proj", x, hidden, false)), width, false);
}

/// A decoder as Llama is one, over (S) tokens: rms_norm, rope, grouped causal attention, swiglu.
Graph decoder() {
  Graph graph("decoder");
  Flow flow(graph);
  const Dim length = Dim::symbol("S", 4096);
  const Value ids = graph.input("ids", {length}, i32), positions = graph.input("positions", {length}, i32);
  Value x = flow.embedding("embed_tokens", ids, words, width);
  for (std::int64_t i = 0; i < layers; ++i) {
    Flow layer = flow.scope(fmt::format("layers.{}", i));
    x = x + attend(layer.scope("self_attn"), normalised(layer, "input_layernorm", x), positions);
    x = x + feed_forward(layer.scope("mlp"), normalised(layer, "post_attention_layernorm", x));
  }
  const Value last = slice_axis(normalised(flow, "norm", x), 0, length - 1, length);
  graph.output("logits", flow.linear("lm_head", last, words, false));
  return graph;
}

nlohmann::json compiled(const std::filesystem::path& cache, int threads) {
  const auto begin = std::chrono::steady_clock::now();
  const Session session(Device::cpu(), {.threads = threads, .cache_folder = cache});
  const Executable executable = session.compile(decoder());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const CompileCounters counters = session.counters();
  return {{"seconds", seconds}, {"compiled", counters.kernels_compiled}, {"from_disk", counters.kernels_from_disk}};
}

/// Kernels that LLVM compiles for lengths that come after the first.
nlohmann::json compiled_for_new_lengths(const std::filesystem::path& cache, int threads) {
  const Session session(Device::cpu(), {.threads = threads, .cache_folder = cache});
  const Graph graph = decoder();
  Executable executable = session.compile(graph);
  executable.set_params(bench::shared_params(graph));
  std::int64_t after_first = 0;
  for (std::int64_t length : {3, 1, 17}) {
    const std::vector<std::int32_t> numbers(static_cast<std::size_t>(length), 1);
    executable.run({{"ids", numbers}, {"positions", numbers}});
    if (length == 3) after_first = session.counters().kernels_compiled;
  }
  return {{"kernels", session.counters().kernels_compiled - after_first}};
}

void keep_fastest(nlohmann::json& best, const nlohmann::json& next) {
  if (best.is_null() || next["seconds"] < best["seconds"]) best = next;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time to compile a decoder of 24 layers: with an empty cache, from disk, and for a new length");
  bench::Options options;
  bench::add_options(app, options, argc, argv);
  for (const char* unused : {"--serve", "--seconds"}) app.remove_option(app.get_option(unused));
  return bench::run_command(app, argc, argv, [&] {
    const std::filesystem::path cache = std::filesystem::temp_directory_path() / fmt::format("rlx_bench_compile_{}", getpid());
    nlohmann::json cold, disk;
    for (int round = 0; round < options.rounds; ++round) {
      std::filesystem::remove_all(cache);
      keep_fastest(cold, bench::in_new_process([&] { return compiled(cache, options.threads); }));
      keep_fastest(disk, bench::in_new_process([&] { return compiled(cache, options.threads); }));
    }
    const nlohmann::json lengths = bench::in_new_process([&] { return compiled_for_new_lengths(cache, options.threads); });
    std::filesystem::remove_all(cache);
    for (const auto& [name, about] : {std::pair("empty", &cold), std::pair("from disk", &disk)}) {
      fmt::print("{:<10} {:>8.1f} ms, {} kernels compiled, {} from disk\n", name, 1e3 * (*about)["seconds"].get<double>(),
                 (*about)["compiled"].get<int>(), (*about)["from_disk"].get<int>());
    }
    fmt::print("new length: {} kernels compiled\n", lengths["kernels"].get<int>());
    bench::write_json(options, {{"command", options.command},
                                {"cpu", cpu::describe(cpu::cpu_features(), cpu::cpu_level())},
                                {"threads", options.threads},
                                {"layers", layers},
                                {"width", width},
                                {"empty", cold},
                                {"disk", disk},
                                {"compiled_for_new_lengths", lengths["kernels"]}});
  });
}
