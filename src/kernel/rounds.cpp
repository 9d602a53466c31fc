#include "kernel/schedule.h"

#include <algorithm>

namespace rlx {
namespace {

using Sum = std::vector<Rounds>;

void add(Sum& to, const Dim& size, double share) {
  const auto same = std::ranges::find(to, size, &Rounds::size);
  if (same == to.end()) to.push_back({size, share});
  else same->share += share;
}
void add_product(Sum& to, const Sum& a, const Sum& b) {
  for (const Rounds& x : a)
    for (const Rounds& y : b) add(to, x.size * y.size, x.share * y.share);
}

class Counter {
 public:
  explicit Counter(const Kernel& kernel) : kernel_(kernel) {}

  Sum of(const Block& block) {
    Sum all;
    for (const Statement& s : block) {
      if (s.kind == Statement::Kind::loop) add_loop(all, s);
      if (s.kind == Statement::Kind::runs) add_runs(all, s);
    }
    return all;
  }

 private:
  void add_loop(Sum& to, const Statement& s) {
    const auto run = runs_.find(s.variable);
    const Dim& steps = run == runs_.end() ? kernel_.extent(s.variable) : run->second;
    Sum inside = of(s.body);
    add(inside, 1, 1);
    add_product(to, {{steps}}, inside);
    add(to, 1, 1);
  }
  /// The rounds of a run are linear in its length, and all runs together are as long as the loop.
  void add_runs(Sum& to, const Statement& s) {
    const Sum runs = count(s);
    Sum once = of_run(s, 0);
    const Sum with_step = of_run(s, 1);
    const Dim& steps = kernel_.extent(s.variable);
    add_product(to, {{steps}}, with_step);
    add_product(to, {{steps, -1}}, once);
    add(once, 1, 1);
    add_product(to, runs, once);
    add(to, 1, 1);
  }
  Sum of_run(const Statement& s, const Dim& length) {
    runs_[s.variable] = length;
    Sum all = of(s.body);
    runs_.erase(s.variable);
    return all;
  }
  /// What is behind the whole runs is one more.
  Sum count(const Statement& s) const {
    const Dim& steps = kernel_.extent(s.variable);
    const int behind = s.whole > 0 && s.whole != s.steps ? 1 : 0;
    if (steps.is_static()) return {{(steps.value() + s.steps - 1) / s.steps + behind}};
    return {{steps, 1 / static_cast<double>(s.steps)}, {1 + behind}};
  }

  const Kernel& kernel_;
  std::map<int, Dim> runs_;  // by variable: the length of the run at hand
};

}  // namespace

std::vector<Rounds> rounds_of(const Kernel& kernel, const Block& block) { return Counter(kernel).of(block); }

}  // namespace rlx
