#include "reports/profile.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "base/files/file_writer.h"
#include "command.h"
#include "files/writable.h"
#include "reports/launch_report.h"
#include "reports/workload.h"
#include "rlx/error.h"

namespace rlx::command {

double Profile::seconds() const {
  double last = 0;
  for (const TraceEvent& event : events) last = std::max(last, event.end);
  return last;
}

double Profile::busy(int thread) const {
  double total = 0;
  for (const TraceEvent& event : events)
    if (event.thread == thread && event.whole == (thread == 0)) total += event.end - event.begin;
  return total;
}

std::string Profile::track(int thread) const { return device == "cpu" ? fmt::format("thread {}", thread) : device; }

namespace {

struct ProfileOptions {
  Workload work;
  CompileChoices compile;
  int repeats = 5;
  std::string trace, page;
  bool layers = false;
};

Profile make_profile(const ProfileOptions& options) {
  const LoadedWorkload work = load(options.work, options.compile);
  Profile profile;
  profile.graph = options.work.model.empty() ? options.work.graph : options.work.model;
  profile.device = work.session.device().name();
  profile.threads = profile.device == "cpu" ? work.session.threads() : 1;
  profile.launches = work.executable.profile(work.inputs, options.repeats);
  profile.events = work.executable.trace(work.inputs, options.repeats);
  profile.roofline = measure_roofline(work.session, profile.launches);
  warn_about_cache(work.session);
  return profile;
}

/// Launches that do the same taken together.
struct Line {
  std::string name, kind, pass;
  int count = 0;
  double seconds = 0, least = 0, by_memory = 0;  // by_memory: the part of `least` of launches that memory binds

  /// What allows no less than most of `least`.
  const char* bound() const { return by_memory > least / 2 ? "memory" : "compute"; }
};

std::vector<Line> lines_of(const Profile& profile, bool layers) {
  std::vector<Line> lines;
  std::map<std::array<std::string, 3>, std::size_t> known;
  for (const LaunchReport& launch : profile.launches) {
    if (is_prepared(launch)) continue;
    const std::string name = layers ? label(launch) : label_of_layers(launch);
    const auto [it, is_new] = known.emplace(std::array{name, launch.kind, launch.pass}, lines.size());
    if (is_new) lines.push_back({name, launch.kind, launch.pass});
    Line& line = lines[it->second];
    const double least = profile.roofline.seconds(launch);
    ++line.count, line.seconds += launch.seconds, line.least += least;
    if (profile.roofline.bound_by_memory(launch)) line.by_memory += least;
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.seconds > b.seconds; });
  return lines;
}

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

/// The time of each pass, where the graph has a derivative.
void print_passes(const std::vector<Line>& lines, double total) {
  std::map<std::string, double> passes;
  for (const Line& line : lines) passes[line.pass] += line.seconds;
  passes.erase("");
  for (const char* pass : {"forward", "backward", "update"})
    if (const auto found = passes.find(pass); found != passes.end())
      fmt::print("{}: {:.2f} us, {:.1f}%\n", pass, found->second * 1e6, share(found->second, total));
}

void print(const Profile& profile, bool layers) {
  const std::vector<Line> lines = lines_of(profile, layers);
  double total = 0;
  std::size_t width = 28, pass_width = 0;
  for (const Line& line : lines) {
    total += line.seconds;
    width = std::max(width, line.name.size()), pass_width = std::max(pass_width, line.pass.size());
  }
  fmt::print("{:<{}} {:<8} {:<{}} {:>6} {:>11} {:>6} {:>8}  {}\n", "launches of", width, "kind", pass_width > 0 ? "pass" : "", pass_width,
             "count", "us", "share", "reached", "bound");
  for (const Line& line : lines)
    fmt::print("{:<{}} {:<8} {:<{}} {:>6} {:>11.2f} {:>5.1f}% {:>7.0f}%  {}\n", line.name, width, line.kind, line.pass, pass_width,
               line.count, line.seconds * 1e6, share(line.seconds, total), share(line.least, line.seconds), line.bound());
  print_passes(lines, total);
  fmt::print("The fastest run: {}.", duration(profile.seconds()));
  for (int thread = 0; thread < profile.threads && profile.seconds() > 0; ++thread)
    fmt::print(" {} busy {:.0f}%.", profile.device == "cpu" ? fmt::format("Thread {}", thread) : profile.device,
               100 * profile.busy(thread) / profile.seconds());
  fmt::print("\n");
}

void write(const std::string& file, const std::string& text, std::string_view hint) {
  if (file.empty()) return;
  write_file(file, text);
  fmt::print("{}: {}\n", file, hint);
}

}  // namespace

void add_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  CLI::App* command =
      app.add_subcommand("profile", "Show where the time of a run goes: by kernel, by thread, and against the machine's limits");
  add_workload(*command, options->work);
  command->add_option("--trace", options->trace, "Write the timeline of the fastest run, for https://ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE.json");
  command->add_option("--html", options->page, "Write a page with a roofline chart and the timeline")->type_name("FILE.html");
  command->add_flag("--layers", options->layers, "A line for each layer with a number, not for all of them together");
  command->add_option("--repeats", options->repeats, "Runs that are timed, 1..1000; the fastest of each launch counts")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 1000).description(""));
  add_kernel_choices(*command, options->compile);
  add_tune(*command, options->compile);
  add_calibrated_precision(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer(
      "`reached` is the least time that the machine's arithmetic and memory allow, as a share of the time taken; what stays in caches can\n"
      "go beyond 100%. `bound` is which of the two takes longer; where little is reached, neither binds. In a graph with a derivative "
      "each\n"
      "launch belongs to the forward pass, to the backward pass, or to an update behind it.\n\n"
      "Examples:\n  rlx profile --model all-MiniLM-L6-v2 --size S=128 --html profile.html --trace profile.json\n"
      "  rlx profile --model model.gguf --prompt 512");
  command->callback([options] {
    for (const std::string& file : {options->trace, options->page})
      if (!file.empty()) check_writable(file);
    if (!options->page.empty() && options->page == options->trace) fail("{}: --trace and --html need a file each", options->page);
    const Profile profile = make_profile(*options);
    print(profile, options->layers);
    write(options->trace, trace_json(profile), "the timeline; open it in https://ui.perfetto.dev");
    write(options->page, profile_page(profile), "the page with charts; open it in a browser");
  });
}

}  // namespace rlx::command
