#include "lowering/kernels_only/block_kernels.h"

#include <algorithm>

#include "ir/op.h"
#include "kernel/pull.h"
#include "kernel/simplify.h"
#include "lowering/kernels_only/block_values.h"
#include "ops/quant/eight_bits.h"
#include "quant/block_format.h"

namespace rlx {
namespace {

constexpr std::int64_t most_neighbours = run_of_block;
constexpr int side_by_side = 2;        // such runs of elements, with sums of their own, so that no addition waits for the one before
constexpr int runs_of_group = 4;       // that a lane of a group has
constexpr std::int64_t most_rows = 8;  // whose sums stay in registers
/// For which the lanes of a group read a row once: twice as many where these still fill a large device.
std::int64_t columns_of_group(std::int64_t columns) {
  constexpr std::int64_t many = 8192;
  const std::int64_t beside = columns >= many ? 8 : 4;
  return columns % beside == 0 ? beside : 1;
}

const BlockFormat& format_of(const Node& node) { return *find_block_format(std::get<std::string>(node.attrs[0])); }

ExprId load_of(Kernel& kernel, int buffer, DType dtype, const Index& at, std::int64_t count) {
  Expr load;
  load.kind = Expr::Kind::load;
  load.dtype = dtype;
  load.buffer = buffer;
  load.index = at;
  load.last = Dim(count - 1);
  return kernel.add(std::move(load));
}

/// How a block reads entries of tables, which are values of the graph.
auto entry_of(Kernel& kernel, const std::map<const void*, ValueId>& tables, std::function<int(ValueId)> buffer_of) {
  return [&kernel, &tables, buffer_of = std::move(buffer_of)](const void* place, std::span<const std::uint16_t> entries, const Index& at) {
    return load_of(kernel, buffer_of(tables.at(place)), u16, at, std::ssize(entries));
  };
}

/// Elements of blocks in a kernel.
class BlockKernelBuilder {
 public:
  BlockKernelBuilder(const BlockGraph& graph, std::int32_t node, const Puller::IsStored& is_stored, const ScheduleOptions& schedule)
      : in_groups_(schedule.group > 0),
        graph_(graph.graph),
        tables_(graph.tables),
        node_(graph.graph.node(node)),
        format_(format_of(node_)),
        result_{node, 0},
        puller_(graph.graph, kernel_, is_stored) {}

 protected:
  const Type& type(ValueId v) const { return graph_.type(v); }
  Index variable(const Dim& extent, std::vector<int>& among) {
    if (extent == Dim(1)) return 0;
    among.push_back(kernel_.add_variable(extent));
    return Index::variable(among.back(), extent);
  }
  /// Element `j` of block `number` of that row of `blocks`.
  ExprId element(ValueId blocks, const std::vector<Index>& row, const Index& number, const Index& j) {
    KernelBlock block{&kernel_, {}, entry_of(kernel_, tables_, [&](ValueId table) { return puller_.buffer_of(table, false); }), in_groups_};
    block.byte = [&](const Index& offset) {
      std::vector<Index> at = row;
      at.push_back(number * Dim(format_.bytes) + offset);
      return puller_.pull(blocks, at);
    };
    return block_value(format_.name, block, j);
  }
  void store(const Index& at, ExprId value) { kernel_.stores.push_back({puller_.buffer_of(result_, true), at, value}); }

  const bool in_groups_;  // lanes work together
  const Graph& graph_;
  const std::map<const void*, ValueId>& tables_;
  const Node& node_;
  const BlockFormat& format_;
  const ValueId result_;
  Kernel kernel_;
  Puller puller_;
};

class Decoding : public BlockKernelBuilder {
 public:
  using BlockKernelBuilder::BlockKernelBuilder;

  Kernel kernel() {
    const ValueId blocks = node_.operands[0];
    const Dims& shape = type(blocks).shape;
    std::vector<Index> row;
    for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis) row.push_back(variable(shape[axis], kernel_.loops));
    const Index number = variable(*Dim::exact_div(shape.back(), format_.bytes), kernel_.loops);
    const std::int64_t run = std::min(format_.values, most_neighbours);
    const Index first = variable(format_.values / run, kernel_.loops) * Dim(run), j = first + variable(run, kernel_.loops);
    std::vector<Index> at = row;
    at.push_back(number * Dim(format_.values) + j);
    store(flatten(at, type(result_).shape), element(blocks, row, number, j));
    return std::move(kernel_);
  }
};

/// A product of `rows` rows at each position, by vectors of as many columns as are interleaved.
class BlockProduct : public BlockKernelBuilder {
 public:
  BlockProduct(const BlockGraph& graph, std::int32_t node, const Puller::IsStored& is_stored, const ScheduleOptions& schedule)
      : BlockKernelBuilder(graph, node, is_stored, schedule),
        width_(graph.interleaved.empty() ? 1 : schedule.vector),
        coded_(coded_operand(graph_, node_.operands[0])) {}

  Kernel kernel(std::int64_t rows) {
    const Type& x = type(node_.operands[0]);
    const Dim depth = x.shape.back(), all_rows = *Dim::exact_div(x.size(), depth);
    const std::int64_t columns = type(result_).shape.back().value(), width = columns % width_ == 0 ? width_ : 1;
    const Index first = variable(all_rows, kernel_.loops);
    if (!kernel_.loops.empty()) kernel_.variables.back().step = static_cast<int>(rows);
    const std::int64_t beside = in_groups_ && rows == 1 && width == 1 ? columns_of_group(columns) : 1;
    const Index group = variable(columns / width, kernel_.loops);
    if (beside > 1) kernel_.variables.back().step = static_cast<int>(beside);
    const Index first_column = group * Dim(width) + variable(width, kernel_.loops);
    const Index number = variable(*Dim::exact_div(depth, format_.values), terms_);
    // A lane of a group has neighbours whose scales, and what bits of two share a byte, lie at places that their run's number alone
    // decides.
    const int runs = in_groups_ && format_.values % (most_neighbours * runs_of_group) == 0 ? runs_of_group : side_by_side;
    const Index first_run = variable(format_.values / (most_neighbours * runs), terms_);
    const Index i = variable(most_neighbours, terms_);
    const bool scaled = rows == 1 || coded_;  // what neighbours share is multiplied once
    for (std::int64_t result = 0; result < rows * beside; ++result) {
      const Index row = rows == 1 ? first : row_at(first, result, rows, all_rows);
      const Index column = beside == 1 ? first_column : first_column + Index(Dim(result));
      std::vector<Index> of_weights{column};
      if (node_.operands.size() == 3)
        of_weights.insert(of_weights.begin(), puller_.read_index(node_, 2, {row}, type(node_.operands[1]).shape[0]));
      ExprId sum = -1;
      for (int side = 0; side < runs; ++side) {
        const Index j = first_run * Dim(most_neighbours * runs) + Index(Dim(side * most_neighbours)) + i;
        const ExprId weight = element(node_.operands[1], of_weights, number, j);
        const Index at = row * depth + number * Dim(format_.values) + j;
        const ExprId factor = coded_ ? load_at(coded_->codes, at) : load_at(node_.operands[0], at);
        ExprId part = scaled ? scaled_sum(weight, factor) : total(kernel_.scalar(ScalarOp::mul, {factor, weight}, f32), terms_);
        if (coded_) part = product(part, load_at(coded_->scales, Index::quotient(at - i, EightBits::group)));
        sum = sum < 0 ? part : kernel_.scalar(ScalarOp::add, {sum, part}, f32);
      }
      if (scaled) sum = total_of_scaled(sum);
      if (x.dtype != f32) sum = kernel_.scalar(ScalarOp::cast, {sum}, x.dtype);
      store(row * Dim(columns) + column, sum);
    }
    return std::move(kernel_);
  }

 private:
  /// Row `first + r` of those of a position, of `count` in all, or the last one again behind it.
  Index row_at(const Index& first, std::int64_t r, std::int64_t count, const Dim& rows) {
    Index row = first + Index(Dim(r));
    if (rows.is_static() && rows.value() % count == 0) return row;
    const auto number = [&](const Index& index) {
      Expr e;
      e.kind = Expr::Kind::position;
      e.dtype = i64;
      e.index = index;
      return kernel_.add(std::move(e));
    };
    return Index::loaded(kernel_.scalar(ScalarOp::min, {number(row), number(Index(rows - Dim(1)))}, i64), rows);
  }
  /// An element of a stored value, as f32.
  ExprId load_at(ValueId value, const Index& at) {
    Expr load;
    load.kind = Expr::Kind::load;
    load.dtype = type(value).dtype;
    load.buffer = puller_.buffer_of(value, false);
    load.index = at;
    load.last = type(value).size() - Dim(1);
    const ExprId loaded = kernel_.add(std::move(load));
    return type(value).dtype == f32 ? loaded : kernel_.scalar(ScalarOp::cast, {loaded}, f32);
  }
  ExprId total(ExprId term, std::vector<int> variables) {
    if (variables.empty()) return term;
    Expr sum;
    sum.kind = Expr::Kind::reduce;
    sum.reduce = ReduceKind::sum;
    sum.dtype = kernel_.expr(term).dtype;
    sum.args = {term};
    sum.variables = std::move(variables);
    sum.origin = result_;
    return kernel_.add(std::move(sum));
  }

  /// A number of neighbours as scale * code + offset, where the code alone differs from one to the next. -1: 1 for factors, and no offset.
  struct Line {
    ExprId scale = -1, code = -1, offset = -1;
    bool is_same() const { return code < 0; }
  };
  ExprId product(ExprId a, ExprId b) { return a < 0 ? b : b < 0 ? a : kernel_.scalar(ScalarOp::mul, {a, b}, f32); }
  Line line(ExprId id) {
    const Expr e = kernel_.expr(id);
    if (!free_variables(kernel_)[static_cast<std::size_t>(id)].count(terms_.back())) return {-1, -1, id};
    const Line whole{-1, id, -1};
    if (e.kind != Expr::Kind::scalar || e.args.size() != 2) return whole;
    const Line a = line(e.args[0]), b = line(e.args[1]);
    if (e.op == ScalarOp::mul) {
      if (a.is_same() || b.is_same()) {
        const Line& of = a.is_same() ? b : a;
        const ExprId by = a.is_same() ? a.offset : b.offset;
        return {product(of.scale, by), of.code, of.offset < 0 ? -1 : product(of.offset, by)};
      }
      return a.offset < 0 && b.offset < 0 ? Line{product(a.scale, b.scale), product(a.code, b.code), -1} : whole;
    }
    const bool adds_same = (e.op == ScalarOp::add || e.op == ScalarOp::sub) && b.is_same() && a.offset < 0;
    if (!(in_groups_ || coded_) || !adds_same) return whole;
    return {a.scale, a.code, e.op == ScalarOp::add ? b.offset : kernel_.scalar(ScalarOp::neg, {b.offset}, f32)};
  }
  /// The sum over neighbours of `factor` times `weight`, where what of the weight is the same for all of them is multiplied once.
  ExprId scaled_sum(ExprId weight, ExprId factor) {
    const std::vector<int> neighbours{terms_.back()};
    const Line of = line(weight);
    const auto integers = coded_ && of.code >= 0 ? sum_of_codes(of.code, factor) : std::nullopt;
    const ExprId sum = product(of.scale, integers ? *integers : total(product(factor, of.code), neighbours));
    if (of.offset < 0) return sum;
    const ExprId all = coded_ ? sum_of_integers(integer(factor)) : total(factor, neighbours);
    return kernel_.scalar(ScalarOp::add, {sum, product(of.offset, all)}, f32);
  }
  /// The same of codes of both, in integers, where a loop adds these by fours.
  std::optional<ExprId> sum_of_codes(ExprId weight, ExprId factor) {
    const Expr& widened = kernel_.expr(weight);
    if (widened.kind != Expr::Kind::scalar || widened.op != ScalarOp::cast || width_ == 1) return std::nullopt;
    const ExprId code = widened.args[0];
    const DotLanes lanes{kernel_.loops.back(), terms_.back(), static_cast<int>(width_)};
    if (!is_dot_code(kernel_, free_variables(kernel_), code, lanes)) return std::nullopt;
    return sum_of_integers(kernel_.scalar(ScalarOp::mul, {integer(factor), code}, i32));
  }
  /// A code of x, which `factor` has as f32.
  ExprId integer(ExprId factor) { return kernel_.scalar(ScalarOp::cast, kernel_.expr(factor).args, i32); }
  ExprId sum_of_integers(ExprId term) { return kernel_.scalar(ScalarOp::cast, {total(term, {terms_.back()})}, f32); }
  ExprId total_of_scaled(ExprId sum) { return total(sum, {terms_.begin(), terms_.end() - 1}); }

  std::int64_t width_;
  std::optional<CodedOperand> coded_;  // x
  std::vector<int> terms_;
};

bool is_narrow_float(DType t) { return t == f32 || t == f16 || t == bf16; }

}  // namespace

bool has_block_kernels(const Graph& graph, const Node& node, const Caps& caps) {
  if (!reads_blocks(node)) return false;
  const BlockFormat& format = format_of(node);
  if (node.op->name == "decode_blocks") return caps.has(f64) || format.name != "F64";
  const Type &x = graph.type(node.operands[0]), &blocks = graph.type(node.operands[1]);
  return (caps.schedule.dots || !std::get<bool>(node.attrs[1])) && format.values > 1 && is_narrow_float(x.dtype) && caps.has(x.dtype) &&
         blocks.is_static() && x.shape.back().is_static();
}

std::vector<BlockKernelOfRows> block_kernels(const BlockGraph& graph, std::int32_t node, const std::function<bool(ValueId)>& is_stored,
                                             const Caps& caps) {
  const Node& of = graph.graph.node(node);
  std::vector<BlockKernelOfRows> kernels;
  const auto add = [&](Kernel kernel) -> BlockKernelOfRows& { return kernels.emplace_back(std::move(kernel), std::nullopt); };
  if (of.op->name == "decode_blocks") {
    add(Decoding(graph, node, is_stored, caps.schedule).kernel());
    return kernels;
  }
  const auto product = [&](std::int64_t rows) { return BlockProduct(graph, node, is_stored, caps.schedule).kernel(rows); };
  const Type& x = graph.graph.type(of.operands[0]);
  const Dim rows = *Dim::exact_div(x.size(), x.shape.back());
  const bool is_grouped = of.operands.size() == 3;
  const bool is_column = graph.graph.type({node, 0}).shape.back() == Dim(1);  // so that rows are not the innermost loop by steps
  const bool one_by_one = is_grouped || is_column || rows.upper() == 1;
  if (one_by_one || rows.lower() == 1) add(product(1));
  if (!one_by_one) add(product(std::min(rows.upper(), most_rows)));
  if (kernels.size() > 1) {
    kernels[0].rows = SizeRange{rows, 1, 1};
    kernels[1].rows = SizeRange{rows, 2, rows.upper()};
  }
  return kernels;
}

Kernel block_run(std::string_view type, const std::array<ValueId, 2>& buffers, const std::map<const void*, ValueId>& tables) {
  const BlockFormat& format = *find_block_format(type);
  Kernel kernel;
  kernel.tile = true;
  kernel.buffers = {{buffers[0], u8, false, false}, {buffers[1], f32, true}};
  const Dim pairs = format.values / (2 * run_of_block), neighbours = run_of_block;
  kernel.loops = {kernel.add_variable(pairs), kernel.add_variable(2), kernel.add_variable(neighbours)};
  const Index pair = Index::variable(kernel.loops[0], pairs), side = Index::variable(kernel.loops[1], 2);
  const Index i = Index::variable(kernel.loops[2], neighbours);
  const auto buffer_of = [&kernel](ValueId table) {
    const auto at = std::ranges::find(kernel.buffers, table, &KernelBuffer::value);
    if (at != kernel.buffers.end()) return static_cast<int>(at - kernel.buffers.begin());
    kernel.buffers.push_back({table, u16});
    return static_cast<int>(kernel.buffers.size()) - 1;
  };
  KernelBlock block{&kernel, [&](const Index& at) { return load_of(kernel, 0, u8, at, format.bytes); }, entry_of(kernel, tables, buffer_of),
                    true};
  const ExprId value = block_value(type, block, pair * (neighbours * Dim(2)) + side * neighbours + i);
  kernel.stores.push_back({1, i, value});
  simplify(kernel);
  return kernel;
}

}  // namespace rlx
