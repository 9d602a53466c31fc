#include "backends/cpu/attention/step.h"

#include <algorithm>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/execution/execute.h"
#include "backends/cpu/gemm/blocking.h"
#include "backends/cpu/machine/level_of.h"

namespace rlx::cpu {
namespace {

/// A table of pages with the slot of its memory.
struct PageStep {
  int slot = -1;  // -1: there is none
  Size offset;
  std::vector<Size> strides;
  Size pages, stride;
  std::int64_t rows = 0;
};

/// A strided operand with the slot of its memory.
struct OperandStep {
  int slot = -1;  // -1: there is none
  Size offset;
  std::vector<Size> strides;
  PageStep pages = {};
};

struct AttentionStep {
  const AttentionViews* attention = nullptr;
  bool wide_positions = false;  // i64
  std::vector<Size> batch;
  Size heads, kv_heads, queries, keys, head_size, value_size;
  OperandStep q, k, v, out, mask, bias, positions, k_scales, v_scales;
};

}  // namespace

void prepare_step(const AttentionViews& attention, Step& of_launch, const Preparation& given) {
  SizeTable& size = given.sizes;
  const auto& slot_of = given.slot_of;
  const auto sizes = [&](const std::vector<Dim>& dims) {
    std::vector<Size> all;
    for (const Dim& dim : dims) all.push_back(size(dim));
    return all;
  };
  const auto operand = [&](const StridedOperand& given) {
    OperandStep result{slot_of(given.value), size(given.offset), sizes(given.strides)};
    if (const auto& p = given.pages)
      result.pages = {slot_of(p->value), size(p->offset), sizes(p->strides), size(p->pages), size(p->stride), p->rows};
    return result;
  };
  auto step = std::make_shared<AttentionStep>();
  step->attention = &attention;
  for (const Dim& extent : attention.batch) step->batch.push_back(size(extent));
  step->heads = size(attention.heads), step->kv_heads = size(attention.kv_heads);
  step->queries = size(attention.queries), step->keys = size(attention.keys);
  step->head_size = size(attention.head_size), step->value_size = size(attention.value_size);
  step->q = operand(attention.q), step->k = operand(attention.k), step->v = operand(attention.v), step->out = operand(attention.out);
  if (attention.k_scales) step->k_scales = operand(attention.k_scales->operand);
  if (attention.v_scales) step->v_scales = operand(attention.v_scales->operand);
  if (attention.mask) step->mask = operand(*attention.mask);
  if (attention.bias) step->bias = operand(*attention.bias);
  if (attention.positions) {
    step->positions = operand(*attention.positions);
    step->wide_positions = given.program.graph.type(attention.positions->value).dtype == i64;
  }
  of_launch.found = std::move(step);
}

namespace {

/// Where the items of an operand by key begin, and its pages.
struct KeyOffsets {
  std::vector<std::int64_t> items, pages;
};

/// The operands of one run: their addresses, and where the items of the batch begin. Neighbours of one query each that read the same pages
/// are one item with several queries: tokens of one sequence share the work of reading its keys.
class Operands {
 public:
  Operands(const AttentionStep& step, const RunState& run) : step_(step), run_(run) {
    for (const Size& extent : step.batch) batch_ *= size(extent);
    const bool may_join = step.batch.size() == 1 && size(step.queries) == 1 && step.positions.slot >= 0 && step.mask.slot < 0 &&
                          step.bias.slot < 0 && step.k.pages.slot >= 0 && step.v.pages.slot >= 0;
    for (std::int64_t item = 0; item < batch_; ++item)
      if (item == 0 || !may_join || !same_pages(step.k.pages, item) || !same_pages(step.v.pages, item)) firsts_.push_back(item);
    is_joined_ = static_cast<std::int64_t>(firsts_.size()) < batch_;
    firsts_.push_back(batch_);
  }

  std::int64_t size(const Size& size) const { return size(run_.sizes.data()); }

  std::int64_t items() const { return static_cast<std::int64_t>(firsts_.size()) - 1; }
  /// See AttentionArgs.
  const std::int64_t* first_queries() const { return is_joined_ ? firsts_.data() : nullptr; }

  template <class T>
  T* data(const OperandStep& operand) const {
    return reinterpret_cast<T*>(run_.memory[static_cast<std::size_t>(operand.slot)]) + size(operand.offset);
  }

  /// The last three axes are head, row and column. `items` keeps the offsets.
  template <class T>
  AttentionOperand<T> operator()(const OperandStep& operand, std::vector<std::int64_t>& items) const {
    if (operand.slot < 0) return {};
    items = item_offsets(operand.strides);
    const Size* axes = operand.strides.data() + step_.batch.size();
    return {data<T>(operand), items.data(), size(axes[0]), size(axes[1]), size(axes[2])};
  }

  /// The same of queries and results: what were items of a batch are rows.
  template <class T>
  AttentionOperand<T> by_query(const OperandStep& operand, std::vector<std::int64_t>& items) const {
    AttentionOperand<T> result = operator()<T>(operand, items);
    if (is_joined_) result.row_stride = size(operand.strides[0]);
    return result;
  }

  /// The same of keys and values; `offsets` keeps where their pages begin, too.
  template <class T>
  AttentionOperand<T> by_key(const OperandStep& operand, KeyOffsets& offsets) const {
    AttentionOperand<T> result = operator()<T>(operand, offsets.items);
    if (operand.pages.slot < 0) return result;
    offsets.pages = page_starts(operand.pages);
    result.pages = offsets.pages.data(), result.page_rows = operand.pages.rows, result.item_pages = page_count(operand.pages);
    return result;
  }

  /// Of all queries, item by item.
  std::vector<std::int32_t> positions(std::int64_t queries) const {
    std::vector<std::int32_t> all;
    if (step_.positions.slot < 0) return all;
    const std::int64_t stride = size(step_.positions.strides.back());
    for (std::int64_t item : batch_offsets(step_.positions.strides))
      for (std::int64_t query = 0; query < queries; ++query) {
        const std::int64_t at = item + query * stride;
        all.push_back(step_.wide_positions ? static_cast<std::int32_t>(data<const std::int64_t>(step_.positions)[at])
                                           : data<const std::int32_t>(step_.positions)[at]);
      }
    return all;
  }

 private:
  /// Where each entry of the batch begins.
  std::vector<std::int64_t> batch_offsets(const std::vector<Size>& strides) const {
    std::vector<std::int64_t> items{0};
    for (std::size_t axis = 0; axis < step_.batch.size(); ++axis) {
      const std::int64_t extent = size(step_.batch[axis]), stride = size(strides[axis]);
      std::vector<std::int64_t> next;
      next.reserve(items.size() * static_cast<std::size_t>(extent));
      for (std::int64_t base : items)
        for (std::int64_t i = 0; i < extent; ++i) next.push_back(base + i * stride);
      items = std::move(next);
    }
    return items;
  }

  /// Where the first entry of each item begins.
  std::vector<std::int64_t> item_offsets(const std::vector<Size>& strides) const {
    std::vector<std::int64_t> all = batch_offsets(strides);
    if (!is_joined_) return all;
    std::vector<std::int64_t> offsets;
    for (std::int64_t item = 0; item < items(); ++item)
      offsets.push_back(all[static_cast<std::size_t>(firsts_[static_cast<std::size_t>(item)])]);
    return offsets;
  }

  /// Pages of one item.
  std::int64_t page_count(const PageStep& table) const { return divide_up(size(step_.keys), table.rows); }

  const std::int32_t* entries(const PageStep& table) const {
    return reinterpret_cast<const std::int32_t*>(run_.memory[static_cast<std::size_t>(table.slot)]) + size(table.offset);
  }

  /// Of an only axis of a batch: whether an entry has the pages of the one before it.
  bool same_pages(const PageStep& table, std::int64_t entry) const {
    const std::int64_t stride = size(table.strides[0]), step = size(table.strides[1]), count = page_count(table);
    const std::int32_t* const mine = entries(table) + entry * stride;
    for (std::int64_t page = 0; page < count; ++page)
      if (mine[page * step] != mine[page * step - stride]) return false;
    return true;
  }

  /// (items, page_count), in elements.
  std::vector<std::int64_t> page_starts(const PageStep& table) const {
    const std::int64_t last = size(table.pages) - 1, stride = size(table.stride), step = size(table.strides.back());
    const std::int64_t count = page_count(table);
    std::vector<std::int64_t> starts;
    for (std::int64_t item : item_offsets(table.strides))
      for (std::int64_t page = 0; page < count; ++page)
        starts.push_back(std::clamp<std::int64_t>(entries(table)[item + page * step], 0, last) * stride);
    return starts;
  }

  const AttentionStep& step_;
  const RunState& run_;
  std::int64_t batch_ = 1;
  std::vector<std::int64_t> firsts_;  // the first entry of the batch in each item, and the end
  bool is_joined_ = false;
};

template <class T, class K>
void run_on(const AttentionStep& step, const RunState& run) {
  const Operands operands(step, run);
  AttentionArgs<T, K> args;
  args.level = level_of(*run.target);
  args.batch = operands.items(), args.first_queries = operands.first_queries();
  args.heads = operands.size(step.heads), args.kv_heads = operands.size(step.kv_heads);
  args.queries = operands.size(step.queries), args.keys = operands.size(step.keys);
  args.head_size = operands.size(step.head_size), args.value_size = operands.size(step.value_size);
  std::vector<std::int64_t> q, mask, bias, out;
  KeyOffsets k, v, k_scales, v_scales;
  args.q = operands.by_query<const T>(step.q, q);
  args.k = operands.by_key<const K>(step.k, k), args.v = operands.by_key<const K>(step.v, v);
  args.k_factors.operand = operands.by_key<const float>(step.k_scales, k_scales);
  args.v_factors.operand = operands.by_key<const float>(step.v_scales, v_scales);
  if (step.attention->k_scales) args.k_factors.shift = step.attention->k_scales->shift;
  if (step.attention->v_scales) args.v_factors.shift = step.attention->v_scales->shift;
  args.mask = operands.operator()<const std::uint8_t>(step.mask, mask);
  args.bias = operands.operator()<const float>(step.bias, bias);
  args.out = operands.by_query<T>(step.out, out);
  const std::vector<std::int32_t> positions = operands.positions(args.queries);
  if (step.positions.slot >= 0) args.positions = positions.data();
  args.scale = static_cast<float>(step.attention->scale);
  args.softcap = static_cast<float>(step.attention->softcap);
  args.causal = step.attention->causal;
  args.window = step.attention->window;
  args.int16 = step.attention->int16;
  args.workspace = workspace(run, attention_workspace(args, run.pool->size()));
  attention(args, *run.pool);
}

}  // namespace

void run_step(const AttentionViews& attention, const Step& of_launch, const RunState& run) {
  const auto& step = of_launch.found_as<AttentionStep>();
  const Graph& graph = run.program->graph;
  const DType keys = graph.type(attention.k.value).dtype;
  if (graph.type(attention.node).dtype == bf16) run_on<Bf16, Bf16>(step, run);
  else if (keys == bf16) run_on<float, Bf16>(step, run);
  else if (keys == f16) run_on<float, F16>(step, run);
  else if (keys == i8) run_on<float, std::int8_t>(step, run);
  else run_on<float, float>(step, run);
}

}  // namespace rlx::cpu
