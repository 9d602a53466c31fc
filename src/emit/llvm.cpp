// Prints a scheduled kernel as LLVM IR text. The text is the cache key, and tests read it without LLVM.
#include <algorithm>
#include <array>
#include <numeric>

#include "emit/llvm_scalar.h"
#include "emit/printer.h"
#include "kernel/reach.h"

namespace rlx {
namespace {

class LlvmPrinter : public KernelPrinter {
 public:
  LlvmPrinter(const Kernel& kernel, VectorMasks masks) : KernelPrinter(kernel), masks_(masks) {}

  KernelText print() {
    print_body("%begin", "%end");
    return named_by_hash(module(), "k", scheduled_.counted());
  }

  struct UnderWay {  // the innermost loop at hand
    int loop = 0;
    bool adds = false;         // floats, in an order that LLVM chooses
    bool written_out = false;  // holds a loop that is
  };

 private:
  // -- the module around the body: an outer function unpacks the arguments for the inner one
  std::string module() const {
    std::string text = inner("body", false);
    if (has_past()) text += inner("past", true);
    text += outer();
    for (const std::string& declaration : declarations_) text += declaration + "\n";
    text += "attributes #0 = { nounwind \"no-trapping-math\"=\"true\" }\n";
    if (has_past()) text += "attributes #1 = { noinline nounwind \"no-trapping-math\"=\"true\" }\n";
    for (int loop = 1; loop <= loops_; ++loop) text += fmt::format("!{} = distinct !{{}}\n", 3 * loop);
    return text + metadata_;
  }

  bool has_past() const { return std::ranges::any_of(kernel_.buffers, &KernelBuffer::past_caches); }
  /// Whether the caller's range is one of elements: then it has to begin on a line of the caches, too.
  bool splits_elements() const { return kernel_.loops.size() == 1; }

  /// The body as a function. `past`: for results that begin on a line of the caches and go past them.
  std::string inner(std::string_view suffix, bool past) const {
    std::string parameters;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      const KernelBuffer& buffer = kernel_.buffers[i];
      const std::string known = past && buffer.past_caches ? fmt::format(" align {} \"{}\"", cache_line, past_caches_mark)
                                                           : std::string(buffer.written ? "" : " readonly");
      parameters += fmt::format("ptr{} %b{}, ", known, i);
    }
    for (std::size_t i = 0; i < size_arguments(); ++i) parameters += fmt::format("i64 %s{}, ", i);
    const bool rounds = past && splits_elements();  // to what `goes_past` has seen: so LLVM knows
    return fmt::format("define internal void @{}_{}({}i64 %{}, i64 %end) #{} {{\nentry:\n", name_marker, suffix, parameters,
                       rounds ? "first" : "begin", past ? 1 : 0) +
           (rounds ? fmt::format("  %begin = and i64 %first, {}\n", -cache_line) : "") + entry_ + "  br label %start\nstart:\n" + body_ +
           "  ret void\n}\n";
  }

  std::string outer() const {
    std::string text = "define void @" + std::string(name_marker) + "(ptr %buffers, ptr %sizes, i64 %begin, i64 %end) #0 {\n", arguments;
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      text += fmt::format("  %pb{0} = getelementptr inbounds ptr, ptr %buffers, i64 {0}\n  %b{0} = load ptr, ptr %pb{0}\n", i);
      arguments += fmt::format("ptr %b{}, ", i);
    }
    for (std::size_t i = 0; i < size_arguments(); ++i) {
      text += fmt::format("  %ps{0} = getelementptr inbounds i64, ptr %sizes, i64 {0}\n  %s{0} = load i64, ptr %ps{0}\n", i);
      arguments += fmt::format("i64 %s{}, ", i);
    }
    const auto call = [&](std::string_view suffix) {
      return fmt::format("  call void @{}_{}({}i64 %begin, i64 %end)\n  ret void\n", name_marker, suffix, arguments);
    };
    if (has_past()) text += goes_past() + call("past") + "usual:\n";
    return text + call("body") + "}\n";
  }
  /// Goes on at the label `usual` unless all results that could go past the caches begin on a line of them and take no operand's place.
  std::string goes_past() const {
    std::string text, bits = splits_elements() ? "%begin" : "0", apart = "true";
    int made = 0;
    const auto add = [&](const std::string& instruction) {
      text += fmt::format("  %p{} = {}\n", ++made, instruction);
      return fmt::format("%p{}", made);
    };
    for (std::size_t i = 0; i < kernel_.buffers.size(); ++i) {
      if (!kernel_.buffers[i].past_caches) continue;
      bits = add(fmt::format("or i64 {}, {}", bits, add(fmt::format("ptrtoint ptr %b{} to i64", i))));
      for (std::size_t other = 0; other < kernel_.buffers.size(); ++other)
        if (other != i) apart = add(fmt::format("and i1 {}, {}", apart, add(fmt::format("icmp ne ptr %b{}, %b{}", i, other))));
    }
    const std::string on_lines = add("icmp eq i64 " + add(fmt::format("and i64 {}, {}", bits, cache_line - 1)) + ", 0");
    const std::string both = add(fmt::format("and i1 {}, {}", apart, on_lines));
    return text + fmt::format("  br i1 {}, label %past, label %usual\npast:\n", both);
  }

  // -- small pieces
  std::string fresh() { return fmt::format("%t{}", ++temporaries_); }
  void line(const std::string& text) { body_ += "  " + text + "\n"; }
  std::string assign(const std::string& text) {
    std::string name = fresh();
    line(name + " = " + text);
    return name;
  }
  void label(const std::string& name) {
    body_ += name + ":\n";
    block_ = name;
  }

  // -- sizes and indices
  std::string size_op(SizeOp op, const std::string& a, const std::string& b) override {
    if (op == SizeOp::min) {
      declare("declare i64 @llvm.smin.i64(i64, i64)");
      return assign(fmt::format("call i64 @llvm.smin.i64(i64 {}, i64 {})", a, b));
    }
    constexpr std::array<std::string_view, 7> instructions{"add nsw", "mul nsw", "sdiv", "srem", "udiv", "urem", "sub nsw"};
    return assign(fmt::format("{} i64 {}, {}", instructions[static_cast<std::size_t>(op)], a, b));
  }
  std::string size_argument(std::size_t at) override { return fmt::format("%s{}", at); }
  std::string test(Guard::Kind kind, const std::string& index) override {
    return assign(std::string(kind == Guard::Kind::zero ? "icmp eq" : "icmp sge") + " i64 " + index + ", 0");
  }
  std::string both(const std::string& a, const std::string& b) override { return assign("and i1 " + a + ", " + b); }

  // -- memory
  std::string address(int id, const std::string& at) {
    return assign(fmt::format("getelementptr inbounds {}, ptr %b{}, i64 {}", llvm_memory_type(buffer(id).dtype), id, at));
  }
  std::string load(ExprId id, const Expr& e) {
    const auto guarded = scheduled_.guarded_loads.find(id);
    const std::string at = guarded == scheduled_.guarded_loads.end() ? index(e.index) : index_inside(e, guarded->second);
    const std::string raw = assign(fmt::format("load {}, ptr {}{}", llvm_memory_type(e.dtype), address(e.buffer, at), access()));
    return scalars().from_memory(raw, e.dtype);
  }
  /// Somewhere inside: the value is thrown away where the guard fails.
  std::string index_inside(const Expr& e, const Index& part) {
    declare("declare i64 @llvm.smax.i64(i64, i64)");
    declare("declare i64 @llvm.smin.i64(i64, i64)");
    const std::string low = assign("call i64 @llvm.smax.i64(i64 " + index(e.index - part) + ", i64 0)");
    return sum(assign("call i64 @llvm.smin.i64(i64 " + low + ", i64 " + dim(e.last - *part.upper()) + ")"), index(part));
  }
  void store(const KernelStore& s) override {
    const DType dtype = buffer(s.buffer).dtype;
    const std::string raw = scalars().to_memory(value(s.value), dtype);
    line(fmt::format("store {} {}, ptr {}{}", llvm_memory_type(dtype), raw, address(s.buffer, index(s.index)), access()));
  }

  LlvmScalars scalars() {
    return LlvmScalars([this](const std::string& text) { return assign(text); }, [this](const std::string& text) { declare(text); });
  }
  void declare(const std::string& text) {
    if (std::find(declarations_.begin(), declarations_.end(), text) == declarations_.end()) declarations_.push_back(text);
  }

  // -- expressions
  std::string compute(ExprId id) override {
    const Expr& e = kernel_.expr(id);
    std::vector<LlvmScalars::Operand> args;
    for (ExprId arg : e.args) args.push_back({value(arg), kernel_.expr(arg).dtype});
    switch (e.kind) {
      case Expr::Kind::constant: return llvm_constant(e);
      case Expr::Kind::load: return load(id, e);
      case Expr::Kind::scalar: return scalars().emit(e.op, args, e.dtype);
      case Expr::Kind::fma: return scalars().fma(args[0].value, args[1].value, args[2].value, e.dtype);
      case Expr::Kind::position: return position(e);
      case Expr::Kind::choose: {
        const std::string type = llvm_register_type(e.dtype);
        return assign(fmt::format("select i1 {}, {} {}, {} {}", guards(e.guards), type, args[0].value, type, args[1].value));
      }
      case Expr::Kind::reduce: break;
    }
    fail_internal("emit: expression {} has no value of its own", id);
  }

  /// AVX2 has no instruction that makes floats of 64 bits.
  std::string position(const Expr& e) {
    const std::string wide = index(e.index);
    if (!is_float(e.dtype) || !is_narrow(e.index)) return scalars().emit(ScalarOp::cast, {{wide, i64}}, e.dtype);
    return scalars().emit(ScalarOp::cast, {{assign("trunc i64 " + wide + " to i32"), i32}}, e.dtype);
  }

  // -- statements
  void loop(const std::string& low, const std::string& high, int step, const LoopBody& body) override {
    const std::string name = fmt::format("loop{}", ++loops_), i = "%" + name + ".i", before = block_;
    line("br label %" + name);
    label(name);
    line(fmt::format("{0} = phi i64 [ {1}, %{2} ], [ {0}.next, %{3}.latch ]", i, low, before, name));
    line(fmt::format("{}.more = icmp slt i64 {}, {}", i, i, high));
    line(fmt::format("br i1 {}.more, label %{}.body, label %{}.exit", i, name, name));
    label(name + ".body");
    const int mine = loops_;
    const UnderWay around = std::exchange(innermost_, {mine});
    body(i);
    const UnderWay done = std::exchange(innermost_, around);
    line("br label %" + name + ".latch");
    label(name + ".latch");
    line(fmt::format("{0}.next = add nsw i64 {0}, {1}", i, step));
    const bool holds_loops = loops_ > mine || done.written_out;
    line("br label %" + name + (holds_loops ? "" : parallel(mine, hints(low, high, done.adds) + width_of_halves(low, high))));
    label(name + ".exit");
  }
  std::string type_of(const Kept& kept) const { return llvm_register_type(kernel_.expr(kept.expr).dtype); }
  /// Arrays begin on a line of the caches: else most vectors of them would lie on two.
  void declare_variable(const Kept& kept, std::int64_t elements) override {
    const std::string type = type_of(kept);
    entry_ += elements > 1 ? fmt::format("  %{} = alloca [{} x {}], align {}\n", kept.name(), elements, type, cache_line)
                           : fmt::format("  %{} = alloca {}\n", kept.name(), type);
  }
  std::string variable_address(const Kept& kept, const std::string& lane) {
    if (lane.empty()) return "%" + kept.name();
    return assign(fmt::format("getelementptr inbounds {}, ptr %{}, i64 {}", type_of(kept), kept.name(), lane));
  }
  void set_variable(const Kept& kept, const std::string& lane, const std::string& value) override {
    const std::string tag = lane.empty() ? "" : access();
    line(fmt::format("store {} {}, ptr {}{}", type_of(kept), value, variable_address(kept, lane), tag));
  }
  std::string variable(const Kept& kept, const std::string& lane) override {
    const std::string tag = lane.empty() ? "" : access();
    return assign(fmt::format("load {}, ptr {}{}", type_of(kept), variable_address(kept, lane), tag));
  }
  std::string rounded(ScalarOp op, const std::string& a, const std::string& b, DType dtype) override {
    return scalars().emit(op, {{a, dtype}, {b, dtype}}, dtype);
  }
  std::string unless_nan(const std::string& value, const std::string& instead, DType dtype) override {
    const std::string is_nan = scalars().emit(ScalarOp::ne, {{value, dtype}, {value, dtype}}, boolean);
    return scalars().emit(ScalarOp::select, {{is_nan, boolean}, {instead, dtype}, {value, dtype}}, dtype);
  }
  std::string literal(const Expr& constant) override { return llvm_constant(constant); }
  int most_written_out() const override { return 15; }  // fewer than a vector of AVX-512 has lanes
  void lane_loop(const std::string& low, const std::string& high, int /*lanes*/, const LoopBody& body) override {
    loop(low, high, 1, body);
  }
  std::string joined(const Expr& e, const std::string& a, const std::string& b) override {
    return scalars().combine(e.reduce, a, b, e.dtype, "nsz ");
  }
  /// LLVM may order what a row's loop adds: it does so to make vectors of the terms, always in the same way.
  std::string combined(const Expr& e, const std::string& before) override {
    const Expr& body = kernel_.expr(e.args[0]);
    const std::string flags = in_order_ ? "nsz " : "reassoc nsz ";
    innermost_.adds = innermost_.adds || (!in_order_ && adds_floats(e) && is_short_around(e));
    innermost_.written_out = innermost_.written_out || written_out_;
    if (!is_float_sum(e) || body.kind != Expr::Kind::scalar || body.op != ScalarOp::mul)
      return scalars().combine(e.reduce, before, value(e.args[0]), e.dtype, flags);
    const std::string type = llvm_register_type(e.dtype), suffix = e.dtype == f64 ? "f64" : "f32";
    declare(fmt::format("declare {0} @llvm.fmuladd.{1}({0}, {0}, {0})", type, suffix));
    const std::string &a = value(body.args[0]), &b = value(body.args[1]);
    return assign(fmt::format("call {5}contract {0} @llvm.fmuladd.{1}({0} {2}, {0} {3}, {0} {4})", type, suffix, a, b, before, flags));
  }

  /// Whether LLVM may write out the loops around a reduction's innermost one.
  bool is_short_around(const Expr& e) const {
    constexpr std::int64_t most = 64;
    std::int64_t terms = 1;
    for (std::size_t i = 0; i + 1 < e.variables.size() && terms <= most; ++i) terms *= kernel_.extent(e.variables[i]).upper();
    return terms <= most;
  }

  /// No two iterations of a loop touch the same element of a buffer, one of them writing: that is what lets LLVM make vectors of them.
  /// Buffers themselves may be one, where a result takes the place of an operand, so they are not `noalias`.
  std::string access() const { return innermost_.loop > 0 ? fmt::format(", !llvm.access.group !{}", 3 * innermost_.loop) : ""; }
  std::string parallel(int loop, const std::string& hints) {
    const int group = 3 * loop, self = group + 1, property = group + 2;
    metadata_ += fmt::format("!{0} = distinct !{{!{0}, !{1}{3}}}\n!{1} = !{{!\"llvm.loop.parallel_accesses\", !{2}}}\n", self, property,
                             group, hints);
    return fmt::format(", !llvm.loop !{}", self);
  }
  /// The steps of a loop from 0, if they are few; else 0.
  static int few_steps(const std::string& low, const std::string& high) {
    constexpr int most_digits = 3;
    return low == "0" && is_number(high) && high.size() <= most_digits ? std::stoi(high) : 0;
  }
  static bool is_number(const std::string& text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  }
  /// Whether the steps behind the last whole vector, one by one, would take longer than to mask all vectors, which costs about a fifth.
  static bool is_ragged(int steps) {
    constexpr int lanes = 16;
    return steps > lanes && 2 * (steps % lanes - 1) > steps / lanes;
  }

  std::string cut_of_loop(const std::string& low, const std::string& high) const override {
    const int steps = few_steps(low, high), behind = steps % cut_lanes;
    return masks_ == VectorMasks::last && steps > cut_lanes && behind > 1 ? std::to_string(steps - behind) : std::string();
  }
  /// Metadata that has LLVM mask a loop's vectors, or take as many of them at a time as leave none behind.
  /// `adds`: sums or products of floats.
  std::string hints(const std::string& low, const std::string& high, bool adds) const {
    constexpr const char* mask = ", !{!\"llvm.loop.vectorize.predicate.enable\", i1 true}";
    constexpr const char* whole = ", !{!\"llvm.loop.unroll.disable\"}";  // else few steps become scalar code before they are vectors
    constexpr const char* then_free = ", !{!\"llvm.loop.vectorize.followup_all\", !{!\"llvm.loop.isvectorized\", i32 1}}";
    const bool is_known = is_number(low) && is_number(high);
    // A loop that is written out before its terms are vectors gets vectors of rows, and another order in the rows behind the last of these.
    constexpr int too_many = 64;
    const bool stays = adds && is_known && std::stoll(high) - std::stoll(low) < too_many;
    std::string stays_loop = stays ? fmt::format("{}{}", whole, then_free) : std::string();
    if (masks_ == VectorMasks::none) return stays_loop;
    if (low != "0" && is_known) return fmt::format("{}{}", mask, whole);  // what was cut off
    constexpr int most_vectors = 4;
    const int steps = few_steps(low, high);
    if (masks_ == VectorMasks::all) return (is_ragged(steps) ? mask : "") + stays_loop;
    if (steps < cut_lanes) return stays_loop;
    // Sums of more steps, written out, would be one chain. Fewer are left to LLVM: a rest behind few vectors costs more than these.
    const bool many = steps / cut_lanes > most_vectors;
    return fmt::format("{}, !{{!\"llvm.loop.interleave.count\", i32 {}}}", many ? whole : stays_loop,
                       std::gcd(steps / cut_lanes, most_vectors));
  }

  /// LLVM takes 8 conversions of f16 for 22 instructions, where F16C has one, and would make vectors of 4.
  std::string width_of_halves(const std::string& low, const std::string& high) const {
    const int lanes = !converts_halves(kernel_) || masks_ == VectorMasks::none ? 0 : masks_ == VectorMasks::all ? 16 : 8;
    const bool is_short = is_number(low) && is_number(high) && std::stoll(high) - std::stoll(low) < lanes;
    return lanes == 0 || is_short ? "" : fmt::format(", !{{!\"llvm.loop.vectorize.width\", i32 {}}}", lanes);
  }
  /// Whether it computes with f16, and not with f64, of which as many would fill the registers.
  static bool converts_halves(const Kernel& kernel) {
    const auto any = [&](const auto& is) { return std::ranges::any_of(kernel.exprs, is); };
    return any([](const Expr& e) { return e.dtype == f16; }) && !any([](const Expr& e) { return e.dtype == f64; }) &&
           any([](const Expr& e) { return is_float(e.dtype) && e.kind != Expr::Kind::load; });
  }

  static constexpr int cut_lanes = 8;  // of f32 in the vectors of AVX2, where the last alone is masked
  VectorMasks masks_;
  std::vector<std::string> declarations_;
  std::string metadata_;
  UnderWay innermost_;
  std::string block_ = "start";
  int temporaries_ = 0, loops_ = 0;
};

}  // namespace

KernelText emit_llvm(const Kernel& kernel, VectorMasks masks) { return LlvmPrinter(kernel, masks).print(); }

}  // namespace rlx
