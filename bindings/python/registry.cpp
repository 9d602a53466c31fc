// Builders by name on Python arrays: noted down where all are known, nodes of the graph where one is traced.
#include "rlx/registry.h"

#include <algorithm>
#include <complex>
#include <mutex>
#include <set>
#include <unordered_map>

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "call_key.h"
#include "item.h"
#include "rlx/ops.h"

namespace rlx::python {
namespace {

/// A Python number, which takes the element type of the arrays that it meets if that can hold its kind.
struct Number {
  enum class Kind : std::uint8_t { boolean, integer, real, complex } kind;
  std::complex<double> value;
  std::int64_t bits = 0;                                               // of an integer the lowest 64: a double holds 53
  enum class Room : std::uint8_t { i64, u64, none } room = Room::i64;  // the type that has room for an integer
};

/// An operand: a number, an array (its place among the arrays of the call), or an array that stands for a number.
struct Slot {
  std::optional<Number> number;
  std::size_t array = 0;
  bool weak = false;
};

/// One argument: fixed, or operands that are filled in when the graph is known.
struct Given {
  std::string name;  // empty: by position
  CallArgument fixed;
  std::vector<Slot> slots;
  bool is_list = false, is_operand = false;
};

struct Call {
  std::string builder;
  std::vector<Given> given;
  Values operator()(const Values& arrays) const;
};

int rank_of(DType dtype) {
  if (dtype == boolean) return 0;
  return is_complex(dtype) ? 3 : is_float(dtype) ? 2 : 1;
}

/// The element type of a number beside an array of `near`: that of the array if it holds numbers of the kind, else the usual one.
DType number_type(int rank, DType near) {
  if (rank <= rank_of(near)) return near;
  if (rank == 1) return i32;
  if (rank == 2) return f32;
  return near == f64 ? c128 : c64;
}

/// Integers that i32 has room for give their low bits to types without, as in JAX: -1 & x is x without a sign, too.
void check_room(const Number& number, DType type) {
  constexpr int usual_bits = 32;
  const int bits = info(type).bits;
  bool fits = number.room == Number::Room::u64 && type == u64;
  if (number.room == Number::Room::i64) {
    const auto in = [&](int width, bool is_signed) {
      const std::int64_t high = number.bits >> (is_signed ? width - 1 : std::min(width, 63));
      return high == 0 || (is_signed && high == -1);
    };
    fits = in(usual_bits, true) || in(bits, is_signed_int(type)) || bits > usual_bits;
  }
  if (!fits)
    fail("the number {:.0f} has no room in {} (allowed: numbers that fit, or arrays of another type)", number.value.real(), name(type));
}

Value number_near(const Value& near, const Number& number, DType like) {
  const DType type = number_type(static_cast<int>(number.kind), like);
  if (number.kind == Number::Kind::integer && is_integer(type)) {
    check_room(number, type);
    Array exact(type, {});
    exact.set_int(0, number.bits);
    if (exact.get_double(0) != number.value.real() || std::abs(number.value.real()) >= 0x1p53) return constant(near, std::move(exact));
  }
  if (!is_complex(type)) return scalar(near, number.value.real(), type);
  const DType part = type == c128 ? f64 : f32;
  return complex(scalar(near, number.value.real(), part), scalar(near, number.value.imag(), part));
}

/// The array of a call whose element type numbers take: the widest kind, the first of equal ones.
Value nearest(const std::vector<Given>& given, const Values& arrays) {
  Value near;
  for (const bool weak : {false, true})
    for (const Given& each : given)
      for (const Slot& slot : each.slots)
        if (!slot.number && slot.weak == weak && (!near || (!weak && rank_of(arrays[slot.array].dtype()) > rank_of(near.dtype()))))
          near = arrays[slot.array];
  return near;
}

Value operand(const Slot& slot, const Value& near, const Values& arrays, bool promotes) {
  if (slot.number) {
    const bool is_count = !promotes && slot.number->kind == Number::Kind::integer;
    const DType count_type = std::abs(slot.number->value.real()) < 0x1p31 ? i32 : i64;
    return number_near(near, *slot.number, is_count ? count_type : near.dtype());
  }
  const Value array = arrays[slot.array];
  const bool is_large = is_integer(array.dtype()) && array.dtype() != i32;  // i32 has no room for the number
  if (!slot.weak || !promotes || is_large) return array;
  const DType type = number_type(rank_of(array.dtype()), near.dtype());
  return type == array.dtype() ? array : cast(array, type);
}

Values Call::operator()(const Values& arrays) const {
  const Value near = nearest(given, arrays);
  const bool promotes = builders_of(builder)[0]->group == "scalar";  // elsewhere an index or a count must stay an integer
  std::vector<CallArgument> arguments;
  std::map<std::string, CallArgument> named;
  for (const Given& each : given) {
    CallArgument argument = each.fixed;
    if (each.is_operand) {
      Values values;
      for (const Slot& slot : each.slots) values.push_back(operand(slot, near, arrays, promotes));
      if (each.is_list) argument = std::move(values);
      else argument = values.at(0);
    }
    if (each.name.empty()) arguments.push_back(std::move(argument));
    else named[each.name] = std::move(argument);
  }
  return apply(builder, arguments, named);
}

/// Makes a Call of what Python gave, and collects its arrays.
class Reader {
 public:
  /// A number of Python of the kind `as_leaf_rank` becomes an array, if it is the first such operand.
  explicit Reader(std::string builder, int as_leaf_rank = -1) : overloads_(builders_of(builder)), as_leaf_rank_(as_leaf_rank) {
    call_.builder = std::move(builder);
  }

  void add(const nb::tuple& args, const nb::dict& kwargs) {
    std::size_t position = 0;
    for (nb::handle each : args) add(position++, "", each);
    for (auto [word, value] : kwargs) add(0, nb::cast<std::string>(word), value);
  }

  /// The widest kind of numbers, where there are no arrays among the operands; else -1.
  int rank_of_numbers_alone() const {
    int top = -1;
    for (const Given& each : call_.given)
      for (const Slot& slot : each.slots) top = std::max(top, slot.number ? static_cast<int>(slot.number->kind) : -1);
    return nb::len(arrays_) == 0 ? top : -1;
  }

  void add(std::size_t position, std::string name, nb::handle object) {
    Given given{.name = std::move(name), .fixed = {}, .slots = {}};
    const bool takes_operand = takes(position, given.name, ParameterKind::operand);
    if (takes(position, given.name, ParameterKind::dtype) && !object.is_none()) given.fixed = as_dtype(object);
    else if (takes_operand && is_operand(object)) given.is_operand = true, given.slots.push_back(slot(object));
    else if (takes(position, given.name, ParameterKind::operands) && is_sequence(object)) add_operands(given, object);
    else if (takes(position, given.name, ParameterKind::operands) && is_operand(object)) add_operands(given, nb::make_tuple(object));
    else given.fixed = fixed(object);
    call_.given.push_back(std::move(given));
  }

  /// The kind of numbers whose results take the type of what they meet: its operands are Python's numbers, and what came of them alone.
  /// 0: there is none, as JAX has it.
  int weak_rank() const {
    const Builder& builder = *overloads_[0];
    static const std::set<std::string, std::less<>> groups = {"scalar", "structure", "broadcasting", "contraction", "nn"};
    static const std::set<std::string, std::less<>> with_types = {"cast", "bitcast", "full"};
    if (!groups.contains(builder.group) || with_types.contains(builder.name)) return 0;
    int top = 0;
    bool is_weak = true;
    for (const Given& each : call_.given) {
      if (std::holds_alternative<DType>(each.fixed)) return 0;
      for (const Slot& slot : each.slots) {
        const int rank = slot.number ? static_cast<int>(slot.number->kind) : rank_of(item_of(arrays_[slot.array]).type().dtype);
        const bool counts = slot.number || slot.weak;
        is_weak = rank > top ? counts : rank == top ? is_weak && counts : is_weak;
        top = std::max(top, rank);
      }
    }
    return is_weak ? top : 0;
  }

  Call&& call() { return std::move(call_); }
  const nb::list& arrays() const { return arrays_; }

 private:
  static bool is_sequence(nb::handle object) { return nb::isinstance<nb::list>(object) || nb::isinstance<nb::tuple>(object); }
  static bool is_number(nb::handle object) {
    return nb::isinstance<nb::bool_>(object) || nb::isinstance<nb::int_>(object) || nb::isinstance<nb::float_>(object) ||
           PyComplex_Check(object.ptr());
  }
  static bool is_operand(nb::handle object) {
    if (object.is_none() || nb::isinstance<nb::str>(object) || is_sequence(object)) return false;
    return is_array(object) || is_number(object) || nb::hasattr(object, "__array__") || nb::hasattr(object, "__dlpack__");
  }

  bool takes(std::size_t position, const std::string& name, ParameterKind kind) const {
    return std::any_of(overloads_.begin(), overloads_.end(), [&](const Builder* builder) {
      const auto& all = builder->parameters;
      if (name.empty()) return position < all.size() && all[position].kind == kind;
      return std::any_of(all.begin(), all.end(), [&](const BuilderParameter& p) { return p.name == name && p.kind == kind; });
    });
  }

  static Number integer(nb::handle object) {
    Number number{Number::Kind::integer, nb::cast<double>(nb::float_(object)),
                  static_cast<std::int64_t>(PyLong_AsUnsignedLongLongMask(object.ptr()))};
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    if (overflow == 0) return number;
    PyLong_AsUnsignedLongLong(object.ptr());
    number.room = PyErr_Occurred() ? Number::Room::none : Number::Room::u64;
    PyErr_Clear();
    return number;
  }

  Slot slot(nb::handle object) {
    const Slot made = plain_slot(object);
    if (!made.number || static_cast<int>(made.number->kind) != as_leaf_rank_ || nb::len(arrays_) > 0) return made;
    return plain_slot(as_leaf(object));
  }

  Slot plain_slot(nb::handle object) {
    using Kind = Number::Kind;
    if (nb::isinstance<nb::bool_>(object)) return {Number{Kind::boolean, nb::cast<bool>(object) ? 1.0 : 0.0}};
    if (nb::isinstance<nb::int_>(object)) return {integer(object)};
    if (nb::isinstance<nb::float_>(object)) return {Number{Kind::real, nb::cast<double>(object)}};
    if (PyComplex_Check(object.ptr()))
      return {Number{Kind::complex, {PyComplex_RealAsDouble(object.ptr()), PyComplex_ImagAsDouble(object.ptr())}}};
    nb::object array = is_array(object) ? nb::borrow(object) : as_array(object);
    const Slot made{{}, arrays_.size(), item_of(array).weak};
    arrays_.append(std::move(array));
    return made;
  }

  void add_operands(Given& given, nb::handle sequence) {
    given.is_operand = given.is_list = true;
    for (nb::handle each : sequence) given.slots.push_back(slot(each));
  }

  static GroupFunction function(nb::object callable);
  static CallArgument fixed(nb::handle object);
  static CallArgument fixed_sequence(nb::handle object);

  std::vector<const Builder*> overloads_;
  int as_leaf_rank_;
  Call call_;
  nb::list arrays_;
};

/// A Python function of lists of arrays.
GroupFunction Reader::function(nb::object callable) {
  return [callable](const std::vector<Values>& groups) {
    nb::list arguments;
    const auto trace = nb::cast<std::shared_ptr<Trace>>(callable.attr("trace"));
    for (const Values& group : groups) arguments.append(wrap(group, trace));
    const nb::object results = callable(*arguments);
    std::vector<Values> values;
    for (nb::handle group : results) values.push_back(values_of(group, *trace));
    return values;
  };
}

CallArgument Reader::fixed(nb::handle object) {
  if (object.is_none()) return {};
  if (nb::isinstance<nb::bool_>(object)) return nb::cast<bool>(object);
  if (nb::isinstance<nb::int_>(object)) return nb::cast<std::int64_t>(object);
  if (nb::isinstance<nb::float_>(object)) return nb::cast<double>(object);
  if (nb::isinstance<nb::str>(object)) return nb::cast<std::string>(object);
  if (nb::isinstance<Dim>(object)) return nb::cast<Dim>(object);
  if (nb::isinstance<DType>(object)) return nb::cast<DType>(object);
  if (is_sequence(object)) return fixed_sequence(object);
  if (is_array(object) && (rank_of(item_of(object).type().dtype) != 1 || item_of(object).is_traced()))
    return Value();  // no parameter takes it
  if (nb::hasattr(object, "trace") && PyCallable_Check(object.ptr())) return function(nb::borrow(object));
  if (nb::hasattr(object, "__index__")) return nb::cast<std::int64_t>(nb::int_(object.attr("__index__")()));
  fail("an argument is a {}", nb::cast<std::string>(nb::handle(object.type()).attr("__name__")));
}

CallArgument Reader::fixed_sequence(nb::handle object) {
  std::vector<CallArgument> items;
  for (nb::handle each : object) items.push_back(fixed(each));
  const auto every = [&]<class... Ts>() {
    return std::all_of(items.begin(), items.end(), [](const CallArgument& item) { return (std::holds_alternative<Ts>(item) || ...); });
  };
  const auto collect = [&](auto list, auto convert) {
    for (const CallArgument& item : items) list.push_back(convert(item));
    return list;
  };
  const auto integer = [](const CallArgument& item) { return std::get<std::int64_t>(item); };
  if (every.operator()<std::int64_t>()) return collect(std::vector<std::int64_t>{}, integer);
  if (every.operator()<std::int64_t, Dim>())
    return collect(Dims{},
                   [&](const CallArgument& item) { return std::holds_alternative<Dim>(item) ? std::get<Dim>(item) : Dim(integer(item)); });
  if (every.operator()<std::int64_t, double>())
    return collect(std::vector<double>{}, [&](const CallArgument& item) {
      return std::holds_alternative<double>(item) ? std::get<double>(item) : static_cast<double>(integer(item));
    });
  if (every.operator()<GroupFunction>())
    return collect(std::vector<GroupFunction>{}, [](const CallArgument& item) { return std::get<GroupFunction>(item); });
  for (nb::handle each : object)
    if (is_array(each)) item_of(each).check_known("static_argnums of rlx.jit makes an argument a number, rlx.Dim a size that runs decide");
  fail("an argument is a list of {} items of different kinds", items.size());
}

nb::object results_of(std::vector<nb::object> results, bool several) {
  if (!several) return std::move(results.at(0));
  nb::list all;
  for (nb::object& each : results) all.append(std::move(each));
  return nb::tuple(all);
}

bool is_weak(DType dtype, int weak_rank) { return weak_rank > 0 && rank_of(dtype) == weak_rank; }

nb::object wrap_all(std::vector<Tensor> tensors, bool several, int weak_rank) {
  std::vector<nb::object> results;
  for (Tensor& tensor : tensors) {
    Item item(std::move(tensor));
    if (weak_rank > 0) item.weak = is_weak(item.type().dtype, weak_rank);
    results.push_back(wrap(std::move(item)));
  }
  return results_of(std::move(results), several);
}

/// Calls of builders that were made before.
struct KnownCalls {
  struct Entry {
    Tensor::Operation operation;
    bool several;
    int weak_rank;
  };
  static constexpr std::size_t most = 4096;
  std::mutex mutex;
  std::unordered_map<std::string, Entry> entries;

  std::optional<Entry> find(const std::string& key) {
    const std::scoped_lock lock(mutex);
    const auto found = entries.find(key);
    return found == entries.end() ? std::nullopt : std::optional(found->second);
  }
  void add(std::string key, Entry entry) {
    const std::scoped_lock lock(mutex);
    if (entries.size() == most) entries.clear();
    entries.insert_or_assign(std::move(key), std::move(entry));
  }
};
KnownCalls& known_calls() {
  static auto* one = new KnownCalls;  // not freed: the interpreter may be gone
  return *one;
}

/// Notes the call down; `key` tells which others it stands for, if any.
nb::object noted(Reader& reader, std::string key, std::size_t keyed, bool several) {
  const int weak_rank = reader.weak_rank();
  std::vector<Tensor> tensors;
  std::vector<Type> types;
  for (nb::handle array : reader.arrays()) tensors.push_back(item_of(array).known()), types.push_back(tensors.back().type());
  const Tensor::Operation operation(reader.call(), types);
  if (!key.empty() && keyed == tensors.size()) known_calls().add(std::move(key), {operation, several, weak_rank});
  return wrap_all(operation(std::move(tensors)), several, weak_rank);
}

nb::object apply_to(const std::string& name, const nb::tuple& args, const nb::dict& kwargs) {
  std::vector<Tensor> operands;
  std::string key = call_key(name, args, kwargs, operands);
  if (!key.empty())
    if (const auto known = known_calls().find(key))
      return wrap_all(known->operation(std::move(operands)), known->several, known->weak_rank);
  const Place place(&caller);
  if (builders_of(name).empty()) apply(name, {});  // says which names are near
  Reader reader(name);
  reader.add(args, kwargs);
  if (const int rank = reader.rank_of_numbers_alone(); rank >= 0) {
    reader = Reader(name, rank);
    reader.add(args, kwargs);
  }
  const bool several = builders_of(name)[0]->several;

  const std::shared_ptr<Trace> trace = trace_of(reader.arrays());
  if (!trace) return noted(reader, std::move(key), operands.size(), several);
  std::vector<nb::object> results;
  const int weak_rank = reader.weak_rank();
  const Values values = reader.call()(values_of(reader.arrays(), *trace));
  const std::uint32_t line = trace->note_line();
  for (const Value& value : values) results.push_back(wrap(Item(value, trace, is_weak(value.dtype(), weak_rank), line)));
  return results_of(std::move(results), several);
}

bool is_operand(nb::handle object) {
  return is_array(object) || PyFloat_Check(object.ptr()) || PyLong_Check(object.ptr()) || PyComplex_Check(object.ptr()) || is_numpy(object);
}

bool is_bool(nb::handle object) {
  if (is_array(object)) {
    const Place place(&caller);
    item_of(object).check_in_use();
    return item_of(object).type().dtype == boolean;
  }
  return PyBool_Check(object.ptr()) || (is_numpy(object) && nb::cast<std::string>(object.attr("dtype").attr("kind")) == "b");
}

/// An operator of Python: `x + y`, where `y` may be anything. NotImplemented leaves it to y's class. Between two bool it may be
/// another builder, `of_bools`.
template <bool backward>
auto binary(const char* name, const char* of_bools = nullptr) {
  return [name, of_bools](nb::handle self, nb::handle other) {
    if (!is_operand(other)) return nb::borrow(Py_NotImplemented);
    const char* const op = of_bools && is_bool(self) && is_bool(other) ? of_bools : name;
    return apply_to(op, backward ? nb::make_tuple(other, self) : nb::make_tuple(self, other), nb::dict());
  };
}

/// Those that are one builder.
void bind_operators(nb::handle array_class) {
  auto cls = nb::borrow<nb::class_<Item>>(array_class);
  const auto both = [&](const char* forward, const char* backward, const char* builder, const char* of_bools = nullptr) {
    cls.def(forward, binary<false>(builder, of_bools), nb::is_operator(), nb::arg().none());
    cls.def(backward, binary<true>(builder, of_bools), nb::is_operator(), nb::arg().none());
  };
  both("__add__", "__radd__", "add", "logical_or");
  both("__sub__", "__rsub__", "sub");
  both("__mul__", "__rmul__", "mul", "logical_and");
  both("__and__", "__rand__", "logical_and");
  both("__or__", "__ror__", "logical_or");
  both("__xor__", "__rxor__", "logical_xor");
  both("__lshift__", "__rlshift__", "shl");
  both("__rshift__", "__rrshift__", "shr");
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"})
    cls.def(fmt::format("__{}__", name).c_str(), binary<false>(name), nb::is_operator(), nb::arg().none(),
            nb::sig(fmt::format("def __{}__(self, other: object, /) -> typing.Any", name).c_str()));
}

nb::dict described(const BuilderParameter& parameter) {
  nb::dict entry;
  entry["name"] = parameter.name;
  entry["kind"] = name_of(parameter.kind);
  entry["required"] = parameter.required;
  entry["initial"] = parameter.initial;
  nb::list words;
  for (std::string_view word : parameter.words) words.append(word);
  entry["words"] = words;
  return entry;
}

nb::list described_builders() {
  nb::list all;
  for (const Builder& builder : builders()) {
    if (!builder.call) continue;
    nb::dict entry;
    entry["name"] = builder.name;
    entry["doc"] = builder.comment;
    entry["group"] = builder.group;
    entry["several"] = builder.several;
    nb::list parameters;
    for (const BuilderParameter& parameter : builder.parameters) parameters.append(described(parameter));
    entry["parameters"] = parameters;
    all.append(entry);
  }
  return all;
}

}  // namespace

void bind_registry(nb::module_& m) {
  m.def("apply", &apply_to, nb::arg("name"), nb::arg("args"), nb::arg("kwargs"),
        nb::sig("def apply(name: str, args: tuple, kwargs: dict) -> typing.Any"), "Calls a builder of the registry by its name.");
  bind_operators(m.attr("ArrayBase"));
  m.def("builders", &described_builders, "The functions of the registry with their parameters.");
}

}  // namespace rlx::python
