#include "lowering/plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "base/checked.h"
#include "rlx/error.h"

namespace rlx {
namespace {

constexpr std::int64_t alignment = 64;

/// Sizes come from the bounds of a graph's symbols, which any file may hold.
std::int64_t sum(std::int64_t a, std::int64_t b) {
  const auto exact = checked_add(a, b);
  if (!exact) fail("memory: the scratch memory of the graph leaves the range of 64-bit integers");
  return *exact;
}

std::int64_t round_up(std::int64_t bytes) { return sum(bytes, alignment - 1) / alignment * alignment; }

/// Blocks chained by in-place reuse are one block with a longer life.
struct Sharing {
  std::int64_t bytes = 0;
  int first = std::numeric_limits<int>::max(), last = -1;
  std::int64_t offset = 0;
};

/// From where on, behind `end`, so many bytes are in one piece.
std::int64_t in_one_piece(std::int64_t end, std::int64_t bytes, std::int64_t piece) {
  const std::int64_t used = end % piece;
  return used > 0 && bytes > piece - used ? sum(end, piece - used) : end;
}

/// Offset of the smallest gap between the placed groups that overlap `group` in time.
std::int64_t best_gap(const Sharing& group, const std::vector<Sharing*>& placed, std::int64_t piece) {
  std::vector<const Sharing*> busy;
  for (const Sharing* other : placed)
    if (other->first <= group.last && group.first <= other->last) busy.push_back(other);
  std::sort(busy.begin(), busy.end(), [](const Sharing* a, const Sharing* b) { return a->offset < b->offset; });
  std::int64_t end = 0, best = -1, best_size = std::numeric_limits<std::int64_t>::max();
  for (const Sharing* other : busy) {
    const std::int64_t begin = in_one_piece(end, group.bytes, piece), gap = other->offset - begin;
    if (gap >= group.bytes && gap < best_size) best = begin, best_size = gap;
    end = std::max(end, sum(other->offset, other->bytes));
  }
  return best >= 0 ? best : in_one_piece(end, group.bytes, piece);
}

std::int64_t most_live(const std::vector<Sharing>& groups) {
  std::map<int, std::int64_t> changes;  // by step: bytes that begin to live less those that ended before
  for (const Sharing& group : groups) changes[group.first] += group.bytes, changes[group.last + 1] -= group.bytes;
  std::int64_t live = 0, most = 0;
  for (const auto& [step, change] : changes) most = std::max(most, live += change);
  return most;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<Lifetime>& blocks, std::int64_t piece) {
  std::vector<std::size_t> group_of(blocks.size());
  std::vector<Sharing> groups;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const int reuse = blocks[i].in_place_of;
    if (reuse >= 0) group_of[i] = group_of[static_cast<std::size_t>(reuse)];
    else group_of[i] = groups.size(), groups.emplace_back();
    Sharing& group = groups[group_of[i]];
    group.bytes = std::max(group.bytes, round_up(blocks[i].bytes));
    group.first = std::min(group.first, blocks[i].first);
    group.last = std::max(group.last, blocks[i].last);
  }
  std::vector<Sharing*> order;
  for (Sharing& group : groups) order.push_back(&group);
  std::stable_sort(order.begin(), order.end(), [](const Sharing* a, const Sharing* b) { return a->bytes > b->bytes; });
  MemoryPlan plan;
  plan.piece = piece;
  std::vector<Sharing*> placed;
  for (Sharing* group : order) {
    group->offset = best_gap(*group, placed, piece);
    placed.push_back(group);
    plan.bytes = std::max(plan.bytes, sum(group->offset, group->bytes));
    const auto chunk = static_cast<std::size_t>(group->offset / piece);
    plan.chunks.resize(std::max(plan.chunks.size(), chunk + 1));
    plan.chunks[chunk] = std::max(plan.chunks[chunk], group->offset % piece + group->bytes);
  }
  plan.live_bytes = most_live(groups);
  for (std::size_t i = 0; i < blocks.size(); ++i) plan.offsets.push_back(groups[group_of[i]].offset);
  return plan;
}

}  // namespace rlx
