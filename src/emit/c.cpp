// Prints a scheduled kernel in a language of C's family.
#include <algorithm>
#include <set>

#include "emit/c_dialect.h"
#include "emit/c_scalar.h"
#include "emit/printer.h"

namespace rlx {
namespace {

class CPrinter : public KernelPrinter {
 public:
  CPrinter(const Kernel& kernel, const CDialect& dialect, const ScheduleOptions& options)
      : KernelPrinter(kernel, options), dialect_(dialect), scalars_(dialect) {}

  KernelText print() {
    if (kernel_.tile && !dialect_.position.empty()) fail_internal("emit: a tile kernel in {}", dialect_.name);
    if (dialect_.position.empty()) {
      print_body("begin", "end");
    } else {
      body_ += dialect_.position;
      print_position("position");
    }
    KernelText named = named_by_hash(text(), dialect_.name, scheduled_.counted());
    for (const KernelBuffer& buffer : kernel_.buffers) named.element_bytes.push_back(std::max(info(buffer.dtype).bits / 8, 1));
    return named;
  }

 private:
  std::string text() const {
    std::string all(dialect_.header);
    if (uses_f64()) all += dialect_.f64_header;
    all += scalars_.prelude();
    all += dialect_.open;
    for (int id = 0; id < static_cast<int>(kernel_.buffers.size()); ++id) all += of_buffer(dialect_.buffer_parameter, id);
    for (std::size_t i = 0; i < kernel_.symbols.size(); ++i) all += fmt::format(fmt::runtime(dialect_.size_parameter), fmt::arg("n", i));
    all += dialect_.close;
    for (const int id : used_buffers_) all += of_buffer(dialect_.buffer, id);
    return all + entry_ + body_ + "}\n";
  }
  std::string of_buffer(std::string_view form, int id) const {
    const std::string type = (buffer(id).written ? "" : "const ") + c_memory_type(dialect_, buffer(id).dtype);
    return fmt::format(fmt::runtime(form), fmt::arg("T", type), fmt::arg("n", id));
  }
  bool uses_f64() const {
    const auto is_f64 = [](const auto& part) { return part.dtype == f64; };
    return std::ranges::any_of(kernel_.buffers, is_f64) || std::ranges::any_of(kernel_.exprs, is_f64);
  }
  std::string register_name(DType t) const { return c_register_type(dialect_, t); }

  void line(const std::string& text) { body_ += std::string(2 * depth_, ' ') + text + "\n"; }
  std::string assign(const std::string& type, const std::string& expression) {
    std::string name = fmt::format("t{}", ++temporaries_);
    line("const " + type + " " + name + " = " + expression + ";");
    return name;
  }

  // -- pieces of the walk. Sizes are written out where they are used: the compiler finds what is equal.
  std::string size_op(SizeOp op, const std::string& a, const std::string& b) override {
    if (op == SizeOp::min) return fmt::format("({0} < {1} ? {0} : {1})", a, b);
    constexpr std::string_view signs = "+*/%/%-";
    return fmt::format("({} {} {})", a, signs[static_cast<std::size_t>(op)], b);
  }
  std::string size_argument(std::size_t at) override { return fmt::format(fmt::runtime(dialect_.size), fmt::arg("n", at)); }
  std::string test(Guard::Kind kind, const std::string& index) override { return index + (kind == Guard::Kind::zero ? " == 0" : " >= 0"); }
  std::string both(const std::string& a, const std::string& b) override { return a + " && " + b; }
  void loop(const std::string& low, const std::string& high, int step, const LoopBody& body) override {
    const std::string i = fmt::format("i{}", ++loops_);
    line(fmt::format("for ({4} {0} = {1}; {0} < {2}; {0} += {3}) {{", i, low, high, step, register_name(i64)));
    ++depth_;
    body(i);
    --depth_;
    line("}");
  }
  std::string element(int id, const std::string& at) {
    used_buffers_.insert(id);
    return fmt::format("b{}[{}]", id, at);
  }
  std::string load(ExprId id, const Expr& e) {
    const auto guarded = scheduled_.guarded_loads.find(id);
    const std::string at = guarded == scheduled_.guarded_loads.end() ? index(e.index) : index_inside(e, guarded->second);
    return scalars_.from_memory(element(e.buffer, at), e.dtype);
  }
  /// Somewhere inside: the value is thrown away where the guard fails.
  std::string index_inside(const Expr& e, const Index& part) {
    const std::string low = assign(register_name(i64), index(e.index - part)), last = dim(e.last - *part.upper());
    return sum(fmt::format("({0} < 0 ? 0 : {0} > {1} ? {1} : {0})", low, last), index(part));
  }
  void store(const KernelStore& s) override {
    line(element(s.buffer, index(s.index)) + " = " + scalars_.to_memory(value(s.value), buffer(s.buffer).dtype) + ";");
  }

  std::string compute(ExprId id) override {
    const Expr& e = kernel_.expr(id);
    if (e.kind == Expr::Kind::constant) return c_constant(dialect_, e);
    return assign(register_name(e.dtype), expression(id, e));
  }
  std::string expression(ExprId id, const Expr& e) {
    std::vector<CScalars::Operand> args;
    for (ExprId arg : e.args) args.push_back({value(arg), kernel_.expr(arg).dtype});
    switch (e.kind) {
      case Expr::Kind::load: return load(id, e);
      case Expr::Kind::scalar: return scalars_.emit(e.op, args, e.dtype);
      case Expr::Kind::fma: return scalars_.fma(args[0].value, args[1].value, args[2].value, e.dtype);
      case Expr::Kind::position: return scalars_.emit(ScalarOp::cast, {{index(e.index), i64}}, e.dtype);
      case Expr::Kind::choose: return guards(e.guards) + " ? " + args[0].value + " : " + args[1].value;
      default: fail_internal("emit: expression {} has no value of its own", id);
    }
  }

  void declare_variable(const Kept& kept, std::int64_t elements) override {
    const std::string size = elements > 1 ? fmt::format("[{}]", elements) : "";
    entry_ += fmt::format("  {} {}{};\n", register_name(kernel_.expr(kept.expr).dtype), kept.name(), size);
  }
  void set_variable(const Kept& kept, const std::string& lane, const std::string& value) override {
    line(variable(kept, lane) + " = " + value + ";");
  }
  std::string variable(const Kept& kept, const std::string& lane) override {
    return lane.empty() ? kept.name() : fmt::format("{}[{}]", kept.name(), lane);
  }
  std::string rounded(ScalarOp op, const std::string& a, const std::string& b, DType dtype) override {
    return assign(register_name(dtype), scalars_.emit(op, {{a, dtype}, {b, dtype}}, dtype));
  }
  std::string unless_nan(const std::string& value, const std::string& instead, DType dtype) override {
    return assign(register_name(dtype), fmt::format("{0} == {0} ? {0} : {1}", value, instead));
  }
  std::string neutral(const Expr& reduction) override { return c_neutral(dialect_, reduction.reduce, reduction.dtype); }
  std::string combined(const Expr& e, const std::string& before) override {
    return scalars_.combine(e.reduce, before, value(e.args[0]), e.dtype);
  }

  const CDialect& dialect_;
  CScalars scalars_;
  std::set<int> used_buffers_;
  std::size_t depth_ = 1;
  int temporaries_ = 0, loops_ = 0;
};

}  // namespace

KernelText print_c(const Kernel& kernel, const CDialect& dialect, const ScheduleOptions& options) {
  return CPrinter(kernel, dialect, options).print();
}

}  // namespace rlx
