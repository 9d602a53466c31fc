#pragma once
#include <string>

#include "emit/printer.h"

namespace rlx {

/// What languages whose blocks are in braces write alike, C's family and WGSL.
class BracesPrinter : public KernelPrinter {
 protected:
  using KernelPrinter::KernelPrinter;

  virtual ScalarText& scalars() = 0;
  std::string type_name(DType t) { return scalars().type_name(t); }
  /// How a constant and a counter are declared; one of two values, and an index that is not below 0 nor above `last`.
  virtual std::string constant(const std::string& type, const std::string& name) const = 0;
  virtual std::string counter(const std::string& name) = 0;
  virtual std::string chosen(const std::string& condition, const std::string& then, const std::string& otherwise) const = 0;
  virtual std::string inside(const std::string& index, const std::string& last) const = 0;
  virtual std::string load(ExprId id, const Expr& e) = 0;

  void line(const std::string& text) { body_ += std::string(2 * depth_, ' ') + text + "\n"; }
  void block(const std::string& head, const std::function<void()>& body) {
    line(head + " {");
    ++depth_;
    body();
    --depth_;
    line("}");
  }
  std::string assign(const std::string& type, const std::string& expression) {
    std::string name = fmt::format("t{}", ++temporaries_);
    line(constant(type, name) + " = " + expression + ";");
    return name;
  }
  std::string assign(DType t, const std::string& expression) { return assign(type_name(t), expression); }

  std::string size_op(SizeOp op, const std::string& a, const std::string& b) override {
    constexpr std::string_view signs = "+*/%/%-";
    return fmt::format("({} {} {})", a, signs[static_cast<std::size_t>(op)], b);
  }
  std::string test(Guard::Kind kind, const std::string& index) override { return index + (kind == Guard::Kind::zero ? " == 0" : " >= 0"); }
  std::string both(const std::string& a, const std::string& b) override { return a + " && " + b; }
  void loop(const std::string& low, const std::string& high, int step, const LoopBody& body) override {
    const std::string i = fmt::format("i{}", ++loops_);
    block(fmt::format("for ({4} = {1}; {0} < {2}; {0} += {3})", i, low, high, step, counter(i)), [&] { body(i); });
  }
  using KernelPrinter::lane_loop;
  void lane_loop(const std::string& low, const std::string& high, int /*lanes*/, const LoopBody& body) override {
    loop(low, high, 1, body);
  }

  /// The index of a load. Where its guard fails that is somewhere inside: the value is thrown away.
  std::string index_of(ExprId id, const Expr& e) {
    const auto guarded = scheduled_.guarded_loads.find(id);
    if (guarded == scheduled_.guarded_loads.end()) return index(e.index);
    const Index& part = guarded->second;
    const std::string low = assign(index_type(), index(e.index - part)), last = dim(e.last - *part.upper());
    return sum(inside(low, last), index(part));
  }
  std::string expression(ExprId id, const Expr& e) {
    std::vector<ScalarText::Operand> args;
    for (ExprId arg : e.args) args.push_back({value(arg), kernel_.expr(arg).dtype});
    switch (e.kind) {
      case Expr::Kind::load: return load(id, e);
      case Expr::Kind::scalar: return scalars().emit(e.op, args, e.dtype);
      case Expr::Kind::fma: return scalars().fma(args[0].value, args[1].value, args[2].value, e.dtype);
      case Expr::Kind::position: return scalars().emit(ScalarOp::cast, {{index(e.index), index_type()}}, e.dtype);
      case Expr::Kind::choose: return chosen(guards(e.guards), args[0].value, args[1].value);
      default: fail_internal("emit: expression {} has no value of its own", id);
    }
  }

  std::string literal(const Expr& constant) override { return scalars().literal(constant); }
  void set_variable(const Kept& kept, const std::string& lane, const std::string& value) override {
    line(variable(kept, lane) + " = " + value + ";");
  }
  std::string variable(const Kept& kept, const std::string& lane) override {
    return lane.empty() ? kept.name() : fmt::format("{}[{}]", kept.name(), lane);
  }
  std::string rounded(ScalarOp op, const std::string& a, const std::string& b, DType dtype) override {
    return assign(dtype, scalars().emit(op, {{a, dtype}, {b, dtype}}, dtype));
  }
  std::string joined(const Expr& e, const std::string& a, const std::string& b) override {
    return scalars().combine(e.reduce, a, b, e.dtype);
  }
  std::string combined(const Expr& e, const std::string& before) override { return joined(e, before, value(e.args[0])); }

  int temporaries_ = 0;

 private:
  std::size_t depth_ = 1;
  int loops_ = 0;
};

}  // namespace rlx
