#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/template/value.h"

/// The syntax tree of a template.
namespace rlx::jinja {

struct Argument;

struct Expression {
  enum class Kind : std::uint8_t {
    constant,     // value
    name,         // name
    list,         // operands
    tuple,        // operands
    dict,         // key, value, key, value...
    attribute,    // operand.name
    item,         // operand[operand]
    slice,        // operand[operand:operand:operand], where missing parts are constants of no value (none)
    call,         // operand(arguments)
    filter,       // operand|name(arguments); without operand in a filter block
    test,         // operand is name(arguments)
    unary,        // name operand
    binary,       // operand name operand
    compare,      // operand op operand op operand..., ops in `names`
    logical_and,  // operand and operand
    logical_or,
    logical_not,
    concatenation,  // operand ~ operand...
    conditional,    // operands: condition, then, perhaps else
  };
  Kind kind = Kind::constant;
  int line = 0;
  int depth = 1;  // levels of nested expressions, itself included
  Value value;
  std::string_view name;
  std::vector<std::string_view> names;
  std::vector<Expression> operands;
  std::vector<Argument> arguments;
};

struct Argument {
  enum class Kind : std::uint8_t { positional, named, list, dict };  // list: *x, dict: **x
  Kind kind = Kind::positional;
  std::string_view name;
  Expression value;
};

/// A name, an attribute of a namespace, or several of them.
struct Target {
  enum class Kind : std::uint8_t { name, attribute, tuple };
  Kind kind = Kind::name;
  int line = 0;
  std::string_view name, attribute;
  std::vector<Target> parts;
};

struct Statement;
using Block = std::vector<Statement>;

struct Parameter {
  std::string_view name;
  std::vector<Expression> initial;  // one or none
};

struct Text {
  std::string_view text;
};
struct Output {
  Expression value;
};
struct Set {
  Target target;
  Expression value;
};
/// {% set x | filter %}...{% endset %}: `filters` is what the text goes through, or none.
struct SetBlock {
  Target target;
  std::vector<Expression> filters;
  Block body;
};
struct If {
  std::vector<std::pair<Expression, Block>> branches;
  Block otherwise;
};
struct For {
  Target target;
  Expression iterable;
  std::vector<Expression> condition;  // one or none
  bool recursive = false;
  Block body, otherwise;
};
/// Also the body of a call block, which is a macro named `caller`.
struct MacroDefinition {
  std::string_view name;
  std::vector<Parameter> parameters;
  Block body;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
};
struct CallBlock {
  Expression call;
  MacroDefinition caller;
};
struct FilterBlock {
  Expression filter;
  Block body;
};
struct With {
  std::vector<std::pair<Target, Expression>> variables;
  Block body;
};
/// {% generation %}: what the assistant says, which training wants to know; here it is only a scope.
struct Generation {
  Block body;
};
struct LoopControl {
  bool ends_loop = false;  // break, else continue
};

struct Statement {
  int line = 0;
  std::variant<Text, Output, Set, SetBlock, If, For, MacroDefinition, CallBlock, FilterBlock, With, Generation, LoopControl> what;
};

/// A parsed template. `strings` holds what its nodes refer to.
struct Syntax {
  std::string name;
  std::deque<std::string> strings;
  Block body;
};

/// Throws Error "{name}: line 3: ..." that says what was seen and what is allowed.
std::unique_ptr<const Syntax> parse(std::string_view source, std::string name);

}  // namespace rlx::jinja
