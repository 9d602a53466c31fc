#pragma once
#include <concepts>
#include <functional>
#include <optional>
#include <set>
#include <type_traits>

#include "ir/index.h"
#include "rlx/graph.h"
#include "rlx/op_types.h"

namespace rlx {

/// One set of operands and attributes that the generated tests run an op on.
struct Sample {
  struct Operand {
    Type type;
    double low = -2, high = 2;  // uniform values; integers are rounded
    double diagonal = 0;        // added to the diagonals of matrices
  };
  std::vector<Operand> operands;
  Attrs attrs;                 // by op->fields; empty = the initial values
  double tolerance = 0;        // relative to the largest result, added to the dtype's own; 0 = exact up to accumulation
  bool differentiable = true;  // false: a kink lies in the range
};

enum class OpKind : std::uint8_t { source, scalar, structure, primitive, composite };

enum class ReduceKind : std::uint8_t { sum, max, min, prod };
constexpr auto enum_words(ReduceKind) { return std::array<std::string_view, 4>{"sum", "max", "min", "prod"}; }

/// A result element as a reduction: over all values of the loop variables, the product of the factors is combined by `kind`.
/// Each factor is read like a structure op reads its operand.
struct Loop {
  ReduceKind kind = ReduceKind::sum;
  DType accumulate = f32;
  std::vector<Index> variables;  // made by `fresh`, outermost first
  std::vector<std::vector<Source>> factors;
};
/// Makes the variable of a loop of the given extent.
using FreshVariable = std::function<Index(const Dim& extent)>;

/// Reads an element of an integer operand for use in an index: clamped to 0..limit-1 when a limit is given.
using ReadIndex = std::function<Index(int operand, const std::vector<Index>& at, std::optional<Dim> limit)>;

/// Where an element is stored, and what is stored where none is.
struct Destination {
  std::vector<Index> at;
  double fill = 0;
};

/// Runs the region of a control flow op: by the reference, or compiled.
using RunRegion = std::function<std::vector<Array>(const Region&, std::span<const Array> operands)>;

/// Everything RLX knows of one op; made from its struct by Op<T>. Rules that do not apply are null.
struct OpDef {
  std::string_view name;
  OpKind kind = OpKind::primitive;
  std::vector<Field> fields;
  int scalar = -1;                 // row of the scalar table
  int arity = -1;                  // number of operands; -1 = checked by `infer`
  std::set<int> integer_operands;  // no derivative flows into these

  using InferRule = std::vector<Type> (*)(const Attrs&, std::span<const Type> operands);
  using BodyRule = Values (*)(const Attrs&, std::span<const Value> operands);
  using SourcesRule = std::vector<Source> (*)(const Attrs&, std::span<const Type> operands, const Type& result,
                                              const std::vector<Index>& at);
  using LoopRule = Loop (*)(const Attrs&, std::span<const Type> operands, const Type& result, const std::vector<Index>& at,
                            const FreshVariable&);
  using AddressRule = std::vector<Source> (*)(const Attrs&, std::span<const Type> operands, const Type& result,
                                              const std::vector<Index>& at, const ReadIndex&);
  using DestinationRule = Destination (*)(const Attrs&, std::span<const Type> operands, const Type& result, const std::vector<Index>& at,
                                          const ReadIndex&);
  using EvaluateRule = void (*)(const Attrs&, std::span<const Array> operands, std::span<Array> results, const RunRegion&);
  using JvpRule = Values (*)(const Attrs&, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx);
  using TransposeRule = Values (*)(const Attrs&, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy);
  using VjpRule = Values (*)(const Attrs&, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dy);
  using VjpCondition = bool (*)(const Attrs&, std::span<const Type> operands);
  /// Operands with `batched[i]` carry the batch on axis 0; so do all results.
  using BatchRule = Values (*)(const Attrs&, std::span<const Value> x, const std::vector<bool>& batched, const Dim& size);

  InferRule infer = nullptr;
  BodyRule body = nullptr;
  SourcesRule sources = nullptr;
  LoopRule loop = nullptr;
  AddressRule address = nullptr;
  EvaluateRule evaluate = nullptr;
  JvpRule jvp = nullptr;
  TransposeRule transpose = nullptr;
  VjpRule vjp = nullptr;
  VjpCondition vjp_applies = nullptr;
  BatchRule batch = nullptr;
  std::string_view not_differentiable;  // the reason, where no derivative exists
  std::vector<Sample> (*samples)() = nullptr;
  std::string_view formula;
  // Of primitives that no kernel computes element by element.
  BodyRule expansion = nullptr;  // by others, for targets that do not compute it whole
  DestinationRule destination = nullptr;

  /// Whether a reverse rule of its own differentiates it at these operands.
  bool has_vjp(const Attrs& attrs, std::span<const Type> operands) const { return vjp && (!vjp_applies || vjp_applies(attrs, operands)); }
};

/// All ops by name, in the order of their names.
const std::map<std::string_view, const OpDef*>& op_registry();
/// Throws Error with near names for an unknown one.
const OpDef& find_op(std::string_view name);
void register_op(const OpDef& def);

/// Lists the attributes of an op: `static auto fields() { return Fields<&Softmax::axis>{}; }`.
template <auto... members>
struct Fields {};

namespace detail {

template <auto member>
constexpr std::string_view member_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  const auto end = text.find_last_not_of(")];");
  text = text.substr(0, end + 1);
  if (auto semicolon = text.find(';'); semicolon != std::string_view::npos) text = text.substr(0, semicolon);
  while (!text.empty() && text.back() == ')') text.remove_suffix(1);
  return text.substr(text.rfind(':') + 1);
}

/// An enumeration is an attribute when `enum_words(E)` names its values: `constexpr auto enum_words(Mode) { return std::array{...}; }`.
template <class T>
concept NamedEnum = std::is_enum_v<T> && !std::same_as<T, DType> && requires(T v) { enum_words(v); };

template <class T>
Attr to_attr(const T& v) {
  if constexpr (std::same_as<T, bool> || std::same_as<T, double> || std::same_as<T, DType> || std::same_as<T, std::string> ||
                std::same_as<T, Array> || std::same_as<T, Region> || std::same_as<T, std::vector<std::int64_t>> || std::same_as<T, Dims>)
    return v;
  else if constexpr (std::integral<T>) return static_cast<std::int64_t>(v);
  else if constexpr (std::same_as<T, Axis>) return v.value;
  else if constexpr (NamedEnum<T>) return std::string(enum_words(v)[static_cast<std::size_t>(v)]);
  else return v.values;
}

template <class T>
void from_attr(const Attr& attr, T& v) {
  if constexpr (std::same_as<T, bool> || std::same_as<T, double> || std::same_as<T, DType> || std::same_as<T, std::string> ||
                std::same_as<T, Array> || std::same_as<T, Region> || std::same_as<T, std::vector<std::int64_t>> || std::same_as<T, Dims>)
    v = std::get<T>(attr);
  else if constexpr (std::integral<T>) v = static_cast<T>(std::get<std::int64_t>(attr));
  else if constexpr (std::same_as<T, Axis>) v.value = std::get<std::int64_t>(attr);
  else if constexpr (NamedEnum<T>) {
    const auto words = enum_words(v);
    const auto& word = std::get<std::string>(attr);
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == word) return void(v = static_cast<T>(i));
    fail("'{}' is not one of {}", word, fmt::format("{}", words[0]));
  } else v.values = std::get<decltype(v.values)>(attr);
}

template <class T>
constexpr Role role_of() {
  if constexpr (std::same_as<T, Axis>) return Role::axis;
  else if constexpr (std::same_as<T, Axes>) return Role::axes;
  else if constexpr (std::same_as<T, Perm>) return Role::perm;
  else if constexpr (std::same_as<T, Sizes>) return Role::sizes;
  else if constexpr (std::same_as<T, PerDim<Neutral::zero>>) return Role::per_dim_zero;
  else if constexpr (std::same_as<T, PerDim<Neutral::one>>) return Role::per_dim_one;
  else if constexpr (std::same_as<T, PerDim<Neutral::size>>) return Role::per_dim_size;
  else return Role::plain;
}

template <class T>
Field describe(std::string_view name, const T& initial) {
  Attr attr = to_attr(initial);
  std::vector<std::string_view> words;
  if constexpr (NamedEnum<T>) {
    for (std::string_view word : enum_words(initial)) words.push_back(word);
  }
  return {name, role_of<T>(), attr.index(), attr, words};
}

template <class Op, auto... members>
std::vector<Field> describe_all(Fields<members...>) {
  [[maybe_unused]] const Op initial{};
  return {describe(member_name<members>(), initial.*members)...};
}

template <class Op, auto... members>
Attrs pack(const Op& op, Fields<members...>) {
  return {to_attr(op.*members)...};
}

template <class Op, auto... members>
Op unpack(const Attrs& attrs, Fields<members...>) {
  Op op{};
  [[maybe_unused]] std::size_t i = 0;
  (from_attr(attrs[i++], op.*members), ...);
  return op;
}

void check_arity(std::string_view op, std::size_t wanted, std::size_t given);

/// Calls a rule written with one parameter for each operand, or with a span for any number.
template <class R, class Op, class... Args, class Item>
R call(R (*rule)(const Op&, Args...), const Op& op, std::span<const Item> items) {
  if constexpr ((std::same_as<std::remove_cvref_t<Args>, std::span<const Item>> && ...) && sizeof...(Args) == 1) {
    return rule(op, items);
  } else {
    check_arity(Op::name, sizeof...(Args), items.size());
    return [&]<std::size_t... i>(std::index_sequence<i...>) { return rule(op, items[i]...); }(std::make_index_sequence<sizeof...(Args)>{});
  }
}

template <class Op, class R, class... Args>
constexpr int arity_of(R (*)(const Op&, Args...)) {
  if constexpr (sizeof...(Args) == 1 && ((std::same_as<std::remove_cvref_t<Args>, std::span<const Value>> ||
                                          std::same_as<std::remove_cvref_t<Args>, std::span<const Type>>) &&
                                         ...))
    return -1;
  else return static_cast<int>(sizeof...(Args));
}

inline Values to_values(Value v) { return {v}; }
inline Values to_values(Values v) { return v; }
inline std::vector<Type> to_types(Type t) { return {std::move(t)}; }
inline std::vector<Type> to_types(std::vector<Type> t) { return t; }

template <class T>
concept HasBody = requires { &T::body; };
template <class T>
concept HasExpansion = requires { &T::expansion; };
template <class T>
concept HasInfer = requires { &T::infer; };
template <class T>
concept HasSources = requires { &T::sources; };
template <class T>
concept HasEvaluate = requires { &T::evaluate; };
template <class T>
concept HasLoop = requires { &T::loop; };
template <class T>
concept HasAddress = requires { &T::address; };
template <class T>
concept HasDestination = requires { &T::destination; };
template <class T>
concept HasScalar = requires { T::scalar; };
template <class T>
concept HasJvp = requires { &T::jvp; };
template <class T>
concept HasTranspose = requires { &T::transpose; };
template <class T>
concept HasVjp = requires { &T::vjp; };
template <class T>
concept HasVjpCondition = requires { &T::vjp_applies; };
template <class T>
concept HasBatch = requires { &T::batch; };
template <class T>
concept HasSamples = requires { &T::samples; };
template <class T>
concept HasReason = requires { T::not_differentiable; };
template <class T>
concept HasFormula = requires { T::formula; };
template <class T>
concept HasIntegerOperands = requires { T::integer_operands; };

/// Result types of a composite: those of its body on inputs of the given types.
std::vector<Type> infer_from_body(const OpDef& def, const Attrs& attrs, std::span<const Type> operands);

}  // namespace detail

/// Registers the op T and builds nodes of it: `static const Op<Softmax> softmax_op;` then `softmax_op({axis}, x)`.
/// T has a `name`, a `kind`, its attributes with `fields()`, and rules as static functions; a missing one does not compile.
///   composite   body; everything else is derived from it
///   structure   infer, sources, transpose: a pure index map
///   scalar      infer, evaluate, `scalar` (the row that computes one element), jvp or a reason why not
///   primitive   infer, evaluate, and a transpose (linear), a jvp, or the reason `not_differentiable`
/// The rules:
///   infer(const T&, const Type&...|span) -> Type | vector<Type>        body(const T&, Value...|span) -> Value | Values
///   expansion(const T&, Value...|span) -> Value | Values               as a body, of a primitive that few targets compute whole
///   sources(const T&, span<const Type>, const Type& result, const vector<Index>& at) -> vector<Source>
///   loop(const T&, span<const Type>, const Type& result, const vector<Index>& at, const FreshVariable&) -> Loop
///   address(const T&, span<const Type>, const Type& result, const vector<Index>& at, const ReadIndex&) -> vector<Source>
///   destination(const T&, span<const Type>, const Type& result, const vector<Index>& at, const ReadIndex&) -> Destination
///                                                                      of element `at` of operand 0, a place of its own in the result
///   evaluate(const T&, span<const Array>, span<Array>)                 samples() -> vector<Sample>
///   evaluate(const T&, span<const Array>, span<Array>, const RunRegion&) where attributes are regions
///   jvp(const T&, span x, span y, span dx) -> Values                   vjp(const T&, span x, span y, span dy) -> Values
///   vjp_applies(const T&, span<const Type>) -> bool                    where vjp is not used for all operands
///   transpose(const T&, span x, const vector<bool>& linear, span dy) -> Values
///   batch(const T&, span x, const vector<bool>& batched, const Dim& size) -> Values
template <class T>
class Op {
 public:
  Op() { register_op(def()); }

  /// All results of a new node.
  Values all(const T& op, std::span<const Value> operands) const { return apply(def(), detail::pack(op, T::fields()), operands); }
  /// The only result of a new node.
  template <class... Operands>
  Value operator()(const T& op, Operands... operands) const {
    const Value list[] = {operands...};
    return all(op, list)[0];
  }
  Value of(const T& op, std::span<const Value> operands) const { return all(op, operands)[0]; }

  static const OpDef& def() {
    static const OpDef instance = make();
    return instance;
  }
  static T from(const Attrs& attrs) { return detail::unpack<T>(attrs, T::fields()); }

 private:
  static OpDef make() {
    static_assert(T::kind != OpKind::composite || detail::HasBody<T>, "a composite needs a body");
    static_assert(T::kind == OpKind::composite || detail::HasInfer<T>, "a primitive needs a shape rule: infer");
    static_assert(T::kind != OpKind::structure || (detail::HasSources<T> && detail::HasTranspose<T>),
                  "a structure op needs an index map (sources) and a transpose");
    static_assert((T::kind != OpKind::primitive && T::kind != OpKind::scalar) || detail::HasEvaluate<T>,
                  "a primitive needs a reference evaluation: evaluate");
    static_assert(T::kind == OpKind::composite || detail::HasTranspose<T> || detail::HasJvp<T> || detail::HasReason<T>,
                  "a primitive needs a transpose (linear) or a jvp, or says why it is not_differentiable");
    static_assert(detail::HasSamples<T>, "an op needs samples for the generated tests");
    static_assert(T::kind == OpKind::primitive || !detail::HasExpansion<T>, "only a primitive has an expansion");
    OpDef d;
    d.name = T::name;
    d.kind = T::kind;
    d.fields = detail::describe_all<T>(T::fields());
    if constexpr (detail::HasBody<T>) {
      d.arity = detail::arity_of<T>(&T::body);
      d.body = [](const Attrs& a, std::span<const Value> x) { return detail::to_values(detail::call(&T::body, from(a), x)); };
    }
    if constexpr (detail::HasExpansion<T>)
      d.expansion = [](const Attrs& a, std::span<const Value> x) { return detail::to_values(detail::call(&T::expansion, from(a), x)); };
    if constexpr (detail::HasInfer<T>) {
      d.arity = detail::arity_of<T>(&T::infer);
      d.infer = [](const Attrs& a, std::span<const Type> x) { return detail::to_types(detail::call(&T::infer, from(a), x)); };
    }
    if constexpr (detail::HasSources<T>)
      d.sources = [](const Attrs& a, std::span<const Type> x, const Type& r, const std::vector<Index>& at) {
        return T::sources(from(a), x, r, at);
      };
    if constexpr (detail::HasScalar<T>) d.scalar = static_cast<int>(T::scalar);
    if constexpr (detail::HasLoop<T>)
      d.loop = [](const Attrs& a, std::span<const Type> x, const Type& r, const std::vector<Index>& at, const FreshVariable& fresh) {
        return T::loop(from(a), x, r, at, fresh);
      };
    if constexpr (detail::HasAddress<T>)
      d.address = [](const Attrs& a, std::span<const Type> x, const Type& r, const std::vector<Index>& at, const ReadIndex& read) {
        return T::address(from(a), x, r, at, read);
      };
    if constexpr (detail::HasDestination<T>)
      d.destination = [](const Attrs& a, std::span<const Type> x, const Type& r, const std::vector<Index>& at, const ReadIndex& read) {
        return T::destination(from(a), x, r, at, read);
      };
    if constexpr (detail::HasEvaluate<T>)
      d.evaluate = [](const Attrs& a, std::span<const Array> x, std::span<Array> y, const RunRegion& run) {
        if constexpr (std::invocable<decltype(T::evaluate), const T&, std::span<const Array>, std::span<Array>, const RunRegion&>)
          T::evaluate(from(a), x, y, run);
        else T::evaluate(from(a), x, y);
      };
    if constexpr (detail::HasJvp<T>)
      d.jvp = [](const Attrs& a, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dx) {
        return detail::to_values(T::jvp(from(a), x, y, dx));
      };
    if constexpr (detail::HasTranspose<T>)
      d.transpose = [](const Attrs& a, std::span<const Value> x, const std::vector<bool>& linear, std::span<const Value> dy) {
        return detail::to_values(T::transpose(from(a), x, linear, dy));
      };
    if constexpr (detail::HasVjp<T>)
      d.vjp = [](const Attrs& a, std::span<const Value> x, std::span<const Value> y, std::span<const Value> dy) {
        return detail::to_values(T::vjp(from(a), x, y, dy));
      };
    if constexpr (detail::HasVjpCondition<T>)
      d.vjp_applies = [](const Attrs& a, std::span<const Type> x) { return T::vjp_applies(from(a), x); };
    if constexpr (detail::HasBatch<T>)
      d.batch = [](const Attrs& a, std::span<const Value> x, const std::vector<bool>& b, const Dim& n) {
        return detail::to_values(T::batch(from(a), x, b, n));
      };
    if constexpr (detail::HasReason<T>) d.not_differentiable = T::not_differentiable;
    if constexpr (detail::HasFormula<T>) d.formula = T::formula;
    if constexpr (detail::HasIntegerOperands<T>) d.integer_operands = {T::integer_operands.begin(), T::integer_operands.end()};
    d.samples = &T::samples;
    return d;
  }
};

/// A sample's attributes from a struct: `{.operands = {...}, .attrs = attrs_of(Softmax{.axis = 1})}`.
template <class T>
Attrs attrs_of(const T& op) {
  return detail::pack(op, T::fields());
}

}  // namespace rlx
