#include "text/template/value.h"

#include "base/checked.h"
#include "rlx/error.h"
#include "text/template/python_operations.h"
#include "text/template/renderer.h"

namespace rlx::jinja {

std::optional<Value> Object::attribute(Renderer& /*run*/, std::string_view /*name*/) const { return std::nullopt; }

Value Object::call(Renderer& run, const Arguments& /*arguments*/) const { run.refuse("a {} cannot be called", type_name()); }

std::optional<Value> Namespace::attribute(Renderer& run, std::string_view name) const {
  const Value* found = find(run, *values_, name);
  return found ? std::optional(*found) : std::nullopt;
}

void Memory::charge(std::size_t bytes) {
  const auto sum = checked_add(made_, bytes);
  if (!sum || *sum > limit_) fail("{}: the template makes more than {} bytes of values", owner_, limit_);
  made_ = *sum;
}

std::string_view Memory::keep(std::string text) {
  charge(text.size() + sizeof(std::string));
  return strings_.emplace_back(std::move(text));
}

Sequence* Memory::sequence(Sequence::Kind kind, std::vector<Value> items, std::string_view title) {
  charge(items.size() * sizeof(Value) + sizeof(Sequence));
  return &sequences_.emplace_back(Sequence{kind, std::move(items), 0, title});
}

Dict* Memory::dict() {
  charge(sizeof(Dict));
  return &dicts_.emplace_back();
}

}  // namespace rlx::jinja
