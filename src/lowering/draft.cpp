#include "lowering/draft.h"

#include "kernel/math/math.h"
#include "kernel/same_code.h"
#include "kernel/simplify.h"
#include "kernel/starts.h"
#include "lowering/large_results.h"

namespace rlx {

const KernelText& KernelTexts::of(Kernel kernel, const TargetDevice& target) {
  const std::size_t hash = code_hash(kernel);
  for (auto [it, end] = known_.equal_range(hash); it != end; ++it)
    if (same_code(it->second.kernel, kernel)) return it->second.text;
  KernelText text = target.print(kernel, target.caps);
  return known_.emplace(hash, Known{std::move(kernel), std::move(text)})->second.text;
}

namespace {

constexpr std::int64_t vector_bytes = 16;

ValueId root_of(const std::map<ValueId, ValueId>& views, ValueId value) {
  for (auto it = views.find(value); it != views.end(); it = views.find(value)) value = it->second;
  return value;
}

}  // namespace

bool Draft::may_stay(ValueId value) const {
  return inner ? cut.is_source(root_of(views, value)) : invariant[static_cast<std::size_t>(value.node)];
}

bool Draft::begins_aligned(ValueId value) const {
  const ValueId root = root_of(views, value);
  if (!slices.contains(root) && !slices.contains(value)) return true;
  const Type& type = graph.type(root);
  return Dim::exact_div(type.size(), vector_bytes * 8 / info(type.dtype).bits).has_value();
}

ValueId Draft::pack(ValueId value, ValueId reader, const Type& type, std::shared_ptr<const Claimed> claimed, std::vector<ValueId>& reads) {
  const ValueId packed{reader.node, static_cast<std::int32_t>(graph.node(reader.node).results.size())};
  Launch& launch = packings.emplace_back(Launch{Launch::Kind::claim, "pack", {value}, {packed}, {}, "pack"});
  launch.claimed = std::move(claimed), launch.packed = type, launch.arithmetic = name(graph.type(value).dtype);
  if (inner) reads.push_back(value);  // which may turn out not to stay
  reads.push_back(packed);
  return packed;
}

GeneratedKernel Draft::generate(Kernel kernel) const {
  if (!kernel.tile) kernel.symbols = symbols;
  merge_loops(kernel);
  simplify(kernel);
  expand_math(kernel, target.caps.has(f64));
  mark_large_results(kernel, graph, target.caps.past_caches_bytes);
  std::vector<std::int64_t> first = first_elements(kernel);
  for (std::size_t i = 0; i < first.size(); ++i) {
    KernelBuffer& buffer = kernel.buffers[i];
    buffer.aligned = bytes_for(buffer.dtype, first[i]) % vector_bytes == 0 && begins_aligned(buffer.value);
  }
  KernelText text = texts.of(counted_from(kernel, first), target);
  return {std::move(kernel), std::move(text), nullptr, std::move(first)};
}

}  // namespace rlx
