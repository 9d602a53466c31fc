// WGSL: an invocation computes one position of the grid.
#include <algorithm>
#include <set>
#include <string>

#include "emit/braces_printer.h"
#include "emit/wgsl_scalar.h"

namespace rlx {
namespace {

class WgslPrinter : public BracesPrinter {
 public:
  WgslPrinter(const Kernel& kernel, const ScheduleOptions& options, int most_buffers)
      : BracesPrinter(kernel, options), gathered_(gathered(kernel, static_cast<std::size_t>(most_buffers))) {}

  KernelText print() {
    if (kernel_.tile) fail_internal("emit: a tile kernel in WGSL");
    print_position("position");
    KernelText named = named_by_hash(text(), "k", scheduled_.counted());
    for (const KernelBuffer& buffer : kernel_.buffers) named.element_bytes.push_back(memory_bits(buffer.dtype) / 8);
    named.rounds = rounds_of(kernel_, scheduled_.body);
    named.symbols = kernel_.symbols;
    if (gathered_.empty()) return named;
    for (int id = 0; id < static_cast<int>(kernel_.buffers.size()); ++id)
      named.gathered.push_back(gathered_.count(id) ? std::optional(elements(id)) : std::nullopt);
    return named;
  }

 private:
  std::string text() const {
    const std::size_t numbers = 1 + kernel_.buffers.size() + kernel_.symbols.size();
    std::string all = fmt::format("@group(0) @binding(0) var<uniform> s: array<vec4<i32>, {}>;\n", (numbers + 3) / 4);
    int binding = 0;
    const auto bind = [&](const std::string& name, std::string_view type) {
      all += fmt::format("@group(0) @binding({}) var<storage, read_write> {}: array<{}>;\n", ++binding, name, type);
    };
    for (int id = 0; id < static_cast<int>(kernel_.buffers.size()); ++id)
      if (!gathered_.count(id)) bind(memory(id), is_shared(buffer(id)) ? "atomic<u32>" : "u32");
    if (!gathered_.empty()) bind("g", "u32");
    all += "var<private> zero: u32;\n" + scalars_.prelude();
    all += fmt::format(
        "@compute @workgroup_size({})\nfn {}(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: "
        "vec3<u32>, @builtin(local_invocation_index) lane: u32) {{\n",
        wgsl_lanes, name_marker);
    all += fmt::format("  let position = i32((group.y * groups.x + group.x) * {}u + lane);\n", wgsl_lanes);
    return all + "  if (position >= s[0].x) { return; }\n  zero = group.z;\n" + entry_ + body_ + "}\n";
  }
  /// The number of the table of sizes behind that of positions.
  static std::string number(std::size_t at) { return fmt::format("s[{}].{}", (at + 1) / 4, "xyzw"[(at + 1) % 4]); }
  /// The last ones of those that are only read, so that there are no more bindings than allowed.
  static std::set<int> gathered(const Kernel& kernel, std::size_t most) {
    std::set<int> all;
    std::size_t bindings = kernel.buffers.size();
    for (std::size_t id = kernel.buffers.size(); id-- > 0 && bindings > most;)
      if (!kernel.buffers[id].written) bindings -= all.insert(static_cast<int>(id)).second && all.size() > 1;
    return all;
  }
  std::string memory(int id) const { return gathered_.count(id) ? "g" : fmt::format("b{}", id); }
  Dim elements(int id) const {
    for (const Expr& e : kernel_.exprs)
      if (e.kind == Expr::Kind::load && e.buffer == id) return e.last + Dim(1);
    return 0;
  }
  /// Whether several positions may write to one word.
  static bool is_shared(const KernelBuffer& buffer) { return buffer.written && memory_bits(buffer.dtype) < 32; }

  ScalarText& scalars() override { return scalars_; }
  std::string constant(const std::string& type, const std::string& name) const override { return "let " + name + ": " + type; }
  std::string counter(const std::string& name) override { return "var " + name + ": i32"; }
  std::string chosen(const std::string& condition, const std::string& then, const std::string& otherwise) const override {
    return fmt::format("select({}, {}, {})", otherwise, then, condition);
  }
  std::string inside(const std::string& index, const std::string& last) const override {
    return fmt::format("min(max({}, 0), {})", index, last);
  }

  // -- sizes are i32: buffers have fewer elements, and what is beyond wraps

  static std::string wrapped(const std::string& size) {
    if (size.size() < 10 || size.find_first_not_of("-0123456789") != std::string::npos) return size;
    return std::to_string(static_cast<std::int32_t>(std::stoll(size)));
  }
  DType index_type() const override { return i32; }
  std::string size_op(SizeOp op, const std::string& a, const std::string& b) override {
    if (op == SizeOp::min) return fmt::format("min({}, {})", wrapped(a), wrapped(b));
    return BracesPrinter::size_op(op, wrapped(a), wrapped(b));
  }
  std::string size_argument(std::size_t at) override { return number(kernel_.buffers.size() + at); }
  /// An index that was read is in bounds; one beyond 32 bits is so for comparisons alone, around the middle of its range.
  std::string loaded(const Atom& atom) override {
    const std::string& x = value(atom.id);
    if (info(kernel_.expr(atom.id).dtype).bits < 64) return "i32(" + x + ")";
    const std::int64_t most = atom.extent.upper();
    return most <= std::int64_t{1} << 31 ? "i32(" + x + ".x)" : scalars_.near(x, most / 2);
  }
  std::string test(Guard::Kind kind, const std::string& index) override { return BracesPrinter::test(kind, wrapped(index)); }

  // -- memory is words

  std::string element(int id, const std::string& at) { return assign(i32, sum(wrapped(at), number(static_cast<std::size_t>(id)))); }
  static int memory_bits(DType t) { return std::max(info(t).bits, 8); }
  /// Of an element below 32 bits: its word, and by how many bits it is shifted there.
  std::string word_of(int id, const std::string& at, DType t) const {
    return fmt::format("{}[{} >> {}u]", memory(id), at, memory_bits(t) == 8 ? 2 : 1);
  }
  static std::string shift_of(const std::string& at, DType t) {
    const int bits = memory_bits(t);
    return fmt::format("((u32({}) & {}u) * {}u)", at, 32 / bits - 1, bits);
  }

  std::string load(ExprId id, const Expr& e) override {
    const std::string at = element(e.buffer, index_of(id, e));
    const int bits = memory_bits(e.dtype);
    if (bits == 64) return fmt::format("vec2<u32>({0}[2 * {1}], {0}[2 * {1} + 1])", memory(e.buffer), at);
    if (bits == 32) return scalars_.from_word(fmt::format("{}[{}]", memory(e.buffer), at), e.dtype);
    std::string word = word_of(e.buffer, at, e.dtype);
    if (is_shared(buffer(e.buffer))) word = "atomicLoad(&" + word + ")";
    return scalars_.from_word(fmt::format("({} >> {})", word, shift_of(at, e.dtype)), e.dtype);
  }
  void store(const KernelStore& s) override {
    const DType t = buffer(s.buffer).dtype;
    const std::string at = element(s.buffer, index(s.index));
    const std::string stored = value(s.value);
    const int bits = memory_bits(t);
    if (bits == 64) {
      line(fmt::format("b{}[2 * {}] = {}.x;", s.buffer, at, stored));
      line(fmt::format("b{}[2 * {} + 1] = {}.y;", s.buffer, at, stored));
    } else if (bits == 32) {
      line(fmt::format("b{}[{}] = {};", s.buffer, at, scalars_.word(stored, t)));
    } else {
      const std::string word = word_of(s.buffer, at, t), shift = shift_of(at, t);
      line(fmt::format("atomicAnd(&{}, ~({}u << {}));", word, (1u << bits) - 1, shift));
      line(fmt::format("atomicOr(&{}, {} << {});", word, scalars_.word(stored, t), shift));
    }
  }

  // -- values

  std::string compute(ExprId id) override {
    const Expr& e = kernel_.expr(id);
    if (e.kind == Expr::Kind::constant) return assign(e.dtype, literal(e));
    // In a name of its own: compilers of WGSL refuse what constants alone overflow.
    if (e.kind == Expr::Kind::position)
      return assign(e.dtype, scalars_.emit(ScalarOp::cast, {{assign(i32, wrapped(index(e.index))), i32}}, e.dtype));
    return assign(e.dtype, expression(id, e));
  }

  void declare_variable(const Kept& kept, std::int64_t elements) override {
    const std::string type = type_name(kernel_.expr(kept.expr).dtype);
    entry_ += fmt::format("  var {}: {};\n", kept.name(), elements > 1 ? fmt::format("array<{}, {}>", type, elements) : type);
  }
  std::string unless_nan(const std::string& value, const std::string& instead, DType dtype) override {
    return assign(dtype, fmt::format("select({}, {}, {})", value, instead, scalars_.is_nan(value)));
  }
  const std::set<int> gathered_;
  WgslScalars scalars_;
};

}  // namespace

KernelText emit_wgsl(const Kernel& kernel, const ScheduleOptions& options, int most_buffers) {
  return WgslPrinter(kernel, options, most_buffers).print();
}

}  // namespace rlx
