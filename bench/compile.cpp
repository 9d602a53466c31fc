// How long a program of a decoder takes to compile on a device: with an empty cache, from the kernels that another process left there, and
// for a new length; and from a program file to its first result.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include "backends/backend.h"
#include "backends/cpu/machine/cpu_features.h"
#include "cases/new_process.h"
#include "cases/program.h"
#include "models/layers/flow.h"
#include "rlx/ops.h"
#include "rlx/program_file.h"

namespace {

using namespace rlx;

constexpr std::int64_t layers = 24;

struct Sizes {
  std::int64_t width, heads, kv_heads, head_size, hidden, words;
};
constexpr Sizes wide{2048, 32, 4, 64, 5632, 32000};
constexpr Sizes narrow{64, 4, 2, 16, 128, 256};  // whose weights take no time

Value normalised(Flow flow, std::string_view name, Value x) { return rms_norm(x, flow.scope(name).param("weight", {x.dim(-1)})); }

/// (S, heads * head_size) -> (1, heads, S, head_size)
Value split_heads(Value x, std::int64_t count, std::int64_t head_size) {
  return transpose(reshape(x, {1, x.dim(0), count, head_size}), {0, 2, 1, 3});
}

Value attend(Flow flow, Value x, Value positions, const Sizes& sizes) {
  const auto [width, heads, kv_heads, head_size, hidden, words] = sizes;
  Value q = rope(split_heads(flow.linear("q_proj", x, heads * head_size, false), heads, head_size), positions);
  Value k = rope(split_heads(flow.linear("k_proj", x, kv_heads * head_size, false), kv_heads, head_size), positions);
  Value v = split_heads(flow.linear("v_proj", x, kv_heads * head_size, false), kv_heads, head_size);
  AttentionOptions options;
  options.causal = true;
  Value context = reshape(transpose(attention(q, k, v, options), {0, 2, 1, 3}), {x.dim(0), width});
  return flow.linear("o_proj", context, width, false);
}

Value feed_forward(Flow flow, Value x, const Sizes& sizes) {
  Value gate = flow.linear("gate_proj", x, sizes.hidden, false);
  return flow.linear("down_proj", swiglu(gate, flow.linear("up_proj", x, sizes.hidden, false)), sizes.width, false);
}

/// A decoder as Llama is one, over (S) tokens: rms_norm, rope, grouped causal attention, swiglu.
Graph decoder(const Sizes& sizes = wide) {
  Graph graph("decoder");
  Flow flow(graph);
  const Dim length = Dim::symbol("S", 4096);
  const Value ids = graph.input("ids", {length}, i32), positions = graph.input("positions", {length}, i32);
  Value x = flow.embedding("embed_tokens", ids, sizes.words, sizes.width);
  for (std::int64_t i = 0; i < layers; ++i) {
    Flow layer = flow.scope(fmt::format("layers.{}", i));
    x = x + attend(layer.scope("self_attn"), normalised(layer, "input_layernorm", x), positions, sizes);
    x = x + feed_forward(layer.scope("mlp"), normalised(layer, "post_attention_layernorm", x), sizes);
  }
  const Value last = slice_axis(normalised(flow, "norm", x), 0, length - 1, length);
  graph.output("logits", flow.linear("lm_head", last, sizes.words, false));
  return graph;
}

/// Where it compiles. The driver of a device is there by then: opening it is no part of compiling.
struct Place {
  std::string device = "cpu";
  int threads = 0;
  std::filesystem::path cache;

  Session open() const { return Session(opened(), {.threads = threads, .cache_folder = cache}); }
  Device opened() const {
    ::setenv("POCL_CACHE_DIR", (cache / "pocl").c_str(), 1);  // what that driver keeps by itself
    std::filesystem::create_directories(cache / "pocl");
    Device found = Device::named(device);
    if (DeviceMemory* const memory = found.backend().memory()) memory->finish();
    return found;
  }
};

nlohmann::json compiled(const Place& place) {
  place.opened();
  const auto begin = std::chrono::steady_clock::now();
  const Session session = place.open();
  const Executable executable = session.compile(decoder());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const CompileCounters counters = session.counters();
  return {{"seconds", seconds}, {"compiled", counters.kernels_compiled}, {"from_disk", counters.kernels_from_disk}};
}

/// Kernels that LLVM compiles for lengths that come after the first.
nlohmann::json compiled_for_new_lengths(const Place& place) {
  const Session session = place.open();
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

/// Written by a process that compiles.
nlohmann::json saved(const std::filesystem::path& file, const Place& place) {
  const Executable executable = place.open().compile(decoder(narrow));
  ProgramFile::save(file, std::span(&executable, 1));
  return {{"bytes", std::filesystem::file_size(file)}};
}

/// From opening the file to the first result, and how much of it is opening.
nlohmann::json loaded(const std::filesystem::path& file, const Place& place) {
  const Device device = place.opened();
  const auto params = bench::shared_params(decoder(narrow));
  const std::vector<std::int32_t> numbers(3, 1);
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  Executable executable = ProgramFile::load(file, device, {.threads = place.threads, .cache_folder = place.cache});
  const double opened = passed();
  executable.set_params(params);
  executable.run({{"ids", numbers}, {"positions", numbers}});
  return {{"seconds", passed()}, {"opened", opened}};
}

void keep_fastest(nlohmann::json& best, const nlohmann::json& next) {
  if (best.is_null() || next["seconds"] < best["seconds"]) best = next;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Time to compile a decoder of 24 layers: with an empty cache, from disk, and for a new length");
  bench::Options options;
  Place place;
  bench::add_options(app, options, argc, argv);
  app.add_option("--device", place.device, "A name that 'rlx devices' lists")->capture_default_str();
  for (const char* unused : {"--serve", "--seconds"}) app.remove_option(app.get_option(unused));
  return bench::run_command(app, argc, argv, [&] {
    place.threads = options.threads;
    place.cache = std::filesystem::temp_directory_path() / fmt::format("rlx_bench_compile_{}", getpid());
    const std::filesystem::path file = place.cache.string() + ".rlxp";
    nlohmann::json cold, disk, from_file;
    for (int round = 0; round < options.rounds; ++round) {
      std::filesystem::remove_all(place.cache);
      keep_fastest(cold, bench::in_new_process([&] { return compiled(place); }));
      keep_fastest(disk, bench::in_new_process([&] { return compiled(place); }));
    }
    const nlohmann::json written = bench::in_new_process([&] { return saved(file, place); });
    for (int round = 0; round < options.rounds; ++round)
      keep_fastest(from_file, bench::in_new_process([&] { return loaded(file, place); }));
    const nlohmann::json lengths = bench::in_new_process([&] { return compiled_for_new_lengths(place); });
    std::filesystem::remove_all(place.cache);
    std::filesystem::remove(file);
    for (const auto& [name, about] : {std::pair("empty", &cold), std::pair("from disk", &disk)}) {
      fmt::print("{:<10} {:>8.1f} ms, {} kernels compiled, {} from disk\n", name, 1e3 * (*about)["seconds"].get<double>(),
                 (*about)["compiled"].get<int>(), (*about)["from_disk"].get<int>());
    }
    fmt::print("program file of {} bytes: {:.1f} ms until it is open, {:.1f} ms until the first result\n",
               written["bytes"].get<std::int64_t>(), 1e3 * from_file["opened"].get<double>(), 1e3 * from_file["seconds"].get<double>());
    fmt::print("new length: {} kernels compiled\n", lengths["kernels"].get<int>());
    bench::write_json(options, {{"command", options.command},
                                {"device", place.device},
                                {"cpu", cpu::describe(cpu::cpu_features(), cpu::cpu_level())},
                                {"threads", options.threads},
                                {"layers", layers},
                                {"width", wide.width},
                                {"empty", cold},
                                {"disk", disk},
                                {"program_file", from_file},
                                {"compiled_for_new_lengths", lengths["kernels"]}});
  });
}
