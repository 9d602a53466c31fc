#include "runtime/prepared.h"

#include <algorithm>

#include "base/progress.h"

namespace rlx {

Prepared::Prepared(const PreparedPart& part) : arrays(part.values.size()), panels(part.steps) { complete = missing(part).empty(); }

Prepared::Prepared(const PreparedPart& part, const Prepared& before, const std::set<std::size_t>& changed)
    : arrays(part.values.size()), panels(part.steps) {
  const auto is_same = [&](const std::set<std::size_t>& inputs) {
    return std::none_of(inputs.begin(), inputs.end(), [&](std::size_t input) { return changed.count(input) > 0; });
  };
  for (std::size_t i = 0; i < part.values.size(); ++i)
    if (is_same(part.values[i].inputs)) arrays[i] = before.arrays[i];
  for (const PackedProduct& product : part.products)
    if (is_same(product.inputs)) panels[product.step] = before.panels[product.step];
  complete = missing(part).empty();
}

std::vector<const PreparedLaunch*> Prepared::missing(const PreparedPart& part) const {
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

void Prepared::drop_unread(const PreparedPart& part) {
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (!is_read(part.values[i])) arrays[i].reset();
}

bool Prepared::is_read(const PreparedValue& value) const {
  return value.kept || std::any_of(value.packs.begin(), value.packs.end(), [&](std::size_t product) { return !panels[product]; });
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

std::shared_ptr<const Prepared> BoundParameters::add(const PreparedPart& part, FunctionRef<void(Prepared&)> change) {
  const std::scoped_lock lock(mutex_);
  const auto next = std::make_shared<Prepared>(*prepared_);
  change(*next);
  next->drop_unread(part);
  prepared_ = next;
  return next;
}

}  // namespace rlx
