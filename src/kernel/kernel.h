#pragma once
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/index.h"
#include "ir/op.h"
#include "ops/scalar/scalar.h"

namespace rlx {

using ExprId = std::int32_t;

/// One scalar expression of a kernel. Narrow floats are f32 in registers: a load widens, a store and a cast to them round.
struct Expr {
  enum class Kind : std::uint8_t {
    constant,  // number
    load,      // buffers[buffer][index]
    scalar,    // op of args
    fma,       // args[0] * args[1] + args[2], rounded once
    position,  // index as an integer of type dtype
    choose,    // args[0] where all guards hold, else args[1]
    reduce,    // args[0] combined over all values of variables
  };
  Kind kind = Kind::constant;
  DType dtype = f32;
  double number = 0;  // constant; integers beyond 2^53 are in `integer`
  std::int64_t integer = 0;
  int buffer = 0;
  Index index;
  Dim last;  // load: the largest index inside the buffer
  ScalarOp op = ScalarOp::neg;
  std::vector<ExprId> args;
  std::vector<Guard> guards;
  ReduceKind reduce = ReduceKind::sum;
  std::vector<int> variables;
  ValueId origin;  // reduce: the graph value it computes
};

/// A loop of a kernel; its variable runs over 0, step, ... below extent. A step beyond 1 is of a loop of the grid, whose stores do the
/// rest.
struct Variable {
  Dim extent;
  int step = 1;
};

/// Memory a kernel reads or writes. `value` says which value of the graph it holds.
struct KernelBuffer {
  ValueId value;
  DType dtype = f32;
  bool written = false;
  bool aligned = true;       // its numbers begin where 16 bytes do
  bool past_caches = false;  // written, and too large to be found in a cache by who reads it next
};

struct KernelStore {
  int buffer = 0;
  Index index;
  ExprId value = 0;
};

/// A loop nest over the elements of its results: a table of hash-consed expressions and one store for each result.
/// Integers read from memory and used as indices are `Index::loaded(expr)`.
struct Kernel {
  std::vector<KernelBuffer> buffers;
  std::vector<Variable> variables;  // by id: loops first, then the variables of reductions
  std::vector<int> loops;           // outermost first
  std::vector<Expr> exprs;
  std::vector<KernelStore> stores;
  std::vector<std::string> symbols;  // in the order in which run-time values are passed
  bool tile = false;  // every loop runs over a range given at run time (an epilogue over a tile of a product); its variables come first

  ExprId add(Expr expr);
  ExprId constant(double number, DType dtype);
  ExprId scalar(ScalarOp op, std::vector<ExprId> args, DType dtype);
  ExprId fma(ExprId a, ExprId b, ExprId c);
  const Expr& expr(ExprId id) const { return exprs[static_cast<std::size_t>(id)]; }
  const Dim& extent(int variable) const { return variables[static_cast<std::size_t>(variable)].extent; }
  int add_variable(Dim extent);

 private:
  std::unordered_multimap<std::size_t, ExprId> by_hash_;
};

/// The longest row whose elements a kernel keeps beside it from one loop to the next: what a first-level cache holds with room to spare.
inline constexpr std::int64_t on_chip_row = 4096;

/// The type an expression of this dtype has in registers: f32 for narrower floats.
inline DType register_type(DType t) { return is_float(t) && info(t).bits < 32 ? f32 : t; }

/// Expressions that an index needs: those behind its loaded atoms.
std::vector<ExprId> loaded_exprs(const Index& index);
/// Visits the expressions that `e` needs.
template <class Visit>
void for_each_operand(const Expr& e, const Visit& visit) {
  for (ExprId arg : e.args) visit(arg);
  for (ExprId id : loaded_exprs(e.index)) visit(id);
  for (const Guard& guard : e.guards)
    for (ExprId id : loaded_exprs(guard.index)) visit(id);
}

/// `id` and all that it is computed from, through operands for which `follows` holds.
std::set<ExprId> needed_by(const Kernel& kernel, ExprId id, const std::function<bool(ExprId)>& follows);

/// Rebuilds the expressions in their order: `rule` adds what stands for each, whose operands are renumbered already.
void rewrite(Kernel& kernel, const std::function<ExprId(Expr)>& rule);

/// True when kernels can be generated for elements of this type; others are computed on the host by the reference.
bool can_generate(DType t);

/// Readable text of the kernel, for `rlx dump` and golden tests.
std::string to_string(const Kernel& kernel);

}  // namespace rlx
