#pragma once
#include <cstdint>
#include <ctime>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/error.h"
#include "text/template/syntax.h"
#include "text/template/template.h"
#include "text/template/value.h"

namespace rlx::jinja {

/// Variables of a block; what it lacks is looked for in its parent.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;
  bool captured = false;  // a macro was defined in it, and may look into it later

  void set(std::string_view name, const Value& value);
  const Value* find(std::string_view name) const;
};

/// One rendering: the tree walked with its variables, within limits.
class Renderer {
 public:
  Renderer(const Syntax& syntax, const RenderOptions& options);

  void define(std::string_view name, const Value& value) { root_.set(name, value); }
  std::string render();

  Memory& memory() { return memory_; }
  const std::tm& now() const { return options_.now; }
  /// Throws Error with the template's name and the line that is being rendered.
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    fail("{}: line {}: {}", syntax_.name, line_, fmt::format(text, std::forward<Args>(args)...));
  }
  /// Counts work: one for a node of the tree, and for every 64 bytes or elements that an operation looks at.
  void count_steps(std::int64_t steps);
  void count_scan(std::size_t size) { count_steps(static_cast<std::int64_t>(size / 64)); }

  Value string(std::string text) { return memory_.keep(std::move(text)); }
  Value list(std::vector<Value> items) { return memory_.sequence(Sequence::Kind::list, std::move(items)); }
  Value tuple(std::vector<Value> items) { return memory_.sequence(Sequence::Kind::tuple, std::move(items)); }
  Value iterator(std::vector<Value> items) { return memory_.sequence(Sequence::Kind::iterator, std::move(items)); }
  Value undefined(std::string why) { return Undefined{memory_.keep(std::move(why))}; }

  Value evaluate(const Expression& expression);
  bool test(const Expression& condition);
  Value call(const Value& callee, const Arguments& arguments);
  Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments);
  bool apply_test(std::string_view name, const Value& value, const Arguments& arguments);

  /// The text that a macro gives for arguments.
  std::string run_macro(const MacroDefinition& macro, Scope* home, const Arguments& arguments);
  /// The text of a loop over `iterable`, at `depth` loops that call themselves.
  std::string run_loop(const For& loop, const Value& iterable, Scope* home, int depth);

  /// A level of nesting while it lives. Throws Error beyond the limit.
  class Level {
   public:
    explicit Level(Renderer& run);
    ~Level() { --run_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Renderer& run_;
  };

 private:
  enum class LoopFlow : std::uint8_t { next, ends_round, ends_loop };
  class Inner;

  Value evaluate_node(const Expression& expression);
  Value evaluate_slice(const Expression& expression);
  Value evaluate_compare(const Expression& expression);
  Value evaluate_concatenation(const Expression& expression);
  Value evaluate_dict(const Expression& expression);
  std::vector<Value> evaluate_all(std::span<const Expression> expressions);
  Arguments evaluate_arguments(std::span<const Argument> arguments);
  Value name_value(std::string_view name);

  LoopFlow execute(const Block& block);
  LoopFlow execute(const Text& node);
  LoopFlow execute(const Output& node);
  LoopFlow execute(const Set& node);
  LoopFlow execute(const SetBlock& node);
  LoopFlow execute(const If& node);
  LoopFlow execute(const For& node);
  LoopFlow execute(const MacroDefinition& node);
  LoopFlow execute(const CallBlock& node);
  LoopFlow execute(const FilterBlock& node);
  LoopFlow execute(const With& node);
  LoopFlow execute(const Generation& node);
  LoopFlow execute(const LoopControl& node);

  void assign(const Target& target, const Value& value);
  void bind_parameters(const MacroDefinition& macro, const Arguments& arguments);
  void loop_rounds(const For& loop, const Value& iterable, Scope* home, int depth);
  std::string text_of_block(const Block& block);
  Value filtered(const Expression& filter, const Value& value);
  void write(std::string_view text);
  Scope* open_scope(Scope* parent);
  void close_scope(Scope* scope);

  const Syntax& syntax_;
  const RenderOptions& options_;
  Memory memory_;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  Scope root_;
  Scope* scope_ = &root_;
  std::string* out_ = nullptr;
  std::size_t written_ = 0;  // to the output and to texts that are kept
  std::int64_t steps_ = 0;
  int depth_ = 0;
  int line_ = 0;
};

}  // namespace rlx::jinja
