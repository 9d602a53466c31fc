#include "text/template/loop.h"

#include <algorithm>
#include <cstdint>

#include "text/template/functions.h"
#include "text/template/python_operations.h"
#include "text/template/renderer.h"

namespace rlx::jinja {
namespace {

Value cycle_method(Renderer& run, const Bound& arguments) {
  const auto& loop = static_cast<const Loop&>(*arguments[0]->as<Object*>());
  return loop.cycle(run, arguments[1]->as<Sequence*>()->items);
}

Value changed_method(Renderer& run, const Bound& arguments) {
  auto& loop = static_cast<Loop&>(*arguments[0]->as<Object*>());
  return loop.changed(run, arguments[1]->as<Sequence*>()->items);
}

constexpr Function cycle_function = {"cycle", "loop *", 1, cycle_method};
constexpr Function changed_function = {"changed", "loop *", 1, changed_method};

}  // namespace

std::optional<Value> LoopItems::peek() {
  if (at_ >= kept_) {
    while (at_ < items_.size() && condition_ && !condition_(items_[at_])) ++at_;
    kept_ = at_ + 1;
  }
  if (at_ >= items_.size()) return std::nullopt;
  return items_[at_];
}

std::optional<Value> LoopItems::take() {
  const auto next = peek();
  if (next) ++at_;
  return next;
}

std::size_t LoopItems::left() {
  const std::size_t first = std::max(at_, kept_);
  if (condition_ && first < items_.size()) {
    const auto begin = items_.begin() + static_cast<std::ptrdiff_t>(first);
    items_.erase(std::remove_if(begin, items_.end(), [&](const Value& item) { return !condition_(item); }), items_.end());
  }
  condition_ = nullptr;
  return items_.size() - std::min(at_, items_.size());
}

bool Loop::advance() {
  const auto next = items_.take();
  if (!next) return false;
  before_ = item_;
  item_ = next;
  ++index_;
  return true;
}

std::optional<Value> Loop::attribute(Renderer& run, std::string_view name) const {
  const auto number = [](std::int64_t value) { return Value(Integer{value}); };
  const auto left = [&] { return static_cast<std::int64_t>(items_.left()); };
  if (name == "index0") return number(index_);
  if (name == "index") return number(index_ + 1);
  if (name == "first") return index_ == 0;
  if (name == "last") return !items_.peek();
  if (name == "length") return number(left() + index_ + 1);
  if (name == "revindex0") return number(left());
  if (name == "revindex") return number(left() + 1);
  if (name == "depth0") return number(depth_);
  if (name == "depth") return number(depth_ + 1);
  if (name == "previtem") return before_ ? *before_ : run.undefined("there is no item before the first");
  if (name == "nextitem") return items_.peek().value_or(run.undefined("there is no item after the last"));
  if (name == "cycle" || name == "changed")
    return run.memory().object<Callable>(name == "cycle" ? cycle_function : changed_function, Value(const_cast<Loop*>(this)));
  return std::nullopt;
}

Value Loop::call(Renderer& run, const Arguments& arguments) const {
  if (!node_.recursive) run.refuse("a loop calls itself, but is not marked 'recursive'");
  if (arguments.positional.size() != 1 || !arguments.named.empty()) run.refuse("a loop is called with what it goes over, and nothing else");
  return run.string(run.run_loop(node_, arguments.positional[0], home_, depth_ + 1));
}

Value Loop::cycle(Renderer& run, const std::vector<Value>& values) const {
  if (values.empty()) run.refuse("loop.cycle needs values");
  return values[static_cast<std::size_t>(index_) % values.size()];
}

bool Loop::changed(Renderer& run, const std::vector<Value>& values) {
  const bool same = last_values_ && std::equal(values.begin(), values.end(), last_values_->begin(), last_values_->end(),
                                               [&](const Value& a, const Value& b) { return equal(run, a, b); });
  last_values_ = values;
  return !same;
}

}  // namespace rlx::jinja
