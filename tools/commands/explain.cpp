#include <algorithm>
#include <memory>
#include <optional>

#include "command.h"
#include "formats/json/json.h"
#include "options/compile_choices.h"
#include "reports/launch_report.h"
#include "reports/workload.h"
#include "rlx/session.h"

namespace rlx::command {
namespace {

struct ExplainOptions {
  Workload work;
  int repeats = 5;
  CompileChoices compile;
  bool no_time = false, json = false;
};

struct Report {
  std::vector<NodeReport> nodes;
  std::vector<LaunchReport> launches;
  std::optional<cpu::Roofline> roofline;  // nothing where no time was measured
  int threads = 0;
  std::string machine;
  MemoryNeed memory;
  std::int64_t live_bytes = 0;
  std::vector<DeviceEstimate> estimates;  // with --device auto
};

Report make_report(const ExplainOptions& options) {
  const LoadedWorkload work = load(options.work, options.compile);
  const int threads = work.session.threads();
  const std::string device = work.session.device().name();
  const std::vector<LaunchReport> launches = work.executable.profile(work.inputs, options.no_time ? 0 : options.repeats);
  Report report{work.executable.explain(),  // behind the runs, of which devices have something to say
                launches,
                std::nullopt,
                threads,
                device == "cpu" ? fmt::format("This machine on {} threads", threads) : device,
                work.memory,
                work.executable.live_bytes(),
                work.session.estimates()};
  warn_about_cache(work.session);
  if (!options.no_time) report.roofline = measure_roofline(work.session, report.launches);
  return report;
}

void print_nodes(const std::vector<NodeReport>& nodes) {
  std::size_t width = 24;
  for (const NodeReport& node : nodes) width = std::max(width, node.by.size());
  fmt::print("{:<11} {:<{}} {}\n", "how", "by", width, "node");
  for (const NodeReport& node : nodes) fmt::print("{:<11} {:<{}} {}\n", node.how, node.by, width, node.text);
}

void print_launch(const LaunchReport& launch, const std::optional<cpu::Roofline>& roofline, std::size_t width) {
  fmt::print("{:<{}} {:<8} {:>9} {:>9}", label(launch), width, launch.kind, with_unit(launch.bytes, "B"), with_unit(launch.flops));
  if (roofline && is_prepared(launch)) {
    fmt::print("{:41}", "");
  } else if (roofline) {
    const double least = roofline->seconds(launch);
    fmt::print(" {:>11.2f} {:>11.2f} {:>6.0f}%  {:<7}", launch.seconds * 1e6, least * 1e6, roofline->percent_reached(launch),
               roofline->bound_by_memory(launch) ? "memory" : "compute");
  }
  fmt::print("  {}\n", launch.types);
}

void print_launches(const Report& report) {
  std::size_t width = 24;
  for (const LaunchReport& launch : report.launches) width = std::max(width, label(launch).size());
  fmt::print("\n{:<{}} {:<8} {:>9} {:>9}", "launch", width, "kind", "bytes", "flops");
  if (report.roofline) fmt::print(" {:>11} {:>11} {:>7}  {:<7}", "us", "least us", "reached", "bound");
  fmt::print("  writes\n");
  double seconds = 0, least = 0, flops = 0, bytes = 0;
  std::size_t prepared = 0;
  for (const LaunchReport& launch : report.launches) {
    print_launch(launch, report.roofline, width);
    if (is_prepared(launch)) {
      ++prepared;
      continue;
    }
    seconds += launch.seconds, flops += launch.flops, bytes += launch.bytes;
    if (report.roofline) least += report.roofline->seconds(launch);
  }
  fmt::print("{} launches, {}, {}", report.launches.size() - prepared, with_unit(bytes, "B"), with_unit(flops, "flops"));
  if (prepared > 0) fmt::print(" in each run, and {} once", prepared);
  if (report.roofline) {
    fmt::print(", {:.2f} us where {:.2f} are possible\n", seconds * 1e6, least * 1e6);
    fmt::print("{}: ", report.machine);
    for (const auto& [arithmetic, rate] : report.roofline->flops)
      fmt::print("{:.1f} GFLOP/s of {} multiply-adds, ", rate / 1e9, arithmetic);
    fmt::print("{:.1f} GB/s from memory. What stays in caches can go beyond 100%.", report.roofline->bytes / 1e9);
  }
  fmt::print("\n");
}

/// What was chosen by time, where that was asked for.
void print_blocks(const Report& report) {
  for (const LaunchReport& launch : report.launches)
    if (!launch.blocks.empty()) fmt::print("tuned: {}  {}  {}\n", label(launch), launch.types, launch.blocks);
}

/// What launches need beside the arena, one after the other.
std::size_t most_scratch(const Report& report) {
  std::size_t most = 0;
  for (const LaunchReport& launch : report.launches) most = std::max(most, launch.scratch_bytes);
  return most;
}

void print_memory(const Report& report) {
  const auto bytes = [](std::int64_t count) { return with_unit(static_cast<double>(count), "B"); };
  fmt::print("{} in all: parameters {}, states {}, and activations.\n", bytes(report.memory.all()), bytes(report.memory.parameters),
             bytes(report.memory.states));
  fmt::print("Activations take {} at the bounds of the symbols, where {} live at one time", bytes(report.memory.scratch),
             bytes(report.live_bytes));
  if (report.roofline)
    fmt::print("; launches need at most {} more, for all threads", with_unit(static_cast<double>(most_scratch(report)), "B"));
  fmt::print(".\n");
}

/// Why it is this device, where that was left to us.
void print_estimates(const std::vector<DeviceEstimate>& estimates) {
  if (estimates.empty()) return;
  fmt::print("{:<11} {:>11} {:>11} {:>11} {:>11} {:>12}  {}\n", "device", "expected us", "launches", "compute", "memory", "transfers",
             "bound");
  for (const DeviceEstimate& one : estimates) {
    if (one.refused.empty())
      fmt::print("{:<11} {:>11.2f} {:>11.2f} {:>11.2f} {:>11.2f} {:>12.2f}  {}\n", one.device, one.seconds * 1e6, one.launches * 1e6,
                 one.computing * 1e6, one.memory * 1e6, one.transfers * 1e6, one.bound());
    else fmt::print("{:<11} {}\n", one.device, one.refused);
  }
  fmt::print("\n");
}

json::Value json_of(const DeviceEstimate& one) {
  if (!one.refused.empty()) return {{"device", one.device}, {"refused", one.refused}};
  return {{"device", one.device},       {"seconds", one.seconds}, {"launches", one.launches},
          {"computing", one.computing}, {"memory", one.memory},   {"transfers", one.transfers}};
}

json::Value json_of(const LaunchReport& launch, const std::optional<cpu::Roofline>& roofline) {
  json::Value one{
      {"name", launch.name},    {"layer", launch.layer},           {"ops", launch.ops},     {"pass", launch.pass},  {"kind", launch.kind},
      {"writes", launch.types}, {"arithmetic", launch.arithmetic}, {"bytes", launch.bytes}, {"flops", launch.flops}};
  if (roofline && !is_prepared(launch)) {
    one["seconds"] = launch.seconds;
    one["least_seconds"] = roofline->seconds(launch);
  }
  if (!launch.blocks.empty()) one["blocks"] = launch.blocks;
  return one;
}

void print_json(const Report& report) {
  json::Value all;
  all["nodes"] = json::Value::array();
  for (const NodeReport& node : report.nodes) all["nodes"].push_back({{"node", node.text}, {"how", node.how}, {"by", node.by}});
  all["launches"] = json::Value::array();
  for (const LaunchReport& launch : report.launches) all["launches"].push_back(json_of(launch, report.roofline));
  for (const DeviceEstimate& one : report.estimates) all["devices"].push_back(json_of(one));
  all["threads"] = report.threads;
  all["memory"] = {{"parameter_bytes", report.memory.parameters},
                   {"state_bytes", report.memory.states},
                   {"arena_bytes", report.memory.scratch},
                   {"live_bytes", report.live_bytes}};
  if (report.roofline) all["memory"]["scratch_bytes"] = most_scratch(report);
  if (report.roofline) all["machine"] = {{"flops_per_second", report.roofline->flops}, {"bytes_per_second", report.roofline->bytes}};
  fmt::print("{}\n", all.dump(2));
}

void explain(const ExplainOptions& options) {
  const Report report = make_report(options);
  if (options.json) return print_json(report);
  print_estimates(report.estimates);
  print_nodes(report.nodes);
  print_launches(report);
  print_blocks(report);
  print_memory(report);
}

}  // namespace

void add_explain(CLI::App& app) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app.add_subcommand("explain", "Say how each node of a graph is computed, and what each kernel costs");
  add_workload(*command, options->work);
  CLI::Option* repeats =
      command->add_option("--repeats", options->repeats, "Runs that are timed, 1..1000; the fastest of each launch counts")
          ->capture_default_str()
          ->type_name("N")
          ->check(CLI::Range(1, 1000).description(""));
  CLI::Option* no_time = command->add_flag("--no-time", options->no_time, "Bytes and flops only: nothing is run")->excludes(repeats);
  add_kernel_choices(*command, options->compile);
  add_tune(*command, options->compile)->excludes(no_time);
  add_calibrated_precision(*command, options->compile);
  command->add_flag("--json", options->json, "One JSON object: nodes, launches, threads, memory, machine, and devices with --device auto");
  add_threads(*command, options->compile);
  command->footer(
      "A node is decomposed (into the nodes that its body lists), claimed (computed by a hand-written kernel), generated (written by a "
      "kernel\n"
      "of its own), fused (part of another kernel), a view (no computation), a constant, prepared (computed once, from parameters alone),\n"
      "control (it runs the regions listed under it), or host (with --no-claims: by the reference loops). With --precision, each product "
      "of\n"
      "f32 has a line in front that says what it is computed in, or why it stays f32.\n\n"
      "Examples:\n  rlx explain --model all-MiniLM-L6-v2 --size S=64\n  rlx explain --model model.gguf --tokens 1000");
  command->callback([options] { explain(*options); });
}

}  // namespace rlx::command
