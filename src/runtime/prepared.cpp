#include "runtime/prepared.h"

#include <algorithm>

#include "passes/run_invariant.h"

namespace rlx {

std::vector<bool> prepared_launches(const cpu::Program& program) {
  const std::vector<bool> invariant = run_invariant_nodes(program.graph);
  std::vector<bool> prepared;
  for (const cpu::Launch& launch : program.launches)
    prepared.push_back(
        std::all_of(launch.writes.begin(), launch.writes.end(), [&](ValueId v) { return invariant[static_cast<std::size_t>(v.node)]; }));
  return prepared;
}

Preparation::Preparation(const PreparedPart& part, Preparation& before, const std::set<std::size_t>& changed) : arrays(part.values.size()) {
  const std::scoped_lock lock(before.mutex);
  for (std::size_t i = 0; i < part.values.size(); ++i) {
    const PreparedValue& value = part.values[i];
    const auto has_changed = [&](std::size_t input) { return changed.count(input) > 0; };
    if (std::any_of(value.inputs.begin(), value.inputs.end(), has_changed)) continue;
    arrays[i] = before.arrays[i];
    for (const cpu::Step* product : value.packs)
      if (auto it = before.panels.find(product); it != before.panels.end()) panels.insert(*it);
  }
}

bool Preparation::is_read(const PreparedValue& value) const {
  return value.kept ||
         std::any_of(value.packs.begin(), value.packs.end(), [&](const cpu::Step* product) { return !panels.count(product); });
}

std::vector<const PreparedLaunch*> Preparation::missing(const PreparedPart& part) const {
  std::vector<bool> wanted;
  for (const PreparedValue& value : part.values) wanted.push_back(is_read(value));
  std::vector<const PreparedLaunch*> launches;
  for (std::size_t i = part.launches.size(); i-- > 0;) {
    const PreparedLaunch& launch = part.launches[i];
    if (std::none_of(launch.writes.begin(), launch.writes.end(), [&](std::size_t v) { return wanted[v] && !arrays[v]; })) continue;
    launches.push_back(&launch);
    for (std::size_t read : launch.reads) wanted[read] = true;
  }
  std::reverse(launches.begin(), launches.end());
  return launches;
}

void Preparation::drop_unread(const PreparedPart& part) {
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (!is_read(part.values[i])) arrays[i].reset();
}

}  // namespace rlx
