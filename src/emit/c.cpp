// Prints a scheduled kernel in a language of C's family.
#include <algorithm>
#include <map>
#include <set>

#include "emit/braces_printer.h"
#include "emit/c_dialect.h"
#include "emit/c_scalar.h"
#include "kernel/reach.h"
#include "kernel/runs.h"

namespace rlx {
namespace {

constexpr int longest_sum = 2048;  // terms that are added in one place

class CPrinter : public BracesPrinter {
 public:
  CPrinter(const Kernel& kernel, const CDialect& dialect, const ScheduleOptions& options, DType index)
      : BracesPrinter(kernel, options), dialect_(dialect), scalars_(dialect), width_(options.vector), index_(index) {}

  KernelText print() {
    if (kernel_.tile && !dialect_.position.empty()) fail_internal("emit: a tile kernel in {}", dialect_.name);
    if (dialect_.position.empty()) {
      print_body("begin", "end");
    } else {
      const std::string_view form = in_group() ? dialect_.group_position : dialect_.position;
      body_ += fmt::format(fmt::runtime(form), fmt::arg("I", type_name(index_)));
      print_position("position");
    }
    KernelText named = named_by_hash(text(), dialect_.name, scheduled_.counted());
    named.group = scheduled_.group.lanes * scheduled_.group.rows;
    for (const KernelBuffer& buffer : kernel_.buffers)
      named.element_bytes.push_back(has_vectors() && buffer.aligned ? vector_bytes : std::max(info(buffer.dtype).bits / 8, 1));
    return named;
  }

 private:
  std::string text() const {
    std::string all(dialect_.header);
    if (uses_f64()) all += dialect_.f64_header;
    if (in_group()) all += dialect_.group_header;
    all += scalars_.prelude();
    all += in_group() ? fmt::format(fmt::runtime(dialect_.group_open), fmt::arg("n", scheduled_.group.lanes * scheduled_.group.rows))
                      : std::string(dialect_.open);
    for (int id = 0; id < static_cast<int>(kernel_.buffers.size()); ++id) all += of_buffer(dialect_.buffer_parameter, id);
    for (std::size_t i = 0; i < size_arguments(); ++i) all += fmt::format(fmt::runtime(dialect_.size_parameter), fmt::arg("n", i));
    all += dialect_.close;
    for (const int id : used_buffers_)
      all += of_buffer(has_vectors() && buffer(id).aligned ? dialect_.aligned_buffer : dialect_.buffer, id);
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

  ScalarText& scalars() override { return scalars_; }
  std::string constant(const std::string& type, const std::string& name) const override { return "const " + type + " " + name; }
  std::string counter(const std::string& name) override { return type_name(index_) + " " + name; }
  std::string chosen(const std::string& condition, const std::string& then, const std::string& otherwise) const override {
    return condition + " ? " + then + " : " + otherwise;
  }
  std::string inside(const std::string& index, const std::string& last) const override {
    return fmt::format("({0} < 0 ? 0 : {0} > {1} ? {1} : {0})", index, last);
  }

  // -- pieces of the walk. Sizes are written out where they are used: the compiler finds what is equal.
  std::string size_op(SizeOp op, const std::string& a, const std::string& b) override {
    if (op == SizeOp::min) return fmt::format("({0} < {1} ? {0} : {1})", a, b);
    return BracesPrinter::size_op(op, a, b);
  }
  DType index_type() const override { return index_; }
  std::string narrowed(const std::string& value) { return index_ == i64 ? value : fmt::format("({}){}", type_name(index_), value); }
  std::string size_argument(std::size_t at) override { return narrowed(fmt::format(fmt::runtime(dialect_.size), fmt::arg("n", at))); }
  std::string loaded(const Atom& atom) override { return narrowed(value(atom.id)); }
  using BracesPrinter::lane_loop;
  void lane_loop(const std::string& low, const std::string& high, int lanes, const LoopBody& body) override {
    if (!dialect_.lanes.empty()) line(fmt::format(fmt::runtime(dialect_.lanes), fmt::arg("n", lanes)));
    BracesPrinter::lane_loop(low, high, lanes, body);
  }
  std::string element(int id, const std::string& at) {
    used_buffers_.insert(id);
    return fmt::format("b{}[{}]", id, at);
  }
  std::string load(ExprId id, const Expr& e) override {
    const std::string at = index_of(id, e);
    return scalars_.from_memory(element(e.buffer, along_.empty() ? at : sum(at, along_)), e.dtype);
  }
  void store(const KernelStore& s) override {
    line(element(s.buffer, index(s.index)) + " = " + scalars_.to_memory(value(s.value), buffer(s.buffer).dtype) + ";");
  }

  std::string compute(ExprId id) override {
    const Expr& e = kernel_.expr(id);
    if (e.kind == Expr::Kind::constant) return c_constant(dialect_, e);
    return assign(e.dtype, expression(id, e));
  }
  void declare_variable(const Kept& kept, std::int64_t elements) override {
    const std::string size = elements > 1 ? fmt::format("[{}]", elements) : "";
    entry_ += fmt::format("  {} {}{};\n", type_name(kernel_.expr(kept.expr).dtype), kept.name(), size);
  }
  std::string unless_nan(const std::string& value, const std::string& instead, DType dtype) override {
    return assign(dtype, fmt::format("{0} == {0} ? {0} : {1}", value, instead));
  }
  std::string combined(const Expr& e, const std::string& before) override {
    const Expr& body = kernel_.expr(e.args[0]);
    if (dialect_.fused_sums && is_float_sum(e) && body.kind == Expr::Kind::scalar && body.op == ScalarOp::mul)
      return scalars_.fma(value(body.args[0]), value(body.args[1]), before, e.dtype);
    return BracesPrinter::combined(e, before);
  }

  // -- groups of lanes

  static constexpr int vector_bytes = 16;
  bool in_group() const { return scheduled_.group.lanes > 0; }
  /// Whether loads and stores of neighbours are written so that the compiler makes vectors of them.
  bool has_vectors() const {
    const auto is_vector = [](const Statement& s) { return s.kind == Statement::Kind::lanes && s.vector > 1; };
    return in_group() || std::ranges::any_of(scheduled_.body, is_vector);
  }
  std::string group_lane() override { return fmt::format(fmt::runtime(dialect_.group_lane), fmt::arg("n", scheduled_.group.lanes)); }
  std::string group_row() override { return fmt::format(fmt::runtime(dialect_.group_row), fmt::arg("n", scheduled_.group.lanes)); }
  std::string computed(const std::string& value, DType dtype) override { return assign(dtype, value); }
  std::string exchanged(const std::string& value, int bits) override {
    return fmt::format(fmt::runtime(dialect_.exchange), fmt::arg("x", value), fmt::arg("n", bits));
  }
  /// By the first lane of each warp; the lanes of every warp then have one each.
  std::string share(const std::string& value, DType dtype, int warps) override {
    const std::string place = fmt::format("g{}", ++temporaries_), lane = group_lane(), type = type_name(dtype);
    entry_ += "  " + fmt::format(fmt::runtime(dialect_.on_chip), fmt::arg("T", type), fmt::arg("name", place), fmt::arg("n", warps)) + "\n";
    line(fmt::format("if ({0} % {1} == 0) {2}[{0} / {1}] = {3};", lane, warp_lanes, place, value));
    line(std::string(dialect_.barrier));
    return assign(type, fmt::format("{}[{} % {}]", place, lane, warps));
  }
  void wait_for_group() override { line(std::string(scheduled_.group.lanes == warp_lanes ? dialect_.warp_barrier : dialect_.barrier)); }
  void only_if(const std::string& condition, const std::function<void()>& body) override { block("if (" + condition + ")", body); }
  std::string less(const std::string& a, const std::string& b) override { return a + " < " + b; }
  std::string load_vector(ExprId id, int count, int piece_bytes) override {
    const Expr& e = kernel_.expr(id);
    std::string name = declare_vector(buffer(e.buffer).dtype, count);
    move(name, "&" + element(e.buffer, index(e.index)), buffer(e.buffer).dtype, count, piece_bytes);
    return name;
  }
  std::string element_of(ExprId id, const std::string& vector, const std::string& at) override {
    const DType dtype = kernel_.expr(id).dtype;
    return assign(dtype, scalars_.from_memory(variable_at(vector, at), dtype));
  }
  std::string vector_to_store(const KernelStore& store, int count) override { return declare_vector(buffer(store.buffer).dtype, count); }
  void set_element(const KernelStore& s, const std::string& vector, const std::string& at) override {
    line(variable_at(vector, at) + " = " + scalars_.to_memory(value(s.value), buffer(s.buffer).dtype) + ";");
  }
  void store_vector(const KernelStore& s, const std::string& vector, int count) override {
    move("&" + element(s.buffer, index(s.index)), vector, buffer(s.buffer).dtype, count, vector_bytes);
  }
  static std::string variable_at(const std::string& name, const std::string& at) { return fmt::format("{}[{}]", name, at); }
  std::string declare_vector(DType dtype, int count) {
    std::string name = fmt::format("v{}", ++temporaries_);
    line(fmt::format(fmt::runtime(dialect_.aligned_array), fmt::arg("T", c_memory_type(dialect_, dtype)), fmt::arg("name", name),
                     fmt::arg("n", count)));
    return name;
  }
  /// In pieces of up to so many bytes.
  void move(const std::string& to, const std::string& from, DType dtype, int count, int most) {
    const int bytes = count * std::max(info(dtype).bits / 8, 1);
    std::size_t piece = dialect_.pieces.size() - 1;
    while (piece > 0 && (bytes % (1 << piece) != 0 || 1 << piece > most)) --piece;
    const std::string_view type = dialect_.pieces[piece];
    for (int i = 0; i < bytes >> piece; ++i) line(fmt::format("(({0}*)({1}))[{3}] = ((const {0}*)({2}))[{3}];", type, to, from, i));
  }

  // -- sums of products of 8-bit numbers

  /// Of four terms all codes, of vectors that lie one behind the other, and then their products.
  void print_dots(const Statement& s) override {
    constexpr int terms = 4;
    const Statement& lanes = s.body.back();
    const DotLanes variables{lanes.variable, s.variable, width_};
    const std::vector<std::set<int>> free = free_variables(kernel_);
    loop("0", dim(kernel_.extent(s.variable)), terms, [&](const std::string& first) {
      set_loop(s.variable, first);
      set_loop(lanes.variable, first_of_block());
      std::map<ExprId, std::string> codes;
      for (const Statement& sum : lanes.body)
        if (sum.kind == Statement::Kind::accumulate) codes[dot_sum(kernel_, free, sum.expr, variables)->code];
      for (auto& [code, name] : codes) {
        name = fmt::format("v{}", ++temporaries_);
        line(fmt::format("{} {}[{}];", c_memory_type(dialect_, u8), name, terms * width_));
      }
      lane_loop(terms * width_, [&](const std::string& byte) { print_codes(lanes.body, codes, byte); });
      for (const Statement& sum : lanes.body) {
        if (sum.kind != Statement::Kind::accumulate) continue;
        const DotSum dot = *dot_sum(kernel_, free, sum.expr, variables);
        const Expr& x = kernel_.expr(dot.x);
        const std::string at = "&" + element(x.buffer, index(x.index));
        line(scalars_.add_dots("&" + variable(sum.expr, "0"), codes.at(dot.code), at, dot.less) + ";");
      }
    });
  }
  void print_codes(const Block& body, const std::map<ExprId, std::string>& codes, const std::string& byte) {
    std::set<ExprId> needed;
    for (const auto& [code, name] : codes) needed.merge(needed_by(kernel_, code, [](ExprId) { return true; }));
    along_ = byte;
    for (const Statement& s : body)
      if (s.kind == Statement::Kind::compute && needed.count(s.expr)) set_value(s.expr, compute(s.expr));
    along_.clear();
    for (const auto& [code, name] : codes) line(fmt::format("{}[{}] = {};", name, byte, scalars_.to_memory(value(code), u8)));
  }

  // -- blocks of sums of products

  /// The rows or columns of a block; those behind the last one are the last one again.
  std::vector<std::string> places(int loop, int count) {
    if (loop < 0) return {"0"};
    const std::string last = dim(kernel_.extent(loop) - Dim(1));
    std::vector<std::string> all;
    for (int i = 0; i < count; ++i) all.push_back(assign(index_, size_op(SizeOp::min, sum(loop_at(loop), std::to_string(i)), last)));
    return all;
  }
  /// A sum of one row and column, or of one row and a vector of columns, and where it is kept.
  struct Accumulator {
    const ProductBlock::Sum* sum;
    std::string row, column, name, kept;
  };
  std::vector<Accumulator> accumulators(const ProductBlock& block, const std::vector<std::string>& rows,
                                        const std::vector<std::string>& columns) {
    std::vector<Accumulator> all;
    for (const ProductBlock::Sum& sum : block.sums)
      for (std::size_t r = 0; r < rows.size(); ++r)
        for (std::size_t c = 0; c < columns.size(); ++c) {
          const std::string lane = std::to_string(r * static_cast<std::size_t>(block.columns) + c);
          all.push_back({&sum, rows[r], columns[c], fmt::format("a{}", all.size()), variable(sum.id, lane)});
        }
    return all;
  }
  using Loaded = std::map<std::pair<ExprId, std::string>, std::string>;
  /// The factor in this row or column, loaded once.
  const std::string& load_at(Loaded& loaded, ExprId factor, int loop, const std::string& at, int width) {
    std::string& text = loaded[{factor, at}];
    if (!text.empty()) return text;
    if (loop >= 0) set_loop(loop, at);
    const Expr& e = kernel_.expr(factor);
    const std::string place = element(e.buffer, index(e.index));
    if (width == 1) return text = assign("float", scalars_.from_memory(place, e.dtype));
    return text = assign(vector_type(), vector_load("&" + place, e.dtype));
  }
  std::string vector_load(const std::string& place, DType type = f32) const {
    const std::string_view form = type == f16 ? dialect_.f16_load : type == bf16 ? dialect_.bf16_load : dialect_.vector_load;
    return fmt::format(fmt::runtime(form), fmt::arg("n", width_), fmt::arg("p", place));
  }
  std::string vector_store(const std::string& value, const std::string& place) const {
    return fmt::format(fmt::runtime(dialect_.vector_store), fmt::arg("n", width_), fmt::arg("x", value), fmt::arg("p", place)) + ";";
  }
  std::string vector_type(int width) const {
    return width == 1 ? "float" : fmt::format(fmt::runtime(dialect_.vector), fmt::arg("n", width));
  }
  std::string vector_type() const { return vector_type(width_); }

  void print_product(const ProductBlock& block) override {
    const std::string first_row = block.row < 0 ? "0" : assign(index_, loop_at(block.row));
    const std::string first_column = assign(index_, loop_at(block.column));
    if (block.row >= 0) set_loop(block.row, first_row);
    set_loop(block.column, first_column);
    const std::vector<std::string> rows = places(block.row, block.rows);
    std::vector<std::string> columns{first_column};
    if (block.along_terms) columns = places(block.column, block.columns);
    else columns[0] = assign(index_, size_op(SizeOp::min, first_column, dim(kernel_.extent(block.column) - Dim(block.columns))));
    for (const ProductBlock::Sum& sum : block.sums) declare_variable(sum.id, std::int64_t{block.rows} * block.columns);
    lane_loop(block.rows * block.columns, [&](const std::string& lane) {
      for (const ProductBlock::Sum& sum : block.sums) set_variable(sum.id, lane, "0");
    });
    const std::string terms = dim(kernel_.extent(block.terms));
    if (kernel_.extent(block.terms).upper() <= longest_sum) {
      print_sums(block, rows, columns, "0", terms);
    } else {
      loop("0", terms, longest_sum, [&](const std::string& low) {
        const std::string past = size_op(SizeOp::add, low, std::to_string(longest_sum));
        print_sums(block, rows, columns, low, size_op(SizeOp::min, past, terms));
      });
    }
    print_results(block, first_row, first_column, block.along_terms ? first_column : columns[0]);
  }

  /// Adds the terms low..high-1 to the sums of all rows and columns.
  void print_sums(const ProductBlock& block, const std::vector<std::string>& rows, const std::vector<std::string>& columns,
                  const std::string& low, const std::string& high) {
    const int steps = block.along_terms ? width_ : 1;
    const std::vector<Accumulator> all = accumulators(block, rows, columns);
    line("{");
    for (const Accumulator& a : all) line(vector_type() + " " + a.name + " = 0;");
    const std::string rest = size_op(SizeOp::remainder, size_op(SizeOp::subtract, high, low), std::to_string(steps));
    const std::string whole = steps == 1 ? high : size_op(SizeOp::subtract, high, rest);
    loop(low, whole, steps, [&](const std::string& term) {
      set_loop(block.terms, term);
      Loaded x, y;
      for (const Accumulator& a : all) {
        const std::string& left = load_at(x, a.sum->factors[0], block.row, a.row, steps);
        const std::string& right = load_at(y, a.sum->factors[1], block.column, a.column, width_);
        const std::string splat = steps == width_ ? left : "(" + vector_type() + ")(" + left + ")";
        line(a.name + " = " + scalars_.fma(splat, right, a.name, f32) + ";");
      }
    });
    for (const Accumulator& a : all) keep_sum(block, a.kept, a.name);
    line("}");
    if (steps > 1) loop(whole, high, 1, [&](const std::string& term) { print_term(block, all, term); });
  }
  /// One term, behind the last whole vector.
  void print_term(const ProductBlock& block, const std::vector<Accumulator>& all, const std::string& term) {
    set_loop(block.terms, term);
    Loaded x, y;
    for (const Accumulator& a : all) {
      const std::string& left = load_at(x, a.sum->factors[0], block.row, a.row, 1);
      const std::string& right = load_at(y, a.sum->factors[1], block.column, a.column, 1);
      line(a.kept + " = " + scalars_.fma(left, right, a.kept, f32) + ";");
    }
  }
  void keep_sum(const ProductBlock& block, const std::string& kept, std::string sum) {
    if (!block.along_terms && width_ > 1) return line(vector_store(vector_load("&" + kept) + " + " + sum, "&" + kept));
    for (int half = width_ / 2; half >= 1; half /= 2)
      sum = assign(vector_type(half), fmt::format(fmt::runtime(dialect_.vector_fold), fmt::arg("x", sum)));
    line(kept + " += " + sum + ";");
  }
  /// What is stored for each of the block's results that are there. `kept_from`: the column of the first sum.
  void print_results(const ProductBlock& block, const std::string& first_row, const std::string& first_column,
                     const std::string& kept_from) {
    const auto past = [&](int loop, const std::string& first, int count) {
      return size_op(SizeOp::min, size_op(SizeOp::add, first, std::to_string(count)), dim(kernel_.extent(loop)));
    };
    const auto row = [&](const std::string& r) {
      if (block.row >= 0) set_loop(block.row, r);
      const std::string kept_row = size_op(SizeOp::multiply, size_op(SizeOp::subtract, r, first_row), std::to_string(block.columns));
      const auto column = [&](const std::string& c) {
        set_loop(block.column, c);
        const std::string lane = sum(kept_row, size_op(SizeOp::subtract, c, kept_from));
        for (const ProductBlock::Sum& s : block.sums) set_value(s.id, variable(s.id, lane));
        print_block(scheduled_.body);
      };
      const Dim& columns = kernel_.extent(block.column);
      if (!columns.is_static() || columns.value() % block.columns != 0)
        return loop(first_column, past(block.column, first_column, block.columns), 1, column);
      lane_loop(block.columns, [&](const std::string& c) { column(sum(first_column, c)); });
    };
    if (block.row < 0) row(first_row);
    else loop(first_row, past(block.row, first_row, block.rows), 1, row);
  }

  const CDialect& dialect_;
  CScalars scalars_;
  int width_;          // of vectors
  DType index_;        // of positions and sizes
  std::string along_;  // the byte at hand of those that lie one behind the other
  std::set<int> used_buffers_;
};

}  // namespace

KernelText print_c(const Kernel& kernel, const CDialect& dialect, const ScheduleOptions& options) {
  return CPrinter(kernel, dialect, options, is_narrow(kernel) ? i32 : i64).print();
}

}  // namespace rlx
