#include "emit/scalar_text.h"

#include <array>
#include <limits>

#include "rlx/error.h"

namespace rlx {

Expr neutral_of(ReduceKind kind, DType t) {
  Expr e;
  e.dtype = t;
  const bool low = kind == ReduceKind::max;
  if (kind == ReduceKind::sum || kind == ReduceKind::prod) {
    e.integer = kind == ReduceKind::prod ? 1 : 0;
    e.number = static_cast<double>(e.integer);
  } else if (is_float(t)) {
    e.number = low ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  } else if (is_signed_int(t)) {
    const std::int64_t lowest = std::numeric_limits<std::int64_t>::min() >> (64 - info(t).bits);
    e.integer = low ? lowest : ~lowest;
  } else {
    e.integer = low ? 0 : -1;
  }
  return e;
}

std::string ScalarText::call(const std::string& name, const std::string& arguments) {
  used_.insert(name);
  return name + "(" + arguments + ")";
}

std::string ScalarText::combine(ReduceKind kind, const std::string& a, const std::string& b, DType t) {
  constexpr std::array<ScalarOp, 4> ops{ScalarOp::add, ScalarOp::max, ScalarOp::min, ScalarOp::mul};  // in the order of ReduceKind
  return emit(ops[static_cast<std::size_t>(kind)], {{a, t}, {b, t}}, t);
}

std::string ScalarText::emit(ScalarOp op, const std::vector<Operand>& args, DType result) {
  if (op == ScalarOp::cast) return cast(args[0].value, args[0].dtype, result);
  if (op == ScalarOp::bitcast) return bitcast(args[0].value, args[0].dtype, result);
  // Comparisons are those of their operands.
  const bool compares = op >= ScalarOp::eq && op <= ScalarOp::ge;
  const DType t = compares ? args[0].dtype : result;
  const std::string_view form = pattern(op, t);
  if (form.empty()) fail_internal("emit: {} on {}", rlx::name(op), rlx::name(t));
  const auto operand = [&](std::size_t i) { return i < args.size() ? args[i].value : std::string(); };
  const Words its = words(t);
  const std::string text =
      fmt::format(fmt::runtime(form), fmt::arg("x", operand(0)), fmt::arg("z", operand(1)), fmt::arg("w", operand(2)),
                  fmt::arg("T", its.to_type), fmt::arg("U", its.to_wrapping), fmt::arg("t", rlx::name(register_type(t))),
                  fmt::arg("f", its.suffix), fmt::arg("nearest", its.nearest), fmt::arg("bits", info(t).bits));
  for (std::size_t at = text.find("rlx_"); at != std::string::npos; at = text.find("rlx_", at + 1))
    used_.insert(text.substr(at, text.find('(', at) - at));
  return compares ? text : wrapped(text, t);
}

}  // namespace rlx
