#include "kernel/kernel.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"
#include "kernel/same_code.h"
#include "rlx/array.h"

namespace rlx {
namespace {

std::size_t hash_expr(const Expr& e) {
  std::size_t h = hash_mix(static_cast<std::size_t>(e.kind), static_cast<std::size_t>(e.dtype));
  h = hash_mix(h, std::bit_cast<std::uint64_t>(e.number));
  h = hash_mix(h, static_cast<std::size_t>(e.integer));
  h = hash_mix(h, static_cast<std::size_t>(e.buffer));
  h = hash_mix(h, e.index.hash());
  h = hash_mix(h, static_cast<std::size_t>(e.op));
  for (ExprId arg : e.args) h = hash_mix(h, static_cast<std::size_t>(arg));
  for (const Guard& guard : e.guards) h = hash_mix(h, guard.index.hash());
  for (int variable : e.variables) h = hash_mix(h, static_cast<std::size_t>(variable));
  return h;
}

bool same_expr(const Expr& a, const Expr& b) {
  return a.kind == b.kind && a.dtype == b.dtype && std::bit_cast<std::uint64_t>(a.number) == std::bit_cast<std::uint64_t>(b.number) &&
         a.integer == b.integer && a.buffer == b.buffer && a.op == b.op && a.args == b.args && a.reduce == b.reduce &&
         a.variables == b.variables && a.index == b.index && a.guards == b.guards;
}

}  // namespace

ExprId Kernel::add(Expr expr) {
  const std::size_t h = hash_expr(expr);
  for (auto [it, end] = by_hash_.equal_range(h); it != end; ++it)
    if (same_expr(exprs[static_cast<std::size_t>(it->second)], expr)) return it->second;
  const auto id = static_cast<ExprId>(exprs.size());
  exprs.push_back(std::move(expr));
  by_hash_.emplace(h, id);
  return id;
}

ExprId Kernel::constant(double number, DType dtype) {
  Expr e;
  e.dtype = dtype;
  e.number = number;
  if (!is_float(dtype)) {  // as the reference stores a number: saturated, NaN is 0, every number but 0 is true
    Array stored(dtype, {1});
    stored.set_double(0, number);
    e.integer = stored.get_int(0);
    e.number = 0;
  }
  return add(std::move(e));
}

ExprId Kernel::scalar(ScalarOp op, std::vector<ExprId> args, DType dtype) {
  Expr e;
  e.kind = Expr::Kind::scalar;
  e.op = op;
  e.dtype = dtype;
  e.args = std::move(args);
  return add(std::move(e));
}

ExprId Kernel::fma(ExprId a, ExprId b, ExprId c) {
  Expr e;
  e.kind = Expr::Kind::fma;
  e.dtype = expr(a).dtype;
  e.args = {a, b, c};
  return add(std::move(e));
}

int Kernel::add_variable(Dim extent) {
  variables.push_back({std::move(extent), 1});
  return static_cast<int>(variables.size()) - 1;
}

bool same_code(const Kernel& a, const Kernel& b) {
  const auto same_buffer = [](const KernelBuffer& x, const KernelBuffer& z) {
    return x.dtype == z.dtype && x.written == z.written && x.aligned == z.aligned && x.past_caches == z.past_caches;
  };
  const auto same_variable = [](const Variable& x, const Variable& z) { return x.extent == z.extent && x.step == z.step; };
  const auto same_store = [](const KernelStore& x, const KernelStore& z) {
    return x.buffer == z.buffer && x.value == z.value && x.index == z.index;
  };
  const auto same = [](const Expr& x, const Expr& z) { return same_expr(x, z) && x.last == z.last; };
  return a.tile == b.tile && a.loops == b.loops && a.symbols == b.symbols && std::ranges::equal(a.buffers, b.buffers, same_buffer) &&
         std::ranges::equal(a.variables, b.variables, same_variable) && std::ranges::equal(a.stores, b.stores, same_store) &&
         std::ranges::equal(a.exprs, b.exprs, same);
}

std::size_t code_hash(const Kernel& kernel) {
  std::size_t h = hash_mix(kernel.buffers.size(), kernel.loops.size());
  for (const Expr& e : kernel.exprs) h = hash_mix(h, hash_expr(e));
  for (const KernelStore& store : kernel.stores) h = hash_mix(h, hash_mix(store.index.hash(), static_cast<std::size_t>(store.value)));
  return h;
}

void rewrite(Kernel& kernel, const std::function<ExprId(Expr)>& rule) {
  std::vector<Expr> old = std::move(kernel.exprs);
  Kernel fresh;
  fresh.buffers = std::move(kernel.buffers);
  fresh.variables = std::move(kernel.variables);
  fresh.loops = std::move(kernel.loops);
  fresh.stores = std::move(kernel.stores);
  fresh.symbols = std::move(kernel.symbols);
  fresh.tile = kernel.tile;
  kernel = std::move(fresh);
  std::vector<ExprId> now;
  const auto renumber = [&](Index& index) {
    index = index.substitute([&](const Atom& atom) {
      return atom.kind == Atom::Kind::loaded ? Index::loaded(now[static_cast<std::size_t>(atom.id)], atom.extent)
                                             : Index::variable(atom.id, atom.extent);
    });
  };
  for (Expr& e : old) {
    for (ExprId& arg : e.args) arg = now[static_cast<std::size_t>(arg)];
    renumber(e.index);
    for (Guard& guard : e.guards) renumber(guard.index);
    now.push_back(rule(std::move(e)));
  }
  for (KernelStore& store : kernel.stores) {
    store.value = now[static_cast<std::size_t>(store.value)];
    renumber(store.index);
  }
}

std::vector<ExprId> loaded_exprs(const Index& index) {
  std::vector<ExprId> ids;
  index.for_each_atom([&](const Atom& atom) {
    if (atom.kind == Atom::Kind::loaded) ids.push_back(atom.id);
  });
  return ids;
}

std::set<ExprId> needed_by(const Kernel& kernel, ExprId id, const std::function<bool(ExprId)>& follows) {
  std::set<ExprId> seen{id};
  std::vector<ExprId> stack{id};
  while (!stack.empty()) {
    const ExprId top = stack.back();
    stack.pop_back();
    for_each_operand(kernel.expr(top), [&](ExprId operand) {
      if (follows(operand) && seen.insert(operand).second) stack.push_back(operand);
    });
  }
  return seen;
}

bool can_generate(DType t) {
  switch (t) {
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::i4:
    case DType::u4:
    case DType::c64:
    case DType::c128: return false;
    default: return true;
  }
}

namespace {

/// What the stores need, operands first: the order does not depend on the order in which a compiler evaluates arguments.
std::vector<ExprId> in_order_of_need(const Kernel& kernel) {
  std::vector<ExprId> order;
  std::vector<bool> seen(kernel.exprs.size(), false);
  const std::function<void(ExprId)> need = [&](ExprId id) {
    if (seen[static_cast<std::size_t>(id)]) return;
    seen[static_cast<std::size_t>(id)] = true;
    for_each_operand(kernel.expr(id), need);
    order.push_back(id);
  };
  for (const KernelStore& store : kernel.stores) {
    need(store.value);
    for (ExprId id : loaded_exprs(store.index)) need(id);
  }
  return order;
}

std::string describe(const Kernel& kernel, const Expr& e) {
  std::string text;
  switch (e.kind) {
    case Expr::Kind::constant: return is_float(e.dtype) ? fmt::format("{}", e.number) : fmt::format("{}", e.integer);
    case Expr::Kind::load: return fmt::format("buffer{}[{}]", e.buffer, e.index.to_string());
    case Expr::Kind::position: return fmt::format("position {}", e.index.to_string());
    case Expr::Kind::scalar: text = std::string(name(e.op)); break;
    case Expr::Kind::fma: text = "fma"; break;
    case Expr::Kind::choose: text = "choose"; break;
    case Expr::Kind::reduce: text = "reduce " + std::string(enum_words(e.reduce)[static_cast<std::size_t>(e.reduce)]); break;
  }
  for (int v : e.variables) text += fmt::format(" i{}<{}", v, kernel.extent(v).to_string());
  for (const Guard& g : e.guards) text += fmt::format(" [{} {}]", g.index.to_string(), g.kind == Guard::Kind::zero ? "= 0" : ">= 0");
  for (ExprId arg : e.args) text += fmt::format(" %{}", arg);
  return text;
}

}  // namespace

std::string to_string(const Kernel& kernel) {
  std::string text = "loops";
  for (int v : kernel.loops) {
    text += fmt::format(" i{}<{}", v, kernel.extent(v).to_string());
    if (const int step = kernel.variables[static_cast<std::size_t>(v)].step; step > 1) text += fmt::format(" by {}", step);
  }
  text += "\n";
  const std::vector<ExprId> order = in_order_of_need(kernel);
  std::vector<ExprId> number(kernel.exprs.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) number[static_cast<std::size_t>(order[i])] = static_cast<ExprId>(i);
  const auto renumbered = [&](const Index& index) {
    return index.substitute([&](const Atom& atom) {
      return atom.kind == Atom::Kind::loaded ? Index::loaded(number[static_cast<std::size_t>(atom.id)], atom.extent)
                                             : Index::variable(atom.id, atom.extent);
    });
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    Expr e = kernel.expr(order[i]);
    for (ExprId& arg : e.args) arg = number[static_cast<std::size_t>(arg)];
    e.index = renumbered(e.index);
    for (Guard& guard : e.guards) guard.index = renumbered(guard.index);
    text += fmt::format("  %{}: {} = {}\n", i, name(e.dtype), describe(kernel, e));
  }
  for (const KernelStore& s : kernel.stores)
    text += fmt::format("  buffer{}[{}] = %{}\n", s.buffer, renumbered(s.index).to_string(), number[static_cast<std::size_t>(s.value)]);
  return text;
}

}  // namespace rlx
