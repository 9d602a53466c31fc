#include "profile.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/file_writer.h"
#include "command.h"
#include "launch_report.h"
#include "rlx/error.h"
#include "work.h"
#include "writable.h"

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

namespace {

struct ProfileOptions {
  Work work;
  CompileChoices compile;
  int repeats = 5;
  std::string trace, page;
};

Profile make_profile(const ProfileOptions& options) {
  const LoadedWork work = load(options.work, options.compile);
  Profile profile;
  profile.graph = options.work.model.empty() ? options.work.graph : options.work.model;
  profile.threads = work.session.threads();
  profile.launches = work.executable.profile(work.inputs, options.repeats);
  profile.events = work.executable.trace(work.inputs, options.repeats);
  profile.roofline = measure_roofline(profile.threads, profile.launches);
  warn_about_cache(work.session);
  return profile;
}

/// Launches of one kernel taken together.
struct Line {
  std::string name, kind;
  int count = 0;
  double seconds = 0, least = 0;
};

std::vector<Line> lines_of(const Profile& profile) {
  std::vector<Line> lines;
  std::map<std::string, std::size_t> known;
  for (const LaunchReport& launch : profile.launches) {
    if (is_prepared(launch)) continue;
    const auto [it, is_new] = known.emplace(launch.name, lines.size());
    if (is_new) lines.push_back({launch.name, launch.kind});
    Line& line = lines[it->second];
    ++line.count, line.seconds += launch.seconds, line.least += profile.roofline.seconds(launch);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) { return a.seconds > b.seconds; });
  return lines;
}

void print(const Profile& profile) {
  const std::vector<Line> lines = lines_of(profile);
  double total = 0;
  for (const Line& line : lines) total += line.seconds;
  fmt::print("{:<28} {:<8} {:>6} {:>11} {:>6} {:>8}\n", "launches of", "kind", "count", "us", "share", "reached");
  for (const Line& line : lines)
    fmt::print("{:<28} {:<8} {:>6} {:>11.2f} {:>5.1f}% {:>7.0f}%\n", line.name, line.kind, line.count, line.seconds * 1e6,
               total > 0 ? 100 * line.seconds / total : 0, line.seconds > 0 ? 100 * line.least / line.seconds : 0);
  fmt::print("The fastest run: {:.3f} ms.", profile.seconds() * 1e3);
  for (int thread = 0; thread < profile.threads && profile.seconds() > 0; ++thread)
    fmt::print(" Thread {} busy {:.0f}%.", thread, 100 * profile.busy(thread) / profile.seconds());
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
  add_work(*command, options->work);
  command->add_option("--trace", options->trace, "Write the timeline of the fastest run, for https://ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE.json");
  command->add_option("--html", options->page, "Write a page with a roofline chart and the timeline")->type_name("FILE.html");
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
      "go beyond 100%.\n\nExample:\n  rlx profile --model all-MiniLM-L6-v2 --size S=128 --html profile.html --trace profile.json");
  command->callback([options] {
    for (const std::string& file : {options->trace, options->page})
      if (!file.empty()) check_writable(file);
    if (!options->page.empty() && options->page == options->trace) fail("{}: --trace and --html need a file each", options->page);
    const Profile profile = make_profile(*options);
    print(profile);
    write(options->trace, trace_json(profile), "the timeline; open it in https://ui.perfetto.dev");
    write(options->page, profile_page(profile), "the page with charts; open it in a browser");
  });
}

}  // namespace rlx::command
