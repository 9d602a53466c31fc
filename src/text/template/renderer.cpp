#include "text/template/renderer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/names.h"
#include "text/template/functions.h"
#include "text/template/loop.h"
#include "text/template/python_operations.h"
#include "text/template/python_text.h"

namespace rlx::jinja {

/// Another place to write to and another scope, until it ends.
class Renderer::Inner {
 public:
  Inner(Renderer& run, Scope* parent, std::string* out)
      : run_(run), scope_(std::exchange(run.scope_, run.open_scope(parent))), out_(std::exchange(run.out_, out)) {}
  ~Inner() {
    run_.close_scope(std::exchange(run_.scope_, scope_));
    run_.out_ = out_;
  }
  Inner(const Inner&) = delete;
  Inner& operator=(const Inner&) = delete;

 private:
  Renderer& run_;
  Scope* scope_;
  std::string* out_;
};

namespace {

/// A macro, with the scope that it was defined in.
class Macro : public Object {
 public:
  Macro(const MacroDefinition& definition, Scope* home) : definition_(definition), home_(home) {}
  std::string_view type_name() const override { return "macro"; }
  bool callable() const override { return true; }
  std::optional<Value> attribute(Renderer& /*run*/, std::string_view name) const override {
    if (name != "name") return std::nullopt;
    return definition_.name;
  }
  Value call(Renderer& run, const Arguments& arguments) const override { return run.string(run.run_macro(definition_, home_, arguments)); }

 private:
  const MacroDefinition& definition_;
  Scope* home_;
};

}  // namespace

void Scope::set(std::string_view name, const Value& value) {
  const auto found = std::find_if(variables.begin(), variables.end(), [&](const auto& variable) { return variable.first == name; });
  if (found != variables.end()) found->second = value;
  else variables.emplace_back(name, value);
}

const Value* Scope::find(std::string_view name) const {
  const auto found = std::find_if(variables.begin(), variables.end(), [&](const auto& variable) { return variable.first == name; });
  if (found != variables.end()) return &found->second;
  return parent ? parent->find(name) : nullptr;
}

Renderer::Level::Level(Renderer& run) : run_(run) {
  if (run_.depth_ >= run_.options_.limits.depth) run_.refuse("nested more than {} deep while rendering", run_.options_.limits.depth);
  ++run_.depth_;
}

Renderer::Renderer(const Syntax& syntax, const RenderOptions& options)
    : syntax_(syntax), options_(options), memory_(options.limits.memory_bytes, syntax.name) {}

void Renderer::count_steps(std::int64_t steps) {
  steps_ += steps;
  if (steps_ > options_.limits.steps) refuse("the template takes more than {} steps", options_.limits.steps);
}

std::string Renderer::render() {
  std::string out;
  out_ = &out;
  execute(syntax_.body);
  return out;
}

void Renderer::write(std::string_view text) {
  written_ += text.size();
  if (written_ > options_.limits.output_bytes) refuse("the template writes more than {} bytes", options_.limits.output_bytes);
  *out_ += text;
}

Scope* Renderer::open_scope(Scope* parent) {
  Scope* scope = nullptr;
  if (free_scopes_.empty()) {
    memory_.charge(sizeof(Scope) + 128);
    scope = &scopes_.emplace_back();
  } else {
    scope = free_scopes_.back();
    free_scopes_.pop_back();
  }
  scope->parent = parent;
  return scope;
}

/// A scope that no macro looks into serves again. What a macro looks into, it does through the parents as well.
void Renderer::close_scope(Scope* scope) {
  if (scope->captured) {
    if (scope->parent) scope->parent->captured = true;
    return;
  }
  scope->variables.clear();
  free_scopes_.push_back(scope);
}

Renderer::LoopFlow Renderer::execute(const Block& block) {
  const Level level(*this);
  for (const Statement& statement : block) {
    count_steps(1);
    line_ = statement.line;
    const LoopFlow flow = std::visit([&](const auto& node) { return execute(node); }, statement.what);
    if (flow != LoopFlow::next) return flow;
  }
  return LoopFlow::next;
}

Renderer::LoopFlow Renderer::execute(const Text& node) { return write(node.text), LoopFlow::next; }

Renderer::LoopFlow Renderer::execute(const Output& node) { return write(text_of(*this, evaluate(node.value))), LoopFlow::next; }

Renderer::LoopFlow Renderer::execute(const LoopControl& node) { return node.ends_loop ? LoopFlow::ends_loop : LoopFlow::ends_round; }

Renderer::LoopFlow Renderer::execute(const Set& node) { return assign(node.target, evaluate(node.value)), LoopFlow::next; }

/// The text of a block that has variables of its own.
std::string Renderer::text_of_block(const Block& block) {
  std::string text;
  const Inner inner(*this, scope_, &text);
  execute(block);
  return text;
}

Renderer::LoopFlow Renderer::execute(const SetBlock& node) {
  Value text = string(text_of_block(node.body));
  for (const Expression& filter : node.filters) text = filtered(filter, text);
  return assign(node.target, text), LoopFlow::next;
}

Renderer::LoopFlow Renderer::execute(const FilterBlock& node) {
  const Value text = string(text_of_block(node.body));
  return write(text_of(*this, filtered(node.filter, text))), LoopFlow::next;
}

/// Applies a chain of filters whose innermost operand is left open.
Value Renderer::filtered(const Expression& filter, const Value& value) {
  if (filter.kind != Expression::Kind::filter) return value;
  const Value operand = filtered(filter.operands[0], value);
  line_ = filter.line;
  return apply_filter(filter.name, operand, evaluate_arguments(filter.arguments));
}

Renderer::LoopFlow Renderer::execute(const If& node) {
  for (const auto& [condition, body] : node.branches)
    if (test(condition)) return execute(body);
  return execute(node.otherwise);
}

Renderer::LoopFlow Renderer::execute(const With& node) {
  std::vector<Value> values;
  for (const auto& [target, expression] : node.variables) values.push_back(evaluate(expression));
  const Inner inner(*this, scope_, out_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(node.variables[i].first, values[i]);
  return execute(node.body);
}

Renderer::LoopFlow Renderer::execute(const Generation& node) {
  const Inner inner(*this, scope_, out_);
  return execute(node.body);
}

Renderer::LoopFlow Renderer::execute(const MacroDefinition& node) {
  scope_->captured = true;
  scope_->set(node.name, memory_.object<Macro>(node, scope_));
  return LoopFlow::next;
}

Renderer::LoopFlow Renderer::execute(const CallBlock& node) {
  scope_->captured = true;
  const Value callee = evaluate(node.call.operands[0]);
  Arguments arguments = evaluate_arguments(node.call.arguments);
  arguments.named.emplace_back("caller", memory_.object<Macro>(node.caller, scope_));
  return write(text_of(*this, call(callee, arguments))), LoopFlow::next;
}

Renderer::LoopFlow Renderer::execute(const For& node) {
  loop_rounds(node, evaluate(node.iterable), scope_, 0);
  return LoopFlow::next;
}

std::string Renderer::run_loop(const For& loop, const Value& iterable, Scope* home, int depth) {
  std::string text;
  const Inner inner(*this, home, &text);
  loop_rounds(loop, iterable, home, depth);
  return text;
}

void Renderer::loop_rounds(const For& loop, const Value& iterable, Scope* home, int depth) {
  LoopItems items(items_of(*this, iterable));
  if (!loop.condition.empty())
    items.keep_if([&, home](const Value& item) {
      const Inner inner(*this, home, out_);
      assign(loop.target, item);
      return test(loop.condition[0]);
    });
  Loop* state = memory_.object<Loop>(std::move(items), loop, home, depth);
  bool finished_a_round = false;  // only a round that no `continue` or `break` cut short keeps `else` away
  while (state->advance()) {
    count_steps(1);
    const Inner inner(*this, home, out_);
    assign(loop.target, state->item());
    scope_->set("loop", state);
    const LoopFlow flow = execute(loop.body);
    if (flow == LoopFlow::ends_loop) break;
    finished_a_round |= flow == LoopFlow::next;
  }
  if (finished_a_round) return;
  const Inner inner(*this, home, out_);
  execute(loop.otherwise);
}

void Renderer::assign(const Target& target, const Value& value) {
  line_ = target.line;
  if (target.kind == Target::Kind::name) return scope_->set(target.name, value);
  if (target.kind == Target::Kind::tuple) {
    const std::vector<Value> values = items_of(*this, value);
    if (values.size() != target.parts.size()) refuse("{} values for {} variables", values.size(), target.parts.size());
    for (std::size_t i = 0; i < values.size(); ++i) assign(target.parts[i], values[i]);
    return;
  }
  const Value owner = name_value(target.name);
  auto* space = owner.is<Object*>() ? dynamic_cast<Namespace*>(owner.as<Object*>()) : nullptr;
  if (!space) refuse("cannot assign to {}.{}: it is no namespace", target.name, target.attribute);
  if (target.attribute.starts_with('_'))
    refuse("an attribute of a namespace may not begin with '_' (seen: {})", quote_name(target.attribute));
  insert(*this, space->values(), target.attribute, value);
}

std::string Renderer::run_macro(const MacroDefinition& macro, Scope* home, const Arguments& arguments) {
  const Level level(*this);
  const int line = line_;
  std::string text;
  {
    const Inner inner(*this, home, &text);
    bind_parameters(macro, arguments);
    execute(macro.body);
  }
  line_ = line;
  return text;
}

void Renderer::bind_parameters(const MacroDefinition& macro, const Arguments& arguments) {
  Arguments rest = arguments;
  const auto take_named = [&](std::string_view name) -> std::optional<Value> {
    const auto found = std::find_if(rest.named.begin(), rest.named.end(), [&](const auto& argument) { return argument.first == name; });
    if (found == rest.named.end()) return std::nullopt;
    const Value value = found->second;
    rest.named.erase(found);
    return value;
  };
  std::size_t used = 0;
  for (const Parameter& parameter : macro.parameters) {
    if (used < rest.positional.size()) scope_->set(parameter.name, rest.positional[used++]);
    else if (const auto given = take_named(parameter.name)) scope_->set(parameter.name, *given);
    else if (!parameter.initial.empty()) scope_->set(parameter.name, evaluate(parameter.initial[0]));
    else scope_->set(parameter.name, undefined(fmt::format("parameter {} was not given", quote_name(parameter.name))));
  }
  const bool own_caller =
      std::any_of(macro.parameters.begin(), macro.parameters.end(), [](const Parameter& parameter) { return parameter.name == "caller"; });
  if (macro.uses_caller && !own_caller)
    scope_->set("caller", take_named("caller").value_or(undefined("the macro was not called by a call block")));
  if (macro.uses_kwargs) {
    Dict* named = memory_.dict();
    for (const auto& [name, value] : rest.named) insert(*this, *named, name, value);
    scope_->set("kwargs", named);
  } else if (!rest.named.empty()) {
    refuse("macro {} has no parameter {}", quote_name(macro.name), quote_name(rest.named.front().first));
  }
  std::vector<Value> superfluous(rest.positional.begin() + static_cast<std::ptrdiff_t>(used), rest.positional.end());
  if (macro.uses_varargs) scope_->set("varargs", tuple(std::move(superfluous)));
  else if (!superfluous.empty()) refuse("macro {} takes at most {} arguments", quote_name(macro.name), macro.parameters.size());
}

}  // namespace rlx::jinja
