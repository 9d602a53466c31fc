#include "models/run/sampling/candidates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "rlx/error.h"

namespace rlx::sampling {
namespace {

bool is_likelier(const Candidate& a, const Candidate& b) { return a.score > b.score || (a.score == b.score && a.id < b.id); }

/// The first `count` in order. A heap serves few of many, which is what vocabularies ask for.
template <class Before>
void sort_first(std::vector<Candidate>& items, std::size_t begin, std::size_t count, Before before) {
  constexpr std::size_t few = 1024;
  const auto first = items.begin() + static_cast<std::ptrdiff_t>(begin), middle = first + static_cast<std::ptrdiff_t>(count);
  if (count <= few) return std::partial_sort(first, middle, items.end(), before);
  if (middle != items.end()) std::nth_element(first, middle, items.end(), before);
  std::sort(first, middle, before);
}

double weight(const Candidate& candidate, float highest) { return std::exp(static_cast<double>(candidate.score) - highest); }

}  // namespace

Candidates::Candidates(std::span<const float> scores) {
  items_.reserve(scores.size());
  for (std::size_t id = 0; id < scores.size(); ++id)
    if (scores[id] != -std::numeric_limits<float>::infinity()) items_.push_back({static_cast<std::int32_t>(id), scores[id]});
  if (items_.empty()) fail("sampling: every one of {} tokens is excluded", scores.size());
}

Candidate Candidates::best() const { return *std::min_element(items_.begin(), items_.end(), is_likelier); }

void Candidates::keep_top(std::size_t count) {
  if (count >= items_.size()) return;
  sort_first(items_, 0, count, is_likelier);
  items_.resize(count);
  by_id_ = false;
}

double Candidates::mass_above(float highest) const {
  double sum = 0;
  for (const Candidate& candidate : items_) sum += weight(candidate, highest);
  return sum;
}

void Candidates::keep_until(const std::function<bool(const Candidate&, const Candidate&)>& before,
                            const std::function<bool(const Candidate&)>& enough) {
  by_id_ = false;
  std::size_t chunk = 256;
  for (std::size_t begin = 0; begin < items_.size(); chunk *= 4) {
    const std::size_t end = std::min(begin + chunk, items_.size());
    sort_first(items_, begin, end - begin, before);
    for (; begin < end; ++begin) {
      if (!enough(items_[begin])) continue;
      items_.resize(begin + 1);
      return;
    }
  }
}

void Candidates::keep_mass(double mass) {
  const float highest = best().score;
  const double wanted = mass * mass_above(highest);
  double sum = 0;
  keep_until(is_likelier, [&](const Candidate& candidate) { return (sum += weight(candidate, highest)) >= wanted; });
}

void Candidates::keep_ratio(double ratio) {
  const double least = best().score + std::log(ratio);
  std::erase_if(items_, [&](const Candidate& candidate) { return candidate.score < least; });
}

void Candidates::keep_typical(double mass) {
  const float highest = best().score;
  const double total = mass_above(highest), expected = entropy();
  const auto distance = [&](const Candidate& candidate) {
    return std::abs(std::log(total) - (static_cast<double>(candidate.score) - highest) - expected);
  };
  const auto before = [&](const Candidate& a, const Candidate& b) {
    const double left = distance(a), right = distance(b);
    return left < right || (left == right && is_likelier(a, b));
  };
  double sum = 0;
  keep_until(before, [&](const Candidate& candidate) { return (sum += weight(candidate, highest)) >= mass * total; });
}

void Candidates::drop_top(double threshold) {
  const float highest = best().score;
  const double least = threshold * mass_above(highest);
  const auto is_top = [&](const Candidate& candidate) { return weight(candidate, highest) >= least; };
  std::vector<Candidate> top;
  std::copy_if(items_.begin(), items_.end(), std::back_inserter(top), is_top);
  if (top.size() < 2) return;
  const Candidate kept = *std::max_element(top.begin(), top.end(), is_likelier);
  std::erase_if(items_, [&](const Candidate& candidate) { return is_top(candidate) && candidate.id != kept.id; });
}

void Candidates::keep_surprise(double bits) {
  const Candidate first = best();
  const double least = std::exp2(-bits) * mass_above(first.score);
  std::erase_if(items_, [&](const Candidate& candidate) { return candidate.id != first.id && weight(candidate, first.score) < least; });
}

void Candidates::divide(double temperature) {
  const float highest = best().score;  // differences stay finite at any temperature
  for (Candidate& candidate : items_) candidate.score = static_cast<float>((static_cast<double>(candidate.score) - highest) / temperature);
}

double Candidates::entropy() const {
  const float highest = best().score;
  double sum = 0, weighted = 0;
  for (const Candidate& candidate : items_) {
    const double own = weight(candidate, highest);
    sum += own;
    if (own > 0) weighted += own * (static_cast<double>(candidate.score) - highest);
  }
  return std::log(sum) - weighted / sum;
}

std::vector<double> Candidates::probabilities() const {
  const float highest = best().score;
  const double total = mass_above(highest);
  std::vector<double> out;
  for (const Candidate& candidate : items_) out.push_back(weight(candidate, highest) / total);
  return out;
}

std::vector<double> Candidates::top_probabilities(std::size_t count) {
  const float highest = best().score;
  const double total = mass_above(highest);
  count = std::min(count, items_.size());
  sort_first(items_, 0, count, is_likelier);
  by_id_ = false;
  std::vector<double> out;
  for (const Candidate& candidate : std::span(items_).first(count)) out.push_back(weight(candidate, highest) / total);
  return out;
}

void Candidates::sort_by_id() {
  if (!by_id_) std::sort(items_.begin(), items_.end(), [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  by_id_ = true;
}

std::size_t Candidates::draw(double unit) {
  sort_by_id();
  const float highest = best().score;
  const double wanted = unit * mass_above(highest);
  double sum = 0;
  std::size_t last = 0;  // that has any probability, for sums that rounding leaves short
  for (std::size_t i = 0; i < items_.size(); ++i) {
    const double own = weight(items_[i], highest);
    sum += own;
    if (own > 0) last = i;
    if (own > 0 && sum > wanted) return i;
  }
  return last;
}

}  // namespace rlx::sampling
