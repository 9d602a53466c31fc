#include "emit/llvm_scalar.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace rlx {
namespace {

std::string float_bits(double value, DType t) {
  if (t != f64) value = static_cast<float>(value);
  return fmt::format("0x{:016X}", std::bit_cast<std::uint64_t>(value));
}

std::string suffix(DType t) {
  if (is_float(t)) return t == f64 ? "f64" : "f32";
  return llvm_register_type(t);
}

}  // namespace

std::string llvm_register_type(DType t) {
  if (is_bool(t)) return "i1";
  if (is_float(t)) return t == f64 ? "double" : "float";
  return fmt::format("i{}", info(t).bits);
}

std::string llvm_memory_type(DType t) {
  if (is_bool(t)) return "i8";
  if (is_float(t) && info(t).bits == 16) return t == f16 ? "half" : "i16";
  return llvm_register_type(t);
}

std::string llvm_constant(const Expr& e) {
  if (is_float(e.dtype)) return float_bits(e.number, e.dtype);
  if (is_bool(e.dtype)) return e.integer ? "true" : "false";
  return std::to_string(e.integer);
}

std::string LlvmScalars::call(const std::string& function, DType t, const std::vector<std::string>& args, const std::string& flags) {
  const std::string type = llvm_register_type(t);
  std::string declared, given;
  for (const std::string& arg : args) {
    declared += (declared.empty() ? "" : ", ") + type;
    given += fmt::format("{}{} {}", given.empty() ? "" : ", ", type, arg);
  }
  declare_("declare " + type + " @" + function + "(" + declared + ")");
  return assign_("call " + flags + type + " @" + function + "(" + given + ")");
}

std::string LlvmScalars::fma(const std::string& a, const std::string& b, const std::string& c, DType t) {
  return call("llvm.fma." + suffix(t), t, {a, b, c});
}

std::string LlvmScalars::combine(ReduceKind kind, const std::string& a, const std::string& b, DType t, const std::string& flags) {
  const std::string type = llvm_register_type(t);
  if (is_bool(t)) return assign_(std::string(kind == ReduceKind::max ? "or" : "and") + " i1 " + a + ", " + b);
  if (is_float(t)) {
    if (kind == ReduceKind::sum) return assign_("fadd " + flags + type + " " + a + ", " + b);
    if (kind == ReduceKind::prod) return assign_("fmul " + flags + type + " " + a + ", " + b);
    return call(std::string(kind == ReduceKind::max ? "llvm.maximum." : "llvm.minimum.") + suffix(t), t, {a, b}, "nsz ");
  }
  if (kind == ReduceKind::sum) return assign_("add " + type + " " + a + ", " + b);
  if (kind == ReduceKind::prod) return assign_("mul " + type + " " + a + ", " + b);
  return emit(kind == ReduceKind::max ? ScalarOp::max : ScalarOp::min, {{a, t}, {b, t}}, t);
}

std::string LlvmScalars::from_memory(const std::string& raw, DType t) {
  if (is_bool(t)) return assign_("icmp ne i8 " + raw + ", 0");
  if (t == f16) return assign_("fpext half " + raw + " to float");
  if (t == bf16) {
    const std::string wide = assign_("zext i16 " + raw + " to i32");
    return assign_("bitcast i32 " + assign_("shl i32 " + wide + ", 16") + " to float");
  }
  return raw;
}

std::string LlvmScalars::to_memory(const std::string& value, DType t) {
  if (is_bool(t)) return assign_("zext i1 " + value + " to i8");
  if (t == f16) return assign_("fptrunc float " + value + " to half");
  if (t == bf16) {  // nearest, ties to even; NaN keeps a set mantissa bit
    const std::string bits = assign_("bitcast float " + value + " to i32");
    const std::string odd = assign_("and i32 " + assign_("lshr i32 " + bits + ", 16") + ", 1");
    const std::string rounded = assign_("add i32 " + bits + ", " + assign_("add i32 " + odd + ", 32767"));
    const std::string is_nan = assign_("fcmp uno float " + value + ", 0.0");
    const std::string quiet = assign_("or i32 " + bits + ", 4194304");
    const std::string chosen = assign_("select i1 " + is_nan + ", i32 " + quiet + ", i32 " + rounded);
    return assign_("trunc i32 " + assign_("lshr i32 " + chosen + ", 16") + " to i16");
  }
  return value;
}

std::string LlvmScalars::narrow(const std::string& x, DType t) { return register_type(t) == t ? x : from_memory(to_memory(x, t), t); }

std::string LlvmScalars::cast(const std::string& x, DType from, DType to) {
  const std::string a = llvm_register_type(from), b = llvm_register_type(to);
  if (is_bool(to)) {
    if (is_bool(from)) return x;
    return is_float(from) ? assign_("fcmp une " + a + " " + x + ", 0.0") : assign_("icmp ne " + a + " " + x + ", 0");
  }
  if (is_float(to)) {
    std::string wide = x;
    if (is_float(from)) {
      if (a != b) wide = assign_(std::string(to == f64 ? "fpext " : "fptrunc ") + a + " " + x + " to " + b);
    } else {
      wide = assign_(std::string(is_signed_int(from) ? "sitofp " : "uitofp ") + a + " " + x + " to " + b);
    }
    return narrow(wide, to);
  }
  if (is_float(from) && info(to).bits < 32) return small_integer(x, a, to);
  if (is_float(from)) {
    const std::string function = fmt::format("llvm.fpto{}i.sat.{}.{}", is_signed_int(to) ? 's' : 'u', suffix(to), suffix(from));
    declare_("declare " + b + " @" + function + "(" + a + ")");
    return assign_("call " + b + " @" + function + "(" + a + " " + x + ")");
  }
  const int wide = is_bool(from) ? 1 : info(from).bits, target = info(to).bits;
  if (wide == target) return x;
  if (wide > target) return assign_("trunc " + a + " " + x + " to " + b);
  return assign_(std::string(is_signed_int(from) ? "sext " : "zext ") + a + " " + x + " to " + b);
}

std::string LlvmScalars::small_integer(const std::string& x, const std::string& type, DType to) {
  const std::int64_t count = std::int64_t{1} << info(to).bits, lowest = is_signed_int(to) ? -count / 2 : 0;
  const auto choose = [&](const std::string& test, const std::string& value, const std::string& other) {
    return assign_(fmt::format("select i1 {}, {} {}, {} {}", assign_(test), type, value, type, other));
  };
  const std::string low = fmt::format("{}.0", lowest), high = fmt::format("{}.0", lowest + count - 1);
  const std::string number = choose(fmt::format("fcmp uno {} {}, 0.0", type, x), "0.0", x);
  const std::string above = choose(fmt::format("fcmp olt {} {}, {}", type, number, low), low, number);
  const std::string within = choose(fmt::format("fcmp ogt {} {}, {}", type, above, high), high, above);
  return assign_("trunc i32 " + assign_("fptosi " + type + " " + within + " to i32") + " to " + llvm_register_type(to));
}

std::string LlvmScalars::compare(ScalarOp op, const Operand& a, const Operand& b) {
  constexpr std::array<const char*, 6> floats{"oeq", "une", "olt", "ole", "ogt", "oge"}, ints{"eq", "ne", "slt", "sle", "sgt", "sge"},
      unsigneds{"eq", "ne", "ult", "ule", "ugt", "uge"};
  const auto i = static_cast<std::size_t>(op) - static_cast<std::size_t>(ScalarOp::eq);
  const std::string type = llvm_register_type(a.dtype);
  if (is_float(a.dtype)) return assign_(fmt::format("fcmp {} {} {}, {}", floats[i], type, a.value, b.value));
  return assign_(fmt::format("icmp {} {} {}, {}", is_signed_int(a.dtype) ? ints[i] : unsigneds[i], type, a.value, b.value));
}

std::string LlvmScalars::divide(ScalarOp op, const std::string& x, const std::string& z, DType t) {
  const std::string type = llvm_register_type(t);
  const bool quotient = op == ScalarOp::div, is_signed = is_signed_int(t);
  const std::string zero = assign_("icmp eq " + type + " " + z + ", 0");
  std::string unsafe = zero, minus_one;
  if (is_signed) {  // MIN / -1 overflows in hardware
    minus_one = assign_("icmp eq " + type + " " + z + ", -1");
    unsafe = assign_("or i1 " + zero + ", " + minus_one);
  }
  const std::string safe = assign_("select i1 " + unsafe + ", " + type + " 1, " + type + " " + z);
  std::string result =
      assign_(std::string(quotient ? (is_signed ? "sdiv " : "udiv ") : (is_signed ? "srem " : "urem ")) + type + " " + x + ", " + safe);
  if (is_signed) {
    const std::string special = quotient ? assign_("sub " + type + " 0, " + x) : "0";
    result = assign_("select i1 " + minus_one + ", " + type + " " + special + ", " + type + " " + result);
  }
  return assign_("select i1 " + zero + ", " + type + " " + (quotient ? "-1" : x) + ", " + type + " " + result);
}

std::string LlvmScalars::shift(ScalarOp op, const std::string& x, const std::string& z, DType t) {
  const std::string type = llvm_register_type(t);
  const int bits = info(t).bits;
  const std::string inside = assign_(fmt::format("icmp ult {} {}, {}", type, z, bits));
  const std::string safe = assign_(fmt::format("select i1 {}, {} {}, {} {}", inside, type, z, type, bits - 1));
  if (op == ScalarOp::shr && is_signed_int(t)) return assign_("ashr " + type + " " + x + ", " + safe);
  const std::string shifted = assign_(std::string(op == ScalarOp::shl ? "shl " : "lshr ") + type + " " + x + ", " + safe);
  return assign_("select i1 " + inside + ", " + type + " " + shifted + ", " + type + " 0");
}

std::string LlvmScalars::integer_op(ScalarOp op, const std::vector<Operand>& args, DType t) {
  const std::string type = llvm_register_type(t);
  const std::string &x = args[0].value, z = args.size() > 1 ? args[1].value : "";
  const bool is_signed = is_signed_int(t);
  switch (op) {
    case ScalarOp::neg: return assign_("sub " + type + " 0, " + x);
    case ScalarOp::abs: {
      if (!is_signed) return x;
      const std::string negative = assign_("icmp slt " + type + " " + x + ", 0");
      return assign_("select i1 " + negative + ", " + type + " " + assign_("sub " + type + " 0, " + x) + ", " + type + " " + x);
    }
    case ScalarOp::sign: {
      std::string positive =
          assign_("zext i1 " + assign_(std::string(is_signed ? "icmp sgt " : "icmp ne ") + type + " " + x + ", 0") + " to " + type);
      if (!is_signed) return positive;
      const std::string negative = assign_("icmp slt " + type + " " + x + ", 0");
      return assign_("select i1 " + negative + ", " + type + " -1, " + type + " " + positive);
    }
    case ScalarOp::add: return assign_("add " + type + " " + x + ", " + z);
    case ScalarOp::sub: return assign_("sub " + type + " " + x + ", " + z);
    case ScalarOp::mul: return assign_("mul " + type + " " + x + ", " + z);
    case ScalarOp::div:
    case ScalarOp::rem: return divide(op, x, z, t);
    case ScalarOp::max: return call(std::string(is_signed ? "llvm.smax." : "llvm.umax.") + suffix(t), t, {x, z});
    case ScalarOp::min: return call(std::string(is_signed ? "llvm.smin." : "llvm.umin.") + suffix(t), t, {x, z});
    case ScalarOp::logical_not: return assign_("xor " + type + " " + x + ", " + (is_bool(t) ? "true" : "-1"));
    case ScalarOp::logical_and: return assign_("and " + type + " " + x + ", " + z);
    case ScalarOp::logical_or: return assign_("or " + type + " " + x + ", " + z);
    case ScalarOp::logical_xor: return assign_("xor " + type + " " + x + ", " + z);
    case ScalarOp::shl:
    case ScalarOp::shr: return shift(op, x, z, t);
    default: fail_internal("emit: {} on {}", name(op), name(t));
  }
}

/// maximum and minimum of IEEE 754-2019, of comparisons: LLVM turns llvm.maximum of two widened halves into one of halves, which loses
/// NaN on processors without arithmetic on halves.
std::string LlvmScalars::extremum(ScalarOp op, const std::string& x, const std::string& z, DType t) {
  const std::string type = llvm_register_type(t), bits = t == f64 ? "i64" : "i32";
  const auto choose = [&](const std::string& test, const std::string& a, const std::string& b) {
    return assign_("select i1 " + test + ", " + type + " " + a + ", " + type + " " + b);
  };
  const bool larger = op == ScalarOp::max;
  const std::string ordered = choose(assign_(std::string("fcmp ") + (larger ? "ogt " : "olt ") + type + " " + x + ", " + z), x, z);
  // Equal numbers have equal bits, but for zeros: the larger one has the sign that both have, the smaller one that of either.
  const std::string a = assign_("bitcast " + type + " " + x + " to " + bits), b = assign_("bitcast " + type + " " + z + " to " + bits);
  const std::string zero =
      assign_("bitcast " + bits + " " + assign_((larger ? "and " : "or ") + bits + " " + a + ", " + b) + " to " + type);
  const std::string number = choose(assign_("fcmp oeq " + type + " " + x + ", " + z), zero, ordered);
  return choose(assign_("fcmp uno " + type + " " + x + ", " + x), x, number);  // `ordered` is z where z is NaN
}

std::string LlvmScalars::float_op(ScalarOp op, const std::vector<Operand>& args, DType t) {
  const std::string type = llvm_register_type(t), x = args[0].value, z = args.size() > 1 ? args[1].value : "";
  const std::string libm = t == f64 ? "" : "f";
  switch (op) {
    case ScalarOp::neg: return assign_("fneg " + type + " " + x);
    case ScalarOp::abs: return call("llvm.fabs." + suffix(t), t, {x});
    case ScalarOp::sign: {
      const std::string up = assign_("fcmp ogt " + type + " " + x + ", 0.0"), down = assign_("fcmp olt " + type + " " + x + ", 0.0");
      const std::string low = assign_("select i1 " + down + ", " + type + " -1.0, " + type + " " + x);
      return assign_("select i1 " + up + ", " + type + " 1.0, " + type + " " + low);
    }
    case ScalarOp::floor: return call("llvm.floor." + suffix(t), t, {x});
    case ScalarOp::round: return call("llvm.roundeven." + suffix(t), t, {x});
    case ScalarOp::sqrt: return call("llvm.sqrt." + suffix(t), t, {x});
    case ScalarOp::rsqrt: return assign_("fdiv " + type + " 1.0, " + call("llvm.sqrt." + suffix(t), t, {x}));
    case ScalarOp::exp:
    case ScalarOp::expm1:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tanh:
    case ScalarOp::atan:
    case ScalarOp::erf: return call(std::string(name(op)) + libm, t, {x});
    case ScalarOp::pow: return call("pow" + libm, t, {x, z});
    case ScalarOp::rem: return call("fmod" + libm, t, {x, z});
    case ScalarOp::add: return assign_("fadd " + type + " " + x + ", " + z);
    case ScalarOp::sub: return assign_("fsub " + type + " " + x + ", " + z);
    case ScalarOp::mul: return assign_("fmul " + type + " " + x + ", " + z);
    case ScalarOp::div: return assign_("fdiv " + type + " " + x + ", " + z);
    case ScalarOp::max:
    case ScalarOp::min: return extremum(op, x, z, t);
    default: fail_internal("emit: {} on {}", name(op), name(t));
  }
}

std::string LlvmScalars::emit(ScalarOp op, const std::vector<Operand>& args, DType result) {
  if (op >= ScalarOp::eq && op <= ScalarOp::ge) return compare(op, args[0], args[1]);
  if (op == ScalarOp::cast) return cast(args[0].value, args[0].dtype, result);
  if (op == ScalarOp::select) {
    const std::string type = llvm_register_type(result);
    return assign_(fmt::format("select i1 {}, {} {}, {} {}", args[0].value, type, args[1].value, type, args[2].value));
  }
  if (op == ScalarOp::bitcast) {
    const DType from = args[0].dtype;
    std::string bits = args[0].value;
    const std::string memory = fmt::format("i{}", info(from).bits);
    if (is_float(from)) bits = to_memory(bits, from);
    if (is_float(from) && llvm_memory_type(from) != memory)
      bits = assign_("bitcast " + llvm_memory_type(from) + " " + bits + " to " + memory);
    if (!is_float(result)) return bits;
    if (llvm_memory_type(result) != memory) bits = assign_("bitcast " + memory + " " + bits + " to " + llvm_memory_type(result));
    return from_memory(bits, result);
  }
  return is_float(result) ? float_op(op, args, result) : integer_op(op, args, result);
}

}  // namespace rlx
