#include "backends/cpu/attention/run.h"

#include "backends/cpu/attention/attention.h"

namespace rlx::cpu {
namespace {

/// A strided operand with the slot of its memory.
struct OperandStep {
  int slot = -1;  // -1: there is none
  SizeFunction offset;
  std::vector<SizeFunction> strides;
};

}  // namespace

struct AttentionStep {
  const Attention* attention = nullptr;
  bool wide_positions = false;  // i64
  std::vector<SizeFunction> batch;
  SizeFunction heads, kv_heads, queries, keys, head_size, value_size;
  OperandStep q, k, v, out, mask, bias, positions;
};

std::shared_ptr<const AttentionStep> prepare_attention(const Attention& attention, const Program& program,
                                                       const std::function<int(ValueId)>& slot_of) {
  const auto size = [&](const Dim& dim) { return SizeFunction(dim, program.symbols); };
  const auto operand = [&](const StridedOperand& given) {
    OperandStep result{slot_of(given.value), size(given.offset), {}};
    for (const Dim& stride : given.strides) result.strides.push_back(size(stride));
    return result;
  };
  auto step = std::make_shared<AttentionStep>();
  step->attention = &attention;
  for (const Dim& extent : attention.batch) step->batch.push_back(size(extent));
  step->heads = size(attention.heads), step->kv_heads = size(attention.kv_heads);
  step->queries = size(attention.queries), step->keys = size(attention.keys);
  step->head_size = size(attention.head_size), step->value_size = size(attention.value_size);
  step->q = operand(attention.q), step->k = operand(attention.k), step->v = operand(attention.v), step->out = operand(attention.out);
  if (attention.mask) step->mask = operand(*attention.mask);
  if (attention.bias) step->bias = operand(*attention.bias);
  if (attention.positions) {
    step->positions = operand(*attention.positions);
    step->wide_positions = program.graph.type(attention.positions->value).dtype == i64;
  }
  return step;
}

namespace {

/// The operands of one run: their addresses, and where the items of the batch begin.
class Operands {
 public:
  Operands(const AttentionStep& step, const RunState& run) : step_(step), run_(run) {}

  std::int64_t size(const SizeFunction& function) const { return function(run_.symbols.data()); }

  template <class T>
  T* data(const OperandStep& operand) const {
    return reinterpret_cast<T*>(run_.memory[static_cast<std::size_t>(operand.slot)]) + size(operand.offset);
  }

  /// The last three axes are head, row and column. `items` keeps the offsets.
  template <class T>
  AttentionOperand<T> operator()(const OperandStep& operand, std::vector<std::int64_t>& items) const {
    if (operand.slot < 0) return {};
    items = item_offsets(operand);
    const SizeFunction* axes = operand.strides.data() + step_.batch.size();
    return {data<T>(operand), items.data(), size(axes[0]), size(axes[1]), size(axes[2])};
  }

  std::vector<std::int64_t> item_offsets(const OperandStep& operand) const {
    std::vector<std::int64_t> items{0};
    for (std::size_t axis = 0; axis < step_.batch.size(); ++axis) {
      const std::int64_t extent = size(step_.batch[axis]), stride = size(operand.strides[axis]);
      std::vector<std::int64_t> next;
      next.reserve(items.size() * static_cast<std::size_t>(extent));
      for (std::int64_t base : items)
        for (std::int64_t i = 0; i < extent; ++i) next.push_back(base + i * stride);
      items = std::move(next);
    }
    return items;
  }

  /// (batch, queries)
  std::vector<std::int32_t> positions(std::int64_t queries) const {
    std::vector<std::int32_t> all;
    if (step_.positions.slot < 0) return all;
    const std::int64_t stride = size(step_.positions.strides.back());
    for (std::int64_t item : item_offsets(step_.positions))
      for (std::int64_t query = 0; query < queries; ++query) {
        const std::int64_t at = item + query * stride;
        all.push_back(step_.wide_positions ? static_cast<std::int32_t>(data<const std::int64_t>(step_.positions)[at])
                                           : data<const std::int32_t>(step_.positions)[at]);
      }
    return all;
  }

 private:
  const AttentionStep& step_;
  const RunState& run_;
};

template <class T>
void run_on(const AttentionStep& step, const RunState& run) {
  const Operands operands(step, run);
  AttentionArgs<T> args;
  args.level = run.level;
  for (const SizeFunction& extent : step.batch) args.batch *= operands.size(extent);
  args.heads = operands.size(step.heads), args.kv_heads = operands.size(step.kv_heads);
  args.queries = operands.size(step.queries), args.keys = operands.size(step.keys);
  args.head_size = operands.size(step.head_size), args.value_size = operands.size(step.value_size);
  std::vector<std::int64_t> q, k, v, mask, bias, out;
  args.q = operands.operator()<const T>(step.q, q);
  args.k = operands.operator()<const T>(step.k, k);
  args.v = operands.operator()<const T>(step.v, v);
  args.mask = operands.operator()<const std::uint8_t>(step.mask, mask);
  args.bias = operands.operator()<const float>(step.bias, bias);
  args.out = operands.operator()<T>(step.out, out);
  const std::vector<std::int32_t> positions = operands.positions(args.queries);
  if (step.positions.slot >= 0) args.positions = positions.data();
  args.scale = static_cast<float>(step.attention->scale);
  args.softcap = static_cast<float>(step.attention->softcap);
  args.causal = step.attention->causal;
  args.window = step.attention->window;
  args.workspace = workspace(run, attention_workspace(args, run.pool->size()));
  attention(args, *run.pool);
}

}  // namespace

void run_attention(const AttentionStep& step, const RunState& run) {
  if (run.program->graph.type(step.attention->node).dtype == bf16) run_on<Bf16>(step, run);
  else run_on<float>(step, run);
}

}  // namespace rlx::cpu
