// The page of `rlx profile`: charts as SVG, so that it needs no script and no other file.
#include <algorithm>
#include <cmath>

#include "reports/launch_report.h"
#include "reports/profile.h"

namespace rlx::command {
namespace {

constexpr double width = 1000, height = 460, margin = 100;  // of the charts, with room for a label on each side

std::string escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string_view colour(std::string_view kind) {
  if (kind == "claim") return "#2b6cb0";
  if (kind == "kernel") return "#dd6b20";
  return "#805ad5";
}

std::string title_of(const LaunchReport& launch, const cpu::Roofline& roofline) {
  return fmt::format("{}: {:.2f} us, {} of {}, {}, {:.0f}% of the roof&#10;{}", escaped(label(launch)), launch.seconds * 1e6,
                     with_unit(launch.flops, "flops"), launch.arithmetic, with_unit(launch.bytes, "B"), roofline.percent_reached(launch),
                     escaped(launch.types));
}

/// Logarithmic axes: a flop for each byte to the right, flops in a second upwards.
class RooflineChart {
 public:
  explicit RooflineChart(const Profile& profile) : profile_(profile) {
    for (const auto& [arithmetic, flops] : profile.roofline.flops)
      highest_ = std::max(highest_, 2 * flops), lowest_ = std::min(lowest_, flops);
    for (const LaunchReport& launch : profile.launches) {
      if (!is_point(launch)) continue;
      least_ = std::min(least_, launch.flops / launch.bytes / 2), most_ = std::max(most_, 2 * launch.flops / launch.bytes);
      lowest_ = std::min(lowest_, launch.flops / launch.seconds / 2), highest_ = std::max(highest_, 2 * launch.flops / launch.seconds);
    }
    lowest_ = std::min(lowest_, least_ * profile.roofline.bytes);
  }

  std::string svg() const {
    std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"roofline\">\n", width, height);
    out += grid();
    for (const LaunchReport& launch : profile_.launches)
      if (is_point(launch)) out += point(launch);
    for (const auto& [arithmetic, flops] : profile_.roofline.flops) out += roof(arithmetic, flops);  // labels lie above what they name
    return out + "</svg>\n";
  }

 private:
  static bool is_point(const LaunchReport& launch) { return launch.seconds > 0 && launch.flops > 0 && launch.bytes > 0; }

  double x(double intensity) const { return margin + (width - 2 * margin) * std::log(intensity / least_) / std::log(most_ / least_); }
  double y(double flops) const {
    return height - margin / 2 - (height - margin) * std::log(flops / lowest_) / std::log(highest_ / lowest_);
  }

  std::string grid() const {
    std::string out;
    for (double flops = std::pow(10, std::ceil(std::log10(lowest_))); flops < highest_; flops *= 10)
      out += fmt::format("<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", margin,
                         y(flops), width - margin, margin - 6, y(flops) + 4, with_unit(flops, "FLOP/s"));
    for (double intensity = std::pow(10, std::ceil(std::log10(least_))); intensity < most_; intensity *= 10)
      out += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1}V{2}\"/><text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4:g}</text>\n",
                         x(intensity), margin / 2, height - margin / 2, height - margin / 2 + 18, intensity);
    return out + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">flops for each byte</text>\n", width / 2, height - 8);
  }

  /// Memory up to the balance of the arithmetic, its peak from there on.
  std::string roof(const std::string& arithmetic, double flops) const {
    const double balance = std::clamp(flops / profile_.roofline.bytes, least_, most_);
    return fmt::format(
        "<path class=\"roof\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{} {}</text>\n",
        x(least_), y(least_ * profile_.roofline.bytes), x(balance), y(balance * profile_.roofline.bytes), width - margin, width - margin,
        y(flops) - 6, arithmetic, with_unit(flops, "FLOP/s"));
  }

  std::string point(const LaunchReport& launch) const {
    const double share = launch.seconds / profile_.seconds();
    return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"><title>{}</title></circle>\n",
                       x(launch.flops / launch.bytes), y(launch.flops / launch.seconds), 3 + 30 * std::sqrt(std::min(share, 1.0)),
                       colour(launch.kind), title_of(launch, profile_.roofline));
  }

  const Profile& profile_;
  double least_ = 0.25, most_ = 16, lowest_ = INFINITY, highest_ = 0;
};

std::string timeline(const Profile& profile) {
  constexpr double row = 34;
  const double scale = (width - margin) / profile.seconds();
  std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"timeline\">\n", width, row * profile.threads);
  for (int thread = 0; thread < profile.threads; ++thread)
    out += fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", row * thread + 20, profile.track(thread));
  for (const TraceEvent& event : profile.events) {
    if (event.thread == 0 && !event.whole) continue;  // lies within the launch
    const LaunchReport& launch = profile.launches[event.launch];
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>{}: {:.2f} us from {:.2f}</title></rect>\n",
        margin + event.begin * scale, row * event.thread + 4, std::max((event.end - event.begin) * scale, 0.2), row - 8,
        colour(launch.kind), escaped(label(launch)), (event.end - event.begin) * 1e6, event.begin * 1e6);
  }
  return out + "</svg>\n";
}

std::string table(const Profile& profile) {
  std::string out = "<table><tr><th>launch<th>kind<th>pass<th>us<th>least us<th>of the roof<th>bound by<th>flops<th>bytes<th>writes</tr>\n";
  for (const LaunchReport& launch : profile.launches) {
    if (is_prepared(launch)) continue;
    out += fmt::format("<tr><td>{}<td>{}<td>{}<td>{:.2f}<td>{:.2f}<td>{:.0f}%<td>{}<td>{}<td>{}<td>{}</tr>\n", escaped(label(launch)),
                       launch.kind, launch.pass, launch.seconds * 1e6, profile.roofline.seconds(launch) * 1e6,
                       profile.roofline.percent_reached(launch), profile.roofline.bound_by_memory(launch) ? "memory" : "compute",
                       with_unit(launch.flops), with_unit(launch.bytes, "B"), escaped(launch.types));
  }
  return out + "</table>\n";
}

constexpr std::string_view style =
    "body{font:14px sans-serif;max-width:1040px;margin:2em auto;padding:0 1em}svg{width:100%;min-width:720px;font-size:14px}"
    "text{fill:#222;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".grid{stroke:#ddd}.roof{stroke:#333;stroke-width:2;fill:none}circle{fill-opacity:.6}rect{stroke:#fff;stroke-width:.2}"
    "table{border-collapse:collapse;font-size:12px}td,th{padding:2px 8px;text-align:left;border-bottom:1px solid #eee}";

}  // namespace

std::string profile_page(const Profile& profile) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title><style>{1}</style>\n<h1>{0}</h1>\n"
      "<p>The fastest run: {2} on {3} threads. <span style=\"color:{4}\">claims</span>, <span style=\"color:{5}\">generated "
      "kernels</span>, "
      "<span style=\"color:{6}\">others</span>.</p>\n"
      "<h2>Roofline</h2>\n<p>A circle is a launch, its area the time it takes; under the line is what it leaves unused. What stays in "
      "caches "
      "can lie above the slope, which is that of memory ({7}). Launches without arithmetic are in the table only.</p>\n{8}"
      "<h2>Timeline</h2>\n{9}<h2>Launches</h2>\n{10}</html>\n",
      escaped(profile.graph), style, duration(profile.seconds()), profile.threads, colour("claim"), colour("kernel"), colour("host"),
      with_unit(profile.roofline.bytes, "B/s"), RooflineChart(profile).svg(), timeline(profile), table(profile));
}

}  // namespace rlx::command
