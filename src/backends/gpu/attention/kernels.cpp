#include "backends/gpu/attention/kernels.h"

#include <algorithm>
#include <limits>

#include "emit/c_scalar.h"
#include "passes/run_invariant.h"

namespace rlx::gpu {
namespace {

constexpr std::string_view definitions = R"(
struct Bf16 {{ unsigned short bits; }};
struct F16 {{ unsigned short bits; }};
__device__ inline float widened(float x) {{ return x; }}
__device__ inline float widened(signed char x) {{ return x; }}
__device__ inline float widened(Bf16 x) {{ return {bf16_to_f32}; }}
__device__ inline float widened(F16 x) {{ return {f16_to_f32}; }}
__device__ inline float narrowed(float x, float*) {{ return x; }}
__device__ inline Bf16 narrowed(float x, Bf16*) {{ return {{{f32_to_bf16}}}; }}
__device__ inline F16 narrowed(float x, F16*) {{ return {{{f32_to_f16}}}; }}

/// An operand of one item of the batch: row `r` of a head, perhaps in a page that a table names.
template <class T>
struct Rows {{
  T* data;
  long long head, row, column;
  const int* table;
  long long entry, page_rows, page, pages;
  __device__ T* at(long long h, long long r) const {{
    T* const of_head = data + h * head;
    if (!table) return of_head + r * row;
    long long number = table[r / page_rows * entry];
    number = number < 0 ? 0 : number >= pages ? pages - 1 : number;
    return of_head + number * page + r % page_rows * row;
  }}
}};
)";

constexpr std::string_view problem = R"(
struct Problem {
  long long queries, keys, share, kv_head, first_row;
  Rows<const Q> q;
  Rows<const K> k;
  Rows<const V> v;
  Rows<Out> out;
  Rows<const bool> mask;
  Rows<const float> bias, k_scales, v_scales;
  Rows<const Position> positions;
  float* parts;  // of the rows of a head, split by split: values, the most, and the sum
  long long split;
  const void *k_map, *v_map;  // of boxes
  int item;                   // in these
};

/// What each row sees of the keys, as far as positions and window go: nothing where the first is behind the last.
__device__ void find_visible(const Problem& p, int* first_keys, int* last_keys) {
  if (threadIdx.x >= tile_rows) return;
  const long long row = p.first_row + threadIdx.x, query = row / p.share;
  long long first = 0, last = p.keys - 1;
  if (row >= p.queries * p.share) {
    first = p.keys, last = -1;
  } else if (causal || window > 0) {
    const long long position = p.positions.data ? (long long)p.positions.at(0, query)[0] : p.keys - p.queries + query;
    if (position < last) last = position;
    if (window > 0 && position - window + 1 > first) first = position - window + 1;
  }
  first_keys[threadIdx.x] = (int)(first < p.keys ? first : p.keys), last_keys[threadIdx.x] = (int)(last > -1 ? last : -1);
}

/// The score of a query and a key from the product of their features, before masks of positions.
__device__ inline float score(const Problem& p, float product, long long head, long long query, long long key) {
  float x = product * scale;
  if constexpr (softcap > 0) x = tanhf(x / softcap) * softcap;
  if constexpr (biased) x += widened(p.bias.at(head, query)[key * p.bias.column]);
  if constexpr (masked)
    if (!p.mask.at(head, query)[key * p.mask.column]) x = -INFINITY;
  return x;
}
)";

std::string memory_type(DType t) {
  if (t == bf16) return "Bf16";
  if (t == f16) return "F16";
  return t == f32 ? "float" : t == i8 ? "signed char" : t == i64 ? "long long" : t == i32 ? "int" : "bool";
}

/// Of the rows of a head.
Dim part_numbers(const AttentionViews& a, int splits) { return (a.value_size + 2) * Dim(std::int64_t{split_rows} * splits); }

/// Prints one way to compute the op.
class KernelWriter {
 public:
  KernelWriter(const Draft& draft, const AttentionViews& attention, const AttentionCode& code, ValueId scratch)
      : graph_(draft.graph), attention_(attention), code_(code), scratch_(scratch), scalars_(cuda_dialect()) {
    kernel_.symbols = draft.symbols;
  }

  GeneratedKernel write() {
    const std::string operands = problem_text();
    const std::string types =
        fmt::format(definitions, fmt::arg("bf16_to_f32", scalars_.from_memory("x.bits", bf16)),
                    fmt::arg("f16_to_f32", scalars_.from_memory("x.bits", f16)), fmt::arg("f32_to_bf16", scalars_.to_memory("x", bf16)),
                    fmt::arg("f32_to_f16", scalars_.to_memory("x", f16)));
    std::string text = std::string(cuda_dialect().header) + scalars_.prelude() + code_.shared;
    text += fmt::format("namespace {}_of {{{}{}{}{}}}\n", name_marker, types, constants(), problem, code_.text);
    text += fmt::format("extern \"C\" __global__ void __launch_bounds__({}) {}({}) {{\n{}}}\n", code_.lanes, name_marker, parameters(),
                        operands);
    KernelText named = named_by_hash(std::move(text), cuda_dialect().name, std::move(grid_));
    for (const KernelBuffer& buffer : kernel_.buffers) named.element_bytes.push_back(std::max(info(buffer.dtype).bits / 8, 1));
    named.group = code_.lanes, named.on_chip_bytes = code_.on_chip_bytes;
    if (!code_.maps.empty()) named.maps = code_.maps, named.symbols = kernel_.symbols;
    std::vector<std::int64_t> first(kernel_.buffers.size(), 0);
    return {std::move(kernel_), std::move(named), nullptr, std::move(first)};
  }

 private:
  std::string size(const Dim& dim) const {
    std::string total;
    for (const Dim::Term& term : dim.terms()) {
      std::string part = fmt::format("{}ll", term.coefficient);
      for (const auto& symbol : term.symbols)
        part += fmt::format(" * s{}", std::ranges::find(kernel_.symbols, symbol->name) - kernel_.symbols.begin());
      total += (total.empty() ? "" : " + ") + part;
    }
    return total.empty() ? "0" : "(" + total + ")";
  }
  std::string constants() const {
    const auto type = [&](ValueId v) { return memory_type(graph_.type(v).dtype); };
    const AttentionViews& a = attention_;
    std::string text = fmt::format("typedef {} Q;\ntypedef {} K;\ntypedef {} V;\ntypedef {} Out;\n", type(a.q.value), type(a.k.value),
                                   type(a.v.value), type(a.out.value));
    text += fmt::format("typedef {} Position;\n", a.positions ? type(a.positions->value) : "int");
    text += fmt::format(
        "constexpr int features = {}, values = {}, lanes = {}, tile_rows = {}, tile_keys = {}, splits = {}, k_shift = {}, v_shift = {};\n",
        a.head_size.value(), a.value_size.value(), code_.lanes, code_.rows, code_.keys, code_.splits, a.k_scales ? a.k_scales->shift : 0,
        a.v_scales ? a.v_scales->shift : 0);
    return text + fmt::format(
                      "constexpr bool causal = {}, masked = {}, biased = {};\nconstexpr long long window = {};\nconstexpr float scale = "
                      "{:a}f, softcap = {:a}f;\n",
                      a.causal, a.mask.has_value(), a.bias.has_value(), a.window, static_cast<float>(a.scale),
                      static_cast<float>(a.softcap));
  }

  /// Declares a loop of the grid, whose position is the remainder of what is left. Runs of rows go backwards, as where the op is causal the
  /// last ones take longest.
  std::string loop(const Dim& extent, int step, const std::string& name) {
    grid_.insert(grid_.begin(), {kernel_.add_variable(extent), step});
    kernel_.variables.back().step = step;
    kernel_.loops.insert(kernel_.loops.begin(), grid_.front().loop);
    const std::string count = step == 1 ? size(extent) : fmt::format("(({} + {}) / {})", size(extent), step - 1, step);
    const std::string at = step == 1 ? "rest % " + count : fmt::format("({0} - 1 - rest % {0}) * {1}", count, step);
    return fmt::format("  const long long {} = {};\n  rest /= {};\n", name, at, count);
  }
  std::string problem_text() {
    const AttentionViews& a = attention_;
    const Dim share = *Dim::exact_div(a.heads, a.kv_heads);
    std::string text = "  long long rest = blockIdx.x;\n";
    if (code_.is_part) text += loop(code_.splits, 1, "split") + "  const long long first_row = 0;\n";
    else text += loop(a.queries * share, code_.rows, "first_row");
    text += loop(a.kv_heads, 1, "kv_head");
    for (std::size_t axis = a.batch.size(); axis-- > 0;) text += loop(a.batch[axis], 1, fmt::format("item{}", axis));
    text +=
        fmt::format("  {}_of::Problem p = {{{}, {}, {}, kv_head, first_row}};\n", name_marker, size(a.queries), size(a.keys), size(share));
    for (const auto& [name, operand] : {std::pair{"q", &a.q}, {"k", &a.k}, {"v", &a.v}, {"out", &a.out}}) text += rows(name, *operand);
    for (const auto& [name, operand] : {std::pair{"mask", &a.mask}, {"bias", &a.bias}, {"positions", &a.positions}})
      if (*operand) text += rows(name, **operand);
    if (code_.splits > 0) text += parts();
    if (!code_.maps.empty()) text += fmt::format("  p.k_map = &k_map, p.v_map = &v_map, p.item = (int){};\n", head_number());
    if (a.k_scales) text += rows("k_scales", a.k_scales->operand);
    if (a.v_scales) text += rows("v_scales", a.v_scales->operand);
    return text + fmt::format("  {}_of::attend(p);\n", name_marker);
  }
  /// The number of the head of keys among those of the batch.
  std::string head_number() const {
    std::string head = "0";
    for (std::size_t axis = 0; axis < attention_.batch.size(); ++axis)
      head = fmt::format("({} * {} + item{})", head, size(attention_.batch[axis]), axis);
    return fmt::format("({} * {} + kv_head)", head, size(attention_.kv_heads));
  }
  std::string parts() {
    kernel_.buffers.push_back({scratch_, f32, code_.is_part});
    return fmt::format("  p.parts = (float*)b{} + {} * {};\n{}", kernel_.buffers.size() - 1, head_number(),
                       size(part_numbers(attention_, code_.splits)), code_.is_part ? "  p.split = split;\n" : "");
  }
  /// Where an item of the batch begins.
  std::string item(int buffer, const Dim& offset, const std::vector<Dim>& strides) const {
    std::string text = fmt::format("b{} + {}", buffer, size(offset));
    for (std::size_t axis = 0; axis < attention_.batch.size(); ++axis)
      if (!(strides[axis] == Dim(0))) text += fmt::format(" + item{} * {}", axis, size(strides[axis]));
    return text;
  }
  std::string rows(std::string_view name, const StridedOperand& operand) {
    const std::size_t axes = attention_.batch.size();
    const bool one_axis = operand.strides.size() == axes + 1;  // of positions
    const auto stride = [&](std::size_t axis) {
      return one_axis ? (axis == 1 ? size(operand.strides[axes]) : "0") : size(operand.strides[axes + axis]);
    };
    const std::string begin = item(buffer(operand.value, name == "out"), operand.offset, operand.strides);
    std::string pages = "0, 0, 1, 0, 0";
    if (const auto& table = operand.pages)
      pages = fmt::format("{}, {}, {}, {}, {}", item(buffer(table->value, false), table->offset, table->strides),
                          size(table->strides.back()), table->rows, size(table->stride), size(table->pages));
    return fmt::format("  p.{} = {{{}, {}, {}, {}, {}}};\n", name, begin, stride(0), stride(1), stride(2), pages);
  }
  int buffer(ValueId value, bool written) {
    kernel_.buffers.push_back({value, graph_.type(value).dtype, written});
    return static_cast<int>(kernel_.buffers.size()) - 1;
  }
  std::string parameters() const {
    std::string text;
    for (std::size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const KernelBuffer& buffer = kernel_.buffers[b];
      const std::string type = memory_type(buffer.dtype);
      const std::string scope = type == "Bf16" || type == "F16" ? fmt::format("{}_of::", name_marker) : "";
      text += fmt::format("{}{}{}* b{}, ", buffer.written ? "" : "const ", scope, type, b);
    }
    for (std::size_t s = 0; s < kernel_.symbols.size(); ++s) text += fmt::format("const long long s{}, ", s);
    return text + "const long long positions" +
           (code_.maps.empty() ? "" : ", const __grid_constant__ rlx_map k_map, const __grid_constant__ rlx_map v_map");
  }

  const Graph& graph_;
  const AttentionViews& attention_;
  const AttentionCode& code_;
  ValueId scratch_;
  CScalars scalars_;
  Kernel kernel_;
  std::vector<GridLoop> grid_;
};

}  // namespace

bool lies_well(const StridedOperand& operand) {
  constexpr std::int64_t elements = 8;
  const auto fits = [](const Dim& dim) { return Dim::exact_div(dim, elements).has_value(); };
  return operand.strides.back() == Dim(1) && fits(operand.offset) && (!operand.pages || fits(operand.pages->stride)) &&
         std::all_of(operand.strides.begin(), operand.strides.end() - 1, fits);
}

void add_attention_kernels(const Draft& draft, const AttentionViews& attention, Launch& launch) {
  const Graph& graph = draft.graph;
  const Caps& caps = draft.target.caps;
  const ValueId scratch{attention.node.node, 1};
  const Dim rows = attention.queries * *Dim::exact_div(attention.heads, attention.kv_heads);
  const auto add = [&](const AttentionCode& code, std::int64_t least, std::int64_t most) {
    launch.kernels.push_back(KernelWriter(draft, attention, code, scratch).write());
    if (least > rows.lower() || most < rows.upper()) launch.kernels.back().only = SizeRange{rows, least, most};
  };
  // What runs once has no scratch memory.
  const bool may_split = !run_invariant_nodes(graph)[static_cast<std::size_t>(attention.node.node)];
  if (may_split && rows.lower() <= split_rows) {
    const bool by_warps = caps.multiplies(f16) && takes_split_code(graph, attention);
    AttentionCode part = by_warps ? split_attention(graph, attention) : plain_attention(attention);
    const Dim heads = product(attention.batch) * attention.kv_heads;
    constexpr std::int64_t most_splits = 64;
    const auto splits = static_cast<int>(std::clamp<std::int64_t>(caps.units / std::max<std::int64_t>(heads.upper(), 1), 1, most_splits));
    launch.scratch.emplace_back(scratch, Type{f32, {heads * part_numbers(attention, splits)}});
    part.splits = splits, part.is_part = true;
    AttentionCode joining = joining_attention(splits);
    joining.splits = splits;
    add(part, 0, split_rows);
    add(joining, 0, split_rows);
    if (rows.upper() <= split_rows) return;
  }
  const bool by_hopper = caps.multiplies_in_groups && takes_hopper_code(graph, attention);
  if (by_hopper) launch.arithmetic = name(graph.type(attention.q.value).dtype);
  const AttentionCode code = by_hopper ? hopper_attention(graph, attention) : plain_attention(attention);
  add(code, launch.kernels.empty() ? 0 : split_rows + 1, std::numeric_limits<std::int64_t>::max());
}

}  // namespace rlx::gpu
