#include "runtime/prepared.h"

#include <algorithm>

#include "base/progress.h"

namespace rlx {

Prepared::Prepared(const PreparedPart& part) : arrays(part.values.size()) { complete = missing(part).empty(); }

Prepared::Prepared(const PreparedPart& part, const Prepared& before, const std::set<std::size_t>& changed) : arrays(part.values.size()) {
  const auto is_same = [&](const std::set<std::size_t>& inputs) {
    return std::none_of(inputs.begin(), inputs.end(), [&](std::size_t input) { return changed.count(input) > 0; });
  };
  for (std::size_t i = 0; i < part.values.size(); ++i)
    if (is_same(part.values[i].inputs)) arrays[i] = before.arrays[i];
  complete = missing(part).empty();
}

std::vector<const PreparedLaunch*> Prepared::missing(const PreparedPart& part) const {
  std::vector<bool> wanted;
  for (const PreparedValue& value : part.values) wanted.push_back(value.kept);
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

void Prepared::drop_unread(const PreparedPart& part) {
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (!part.values[i].kept) arrays[i].reset();
}

std::shared_ptr<const Array> SharedValues::find(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto it = entries_.find(key);
  if (it == entries_.end()) return nullptr;
  const auto is_gone = [](const Source& source) { return source.owner.expired(); };
  return std::ranges::any_of(it->second.sources, is_gone) ? nullptr : it->second.value.lock();
}

void SharedValues::add(const std::string& key, const std::shared_ptr<const Array>& value, const std::vector<Array>& origins) {
  Entry entry{value, {}};
  for (const Array& origin : origins) entry.sources.push_back({address(origin), origin.owner()});
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_, [](const auto& known) { return known.second.value.expired(); });
  entries_[key] = std::move(entry);
}

void SharedValues::forget(const Array& origin) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(entries_, [&](const auto& entry) {
    return std::ranges::any_of(entry.second.sources, [&](const Source& source) { return source.bytes == address(origin); });
  });
}

std::shared_ptr<const Prepared> BoundParameters::prepared() const {
  const std::scoped_lock lock(mutex_);
  return prepared_;
}

std::vector<Array> BoundParameters::place(Storage& storage, const std::vector<bool>& wanted) {
  const std::scoped_lock lock(mutex_);
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (wanted[i] && address(arrays[i]) && !address(placed_[i])) missing.push_back(i);
  for (std::size_t done = 0; done < missing.size();) {
    placed_[missing[done]] = storage.put_shared(arrays[missing[done]]);
    report_progress("uploading", ++done, missing.size());
  }
  return placed_;
}

void BoundParameters::let_go_but(const std::vector<bool>& wanted) {
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < placed_.size(); ++i)
    if (!wanted[i]) placed_[i] = {};
}

std::vector<Array> BoundParameters::placed_but(const std::set<std::size_t>& changed) const {
  const std::scoped_lock lock(mutex_);
  std::vector<Array> rest = placed_;
  for (const std::size_t i : changed) rest[i] = {};
  return rest;
}

void BoundParameters::set(std::shared_ptr<const Prepared> prepared) {
  const std::scoped_lock lock(mutex_);
  prepared_ = std::move(prepared);
}

}  // namespace rlx
