#include "kernel/starts.h"

#include <algorithm>
#include <optional>

namespace rlx {

std::vector<std::int64_t> first_elements(const Kernel& kernel) {
  std::vector<std::optional<std::int64_t>> least(kernel.buffers.size());
  const auto reach = [&](int buffer, const Index& index) {
    const std::optional<Dim> lower = index.lower();
    const std::int64_t first = lower && lower->is_static() ? std::max<std::int64_t>(0, lower->value()) : 0;  // below 0 nothing is read
    std::optional<std::int64_t>& known = least[static_cast<std::size_t>(buffer)];
    known = std::min(known.value_or(first), first);
  };
  for (const Expr& e : kernel.exprs)
    if (e.kind == Expr::Kind::load) reach(e.buffer, e.index);
  for (const KernelStore& store : kernel.stores) reach(store.buffer, store.index);
  std::vector<std::int64_t> first;
  for (const auto& known : least) first.push_back(kernel.tile ? 0 : known.value_or(0));
  return first;
}

Kernel counted_from(Kernel kernel, const std::vector<std::int64_t>& first) {
  const auto at = [&](int buffer) { return Dim(first[static_cast<std::size_t>(buffer)]); };
  for (Expr& e : kernel.exprs) {
    if (e.kind != Expr::Kind::load) continue;
    e.index = e.index - Index(at(e.buffer));
    e.last = e.last - at(e.buffer);
  }
  for (KernelStore& store : kernel.stores) store.index = store.index - Index(at(store.buffer));
  return kernel;
}

}  // namespace rlx
