#pragma once
#include "ir/op.h"
#include "rlx/transform.h"

namespace rlx {

// The attributes of the control ops, for the transforms that look inside. Regions take the op's operands by position.

/// Calls a region, with rules of its own. The last `captured` operands are values that the function uses without taking them.
struct Call {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "call";
  static constexpr std::string_view formula =
      "the results of a region; may bring its own derivatives and batching, or recompute in reverse mode";
  Region function;       // x..., captures... -> y...
  Region jvp_rule;       // x..., tangents of the x that carry one..., captures... -> tangents of the y that carry one
  Region forward_rule;   // x..., captures... -> y..., residuals...
  Region backward_rule;  // residuals..., cotangents of the y that carry one..., captures... -> cotangents of the x that carry one
  Region batch_rule;     // x... with the symbol call_batch in front, captures... -> y... with it in front
  Save save = Save::everything;
  std::int64_t captured = 0;
  std::string label;  // of a custom_op: the name under which programs register kernels
  std::string mark;   // the name of the result, for what is saved
  std::string marks;  // of results that are saved beside those of `save`, with commas between
  static auto fields() {
    return Fields<&Call::function, &Call::jvp_rule, &Call::forward_rule, &Call::backward_rule, &Call::batch_rule, &Call::save,
                  &Call::captured, &Call::label, &Call::mark, &Call::marks>{};
  }
  static Values body(const Call& op, std::span<const Value> x);
  static Values batch(const Call& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size);
  static std::vector<Sample> samples();
};
/// The symbol that stands for the batch size in a batch rule.
Dim call_batch_size();

/// Operands: a bool scalar, then the operands of both regions.
struct Cond {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "cond";
  static constexpr std::string_view formula = "the results of `then` where the predicate holds, else of `otherwise`; only one of them runs";
  Region then, otherwise;
  static auto fields() { return Fields<&Cond::then, &Cond::otherwise>{}; }
  static std::vector<Type> infer(const Cond& op, std::span<const Type> operands);
  static void evaluate(const Cond& op, std::span<const Array> operands, std::span<Array> results, const RunRegion& run);
  static Values jvp(const Cond& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx);
  static Values transpose(const Cond& op, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy);
  static Values batch(const Cond& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size);
  static std::vector<Sample> samples();
};

/// Operands: the carry, then constants. Both regions take all of them.
struct While {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "while";
  static constexpr std::string_view formula = "carry = step(carry) as long as condition(carry) holds";
  Region condition, step;
  std::int64_t carries = 0;
  static auto fields() { return Fields<&While::condition, &While::step, &While::carries>{}; }
  static std::vector<Type> infer(const While& op, std::span<const Type> operands);
  static void evaluate(const While& op, std::span<const Array> operands, std::span<Array> results, const RunRegion& run);
  static Values jvp(const While& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx);
  static Values batch(const While& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size);
  static std::vector<Sample> samples();
};

/// Operands: the carry, arrays that are read slice by slice along axis 0, constants. The region gives the next carry, then one slice
/// of each stacked result.
struct Scan {
  static constexpr OpKind kind = OpKind::primitive;
  static constexpr std::string_view name = "scan";
  static constexpr std::string_view formula =
      "for i in 0..length-1 (or down): carry, y[i] = step(carry, x[i]); results: the last carry, then every y";
  Region step;
  std::int64_t carries = 0, scanned = 0;
  Dims length = {1};
  bool reverse = false;
  static auto fields() { return Fields<&Scan::step, &Scan::carries, &Scan::scanned, &Scan::length, &Scan::reverse>{}; }
  static std::vector<Type> infer(const Scan& op, std::span<const Type> operands);
  static void evaluate(const Scan& op, std::span<const Array> operands, std::span<Array> results, const RunRegion& run);
  static Values jvp(const Scan& op, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx);
  static Values transpose(const Scan& op, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy);
  static Values batch(const Scan& op, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size);
  static std::vector<Sample> samples();
};

/// Nodes of these ops, with the same order of operands as above.
Values make_call(const Call& op, std::span<const Value> x);
Values make_cond(const Cond& op, std::span<const Value> x);
Values make_while(const While& op, std::span<const Value> x);
Values make_scan(const Scan& op, std::span<const Value> x);

/// x, but not before `token` is there: what is computed from it is not shared with what is computed from x.
Value after(Value x, Value token);

}  // namespace rlx
