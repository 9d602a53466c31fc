// The k largest elements of lines, without sorting the others: what is above the least of the best k so far is collected, and thinned out
// when there is too much of it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "backends/cpu/routines/elements.h"
#include "backends/cpu/routines/ranks.h"
#include "backends/cpu/routines/routine.h"
#include "ir/op.h"
#include "ops/axis_lines.h"
#include "ops/reduction/recurrence.h"

namespace rlx::cpu {
namespace {

template <class Bits>
struct Candidate {
  Bits rank;
  std::int32_t at;
  /// The larger comes first; of equal ones the earlier.
  bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : at < other.at; }
};

/// True unless none of the elements is larger than `least`, which is no NaN. Comparing vectors takes subnormal numbers for zeros, which
/// ranks do not.
template <std::int64_t n, class E>
bool may_be_larger(const E* x, E least) {
  using Number = std::conditional_t<is_narrow_float<E>, float, E>;
  using Vector = typename Side<Number>::Vector;
  if constexpr (std::is_floating_point_v<Number>)
    if (std::abs(static_cast<Number>(least)) < std::numeric_limits<Number>::min()) return true;
  const Vector limit = static_cast<Number>(least) - Vector{};
  decltype(limit <= Vector{}) none = ~decltype(limit <= Vector{}){};
  for (std::int64_t i = 0; i < n; i += Side<Number>::lanes) {
    if constexpr (is_narrow_float<E>) none &= four_floats(x + i) <= limit;
    else none &= *reinterpret_cast<const Vector*>(x + i) <= limit;
  }
  const auto parts = reinterpret_cast<Units32x4>(none);
  return (parts[0] & parts[1] & parts[2] & parts[3]) != ~0U;
}

/// The best k of what was added in the order of their places.
template <class Bits>
class Best {
 public:
  static std::int64_t room(std::int64_t k) { return 2 * k + 64; }
  Best(Candidate<Bits>* memory, std::int64_t k) : all_(memory), k_(k) {}

  void add(Bits rank, std::int64_t at) {
    if (is_full_ && rank <= all_[k_ - 1].rank) return;  // equal ones come later than those that are there
    all_[count_++] = {rank, static_cast<std::int32_t>(at)};
    if (count_ == room(k_)) keep_best();
  }
  /// The least of the best k at some time; null before there were more.
  const Candidate<Bits>* least() const { return is_full_ ? all_ + (k_ - 1) : nullptr; }
  /// The best, in any order.
  std::span<Candidate<Bits>> all() {
    keep_best();
    return {all_, static_cast<std::size_t>(count_)};
  }

 private:
  void keep_best() {
    if (count_ <= k_) return;
    std::nth_element(all_, all_ + (k_ - 1), all_ + count_);
    count_ = k_;
    is_full_ = true;
  }
  Candidate<Bits>* all_;
  std::int64_t k_, count_ = 0;
  bool is_full_ = false;
};

template <class E>
class TopK {
  using Bits = BitsOf<E>;

 public:
  explicit TopK(const RoutineCall& call)
      : call_(call),
        k_(std::get<std::int64_t>(call.attrs[0])),
        axis_(std::get<std::int64_t>(call.attrs[1])),
        from_(call.operands[0].shape, axis_),
        to_(call.results[0].shape, axis_),
        ranks_(call.operands[0].dtype, false) {}

  void run() const {
    if (k_ == 0 || from_.count == 0) return;
    constexpr std::int64_t shared_length = 1 << 15;
    const std::int64_t threads = call_.pool.size(), grain = std::max<std::int64_t>(1, 4096 / from_.length);
    const auto each = static_cast<std::size_t>(Best<Bits>::room(k_));
    auto* memory = reinterpret_cast<Candidate<Bits>*>(call_.scratch(static_cast<std::size_t>(threads) * each * sizeof(Candidate<Bits>)));
    const auto best_of = [&](std::int64_t i) { return Best<Bits>(memory + static_cast<std::size_t>(i) * each, k_); };
    if (from_.count < 2 * threads && from_.length >= shared_length) {
      for (std::int64_t line = 0; line < from_.count; ++line) run_shared(line, best_of);
      return;
    }
    call_.pool.parallel_for(from_.count, grain, [&](std::int64_t begin, std::int64_t end, int worker) {
      for (std::int64_t line = begin; line < end; ++line) {
        Best<Bits> best = best_of(worker);
        add(line, 0, from_.length, best);
        store(line, best.all());
      }
    });
  }

 private:
  void add(std::int64_t line, std::int64_t begin, std::int64_t end, Best<Bits>& best) const {
    constexpr std::int64_t group = 16;
    const Bits* x = call_.operands[0].as<const Bits>() + from_.begin(line);
    const E* elements = call_.operands[0].as<const E>() + from_.begin(line);
    for (std::int64_t i = begin; i < end; i += group) {
      if (const auto* least = best.least()) {
        if (least->rank == static_cast<Bits>(~Bits{0})) return;  // nothing is larger
        if (from_.stride == 1 && i + group <= end && !may_be_larger<group>(elements + i, elements[least->at])) continue;
      }
      for (std::int64_t k = i; k < std::min(end, i + group); ++k) best.add(ranks_(x[k * from_.stride]), k);
    }
  }

  /// Threads take parts of one line, of whose best the best are stored.
  template <class BestOf>
  void run_shared(std::int64_t line, const BestOf& best_of) const {
    const std::int64_t parts = call_.pool.size(), length = (from_.length + parts - 1) / parts;
    std::vector<std::span<Candidate<Bits>>> found(static_cast<std::size_t>(parts));
    call_.pool.parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t part = begin; part < end; ++part) {
        Best<Bits> best = best_of(part);
        add(line, std::min(from_.length, part * length), std::min(from_.length, (part + 1) * length), best);
        found[static_cast<std::size_t>(part)] = best.all();
      }
    });
    std::vector<Candidate<Bits>> all;
    for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
    std::nth_element(all.begin(), all.begin() + (k_ - 1), all.end());
    store(line, std::span(all).first(static_cast<std::size_t>(k_)));
  }

  void store(std::int64_t line, std::span<Candidate<Bits>> best) const {
    std::sort(best.begin(), best.end());
    const Bits* x = call_.operands[0].as<const Bits>() + from_.begin(line);
    std::int64_t to = to_.begin(line);
    for (const Candidate<Bits>& each : best) {
      call_.results[0].as<Bits>()[to] = x[each.at * from_.stride];
      call_.results[1].as<std::int32_t>()[to] = each.at;
      to += to_.stride;
    }
  }

  const RoutineCall& call_;
  const std::int64_t k_, axis_;
  const AxisLines from_, to_;
  const StoredRanks<Bits> ranks_;
};

void run(const RoutineCall& call) {
  with_ordered(call.operands[0].dtype, [&]<class E>(E*) { TopK<E>(call).run(); });
}

/// Where many are wanted, sorting all is faster.
bool takes(const Graph& graph, const Node& node) {
  constexpr std::int64_t least_share = 8;
  const auto k = std::get<std::int64_t>(node.attrs[0]), axis = std::get<std::int64_t>(node.attrs[1]);
  const Type& x = graph.type(node.operands[0]);
  return !is_packed(x.dtype) && k <= x.dim(axis).upper() / least_share;
}

const RegisterRoutine top_k_routine({.op = "top_k", .takes = takes, .run = run});

}  // namespace
}  // namespace rlx::cpu
