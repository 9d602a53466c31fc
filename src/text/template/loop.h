#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/syntax.h"
#include "text/template/value.h"

namespace rlx::jinja {

struct Scope;

/// What a loop goes over. A condition is asked when an item is looked at, not before: it may depend on what the body sets.
class LoopItems {
 public:
  explicit LoopItems(std::vector<Value> items) : items_(std::move(items)) {}
  void keep_if(std::function<bool(const Value&)> condition) { condition_ = std::move(condition); }

  /// The next item, which stays the next.
  std::optional<Value> peek();
  std::optional<Value> take();
  /// How many are left; asks the condition about all of them.
  std::size_t left();

 private:
  std::vector<Value> items_;
  std::function<bool(const Value&)> condition_;
  std::size_t at_ = 0, kept_ = 0;  // items before kept_ have passed the condition
};

/// The variable `loop`.
class Loop : public Object {
 public:
  Loop(LoopItems items, const For& node, Scope* home, int depth) : items_(std::move(items)), node_(node), home_(home), depth_(depth) {}

  /// Goes to the next item, if there is one.
  bool advance();
  const Value& item() const { return *item_; }

  std::string_view type_name() const override { return "loop"; }
  bool callable() const override { return true; }
  std::optional<Value> attribute(Renderer& run, std::string_view name) const override;
  Value call(Renderer& run, const Arguments& arguments) const override;

  Value cycle(Renderer& run, const std::vector<Value>& values) const;
  bool changed(Renderer& run, const std::vector<Value>& values);

 private:
  mutable LoopItems items_;  // looking ahead changes no answer
  const For& node_;
  Scope* home_;
  int depth_;
  std::int64_t index_ = -1;
  std::optional<Value> item_, before_;
  std::optional<std::vector<Value>> last_values_;
};

}  // namespace rlx::jinja
