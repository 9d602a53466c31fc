#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/names.h"
#include "text/template/functions.h"
#include "text/template/python_operations.h"
#include "text/template/python_text.h"
#include "text/template/renderer.h"

namespace rlx::jinja {
namespace {

bool compared(Renderer& run, std::string_view op, const Value& a, const Value& b) {
  if (op == "==") return equal(run, a, b);
  if (op == "!=") return !equal(run, a, b);
  if (op == "in") return contains(run, b, a);
  if (op == "not in") return !contains(run, b, a);
  if (op == "<") return less(run, a, b);
  if (op == ">") return less(run, b, a);
  // Not the other order's opposite: neither holds where one is NaN.
  return (op == "<=" ? less(run, a, b) : less(run, b, a)) || equal(run, a, b);
}

}  // namespace

bool Renderer::test(const Expression& condition) { return truth(evaluate(condition)); }

Value Renderer::evaluate(const Expression& expression) {
  const Level level(*this);
  count_steps(1);
  const int line = std::exchange(line_, expression.line > 0 ? expression.line : line_);
  Value value = evaluate_node(expression);
  line_ = line;
  return value;
}

std::vector<Value> Renderer::evaluate_all(std::span<const Expression> expressions) {
  std::vector<Value> values;
  for (const Expression& expression : expressions) values.push_back(evaluate(expression));
  return values;
}

Value Renderer::evaluate_node(const Expression& expression) {
  using Kind = Expression::Kind;
  const std::vector<Expression>& parts = expression.operands;
  switch (expression.kind) {
    case Kind::constant: return expression.value;
    case Kind::name: return name_value(expression.name);
    case Kind::list: return list(evaluate_all(parts));
    case Kind::tuple: return tuple(evaluate_all(parts));
    case Kind::dict: return evaluate_dict(expression);
    case Kind::attribute: return attribute_of(*this, evaluate(parts[0]), expression.name);
    case Kind::item: {
      const Value owner = evaluate(parts[0]);
      return item_of(*this, owner, evaluate(parts[1]));
    }
    case Kind::slice: return evaluate_slice(expression);
    case Kind::call: {
      const Value callee = evaluate(parts[0]);
      return call(callee, evaluate_arguments(expression.arguments));
    }
    case Kind::filter: {
      const Value operand = evaluate(parts[0]);
      return apply_filter(expression.name, operand, evaluate_arguments(expression.arguments));
    }
    case Kind::test: {
      const Value operand = evaluate(parts[0]);
      return apply_test(expression.name, operand, evaluate_arguments(expression.arguments));
    }
    case Kind::unary: return unary(*this, expression.name, evaluate(parts[0]));
    case Kind::binary: {
      const Value left = evaluate(parts[0]);
      return binary(*this, expression.name, left, evaluate(parts[1]));
    }
    case Kind::compare: return evaluate_compare(expression);
    case Kind::logical_and: {
      const Value left = evaluate(parts[0]);
      return truth(left) ? evaluate(parts[1]) : left;
    }
    case Kind::logical_or: {
      const Value left = evaluate(parts[0]);
      return truth(left) ? left : evaluate(parts[1]);
    }
    case Kind::logical_not: return !test(parts[0]);
    case Kind::concatenation: return evaluate_concatenation(expression);
    case Kind::conditional:
      if (test(parts[0])) return evaluate(parts[1]);
      return parts.size() > 2 ? evaluate(parts[2]) : undefined("an inline 'if' was false and has no 'else'");
  }
  fail_internal("template: an expression of kind {}", static_cast<int>(expression.kind));
}

Value Renderer::evaluate_dict(const Expression& expression) {
  Dict* dict = memory_.dict();
  for (std::size_t i = 0; i < expression.operands.size(); i += 2) {
    const Value key = evaluate(expression.operands[i]);
    insert(*this, *dict, key, evaluate(expression.operands[i + 1]));
  }
  return dict;
}

Value Renderer::evaluate_slice(const Expression& expression) {
  const std::vector<Value> parts = evaluate_all(expression.operands);
  return slice_of(*this, parts[0], parts[1], parts[2], parts[3]);
}

Value Renderer::evaluate_compare(const Expression& expression) {
  Value left = evaluate(expression.operands[0]);
  for (std::size_t i = 0; i < expression.names.size(); ++i) {
    const Value right = evaluate(expression.operands[i + 1]);
    if (!compared(*this, expression.names[i], left, right)) return false;
    left = right;
  }
  return true;
}

Value Renderer::evaluate_concatenation(const Expression& expression) {
  std::string text;
  for (const Value& part : evaluate_all(expression.operands)) {
    const std::string_view piece = text_of(*this, part);
    memory_.charge(piece.size());
    text += piece;
  }
  return string(std::move(text));
}

Arguments Renderer::evaluate_arguments(std::span<const Argument> arguments) {
  Arguments given;
  const auto name_it = [&](std::string_view name, const Value& value) {
    for (const auto& [other, unused] : given.named)
      if (other == name) refuse("argument {} is given twice", quote_name(name));
    given.named.emplace_back(name, value);
  };
  for (const Argument& argument : arguments) {
    const Value value = evaluate(argument.value);
    if (argument.kind == Argument::Kind::positional) {
      given.positional.push_back(value);
    } else if (argument.kind == Argument::Kind::named) {
      name_it(argument.name, value);
    } else if (argument.kind == Argument::Kind::list) {
      for (const Value& item : items_of(*this, value)) given.positional.push_back(item);
    } else {
      if (!value.is<Dict*>()) refuse("'**' before a value of type {} (allowed: dict)", type_name(value));
      for (const auto& [key, item] : value.as<Dict*>()->entries) {
        if (!key.is<std::string_view>()) refuse("'**' before a dict with a key of type {} (allowed: str)", type_name(key));
        name_it(key.as<std::string_view>(), item);
      }
    }
  }
  return given;
}

Value Renderer::name_value(std::string_view name) {
  if (const Value* found = scope_->find(name)) return *found;
  if (const Function* found = find_global(name)) return memory_.object<Callable>(*found);
  return undefined(fmt::format("{} is undefined", quote_name(name)));
}

Value Renderer::call(const Value& callee, const Arguments& arguments) {
  if (callee.is<Undefined>()) refuse("{}", callee.as<Undefined>().why);
  if (!callee.is<Object*>() || !callee.as<Object*>()->callable()) refuse("a value of type {} cannot be called", type_name(callee));
  return callee.as<Object*>()->call(*this, arguments);
}

Value Renderer::apply_filter(std::string_view name, const Value& value, const Arguments& arguments) {
  const Function* filter = find_filter(name);
  if (!filter) refuse("there is no filter {}{}", quote_name(name), near_hint(name, filter_names()));
  Arguments all = arguments;
  all.positional.insert(all.positional.begin(), value);
  return call_function(*this, *filter, all);
}

bool Renderer::apply_test(std::string_view name, const Value& value, const Arguments& arguments) {
  const Function* function = find_test(name);
  if (!function) refuse("there is no test {}{}", quote_name(name), near_hint(name, test_names()));
  Arguments all = arguments;
  all.positional.insert(all.positional.begin(), value);
  return truth(call_function(*this, *function, all));
}

}  // namespace rlx::jinja
