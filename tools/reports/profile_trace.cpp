#include "formats/json/json.h"
#include "reports/launch_report.h"
#include "reports/profile.h"

namespace rlx::command {
namespace {

json::Value named(std::string_view what, int thread, const std::string& name) {
  return {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", thread}, {"args", {{"name", name}}}};
}

json::Value slice(const TraceEvent& event, const LaunchReport& launch) {
  json::Value one{{"name", event.whole ? label(launch) : label(launch) + " share"},
                  {"cat", launch.kind},
                  {"ph", "X"},
                  {"pid", 1},
                  {"tid", event.thread},
                  {"ts", event.begin * 1e6},
                  {"dur", (event.end - event.begin) * 1e6}};
  if (event.whole)
    one["args"] = {{"launch", event.launch}, {"pass", launch.pass},   {"kernel", launch.name},
                   {"writes", launch.types}, {"flops", launch.flops}, {"bytes", launch.bytes}};
  return one;
}

}  // namespace

std::string trace_json(const Profile& profile) {
  json::Value events = json::Value::array();
  events.push_back(named("process_name", 0, "rlx: " + profile.graph));
  for (int thread = 0; thread < profile.threads; ++thread) events.push_back(named("thread_name", thread, profile.track(thread)));
  for (const TraceEvent& event : profile.events) events.push_back(slice(event, profile.launches[event.launch]));
  return json::Value{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ns"}}.dump(-1, ' ', false,
                                                                                         json::Value::error_handler_t::replace) +
         "\n";
}

}  // namespace rlx::command
