#include "item.h"
#include "released.h"

#include <algorithm>
#include <utility>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace rlx::python {
namespace {

constexpr std::size_t most_constant_bytes = 64;  // of a known array that becomes a constant of a trace

/// What the package sets when it is imported. Leaked on purpose: it may be needed while the interpreter shuts down.
struct Hooks {
  nb::object array_class, as_array, as_leaf, as_dtype, folder;
};
Hooks& hooks() {
  static auto* one = new Hooks;
  return *one;
}

/// Of a size, as Python pickles it: the factor, and the names and bounds of its symbols.
using PickledTerm = std::pair<std::int64_t, std::vector<std::pair<std::string, std::int64_t>>>;

/// Another value until the end of the block.
template <class T>
struct Exchanged {
  T& place;
  T before;
  Exchanged(T& where, T now) : place(where), before(std::exchange(where, std::move(now))) {}
  ~Exchanged() { place = std::move(before); }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;
};

std::vector<PickledTerm> pickled_terms(const Dim& dim) {
  std::vector<PickledTerm> terms;
  for (const Dim::Term& term : dim.terms()) {
    terms.push_back({term.coefficient, {}});
    for (const auto& symbol : term.symbols) terms.back().second.emplace_back(symbol->name, symbol->bound);
  }
  return terms;
}

Dim dim_of(const std::vector<PickledTerm>& terms) {
  Dim sum;
  for (const auto& [factor, symbols] : terms) {
    Dim product = factor;
    for (const auto& [name, bound] : symbols) product *= Dim::symbol(name, bound);
    sum += product;
  }
  return sum;
}

}  // namespace

Item::Item(Value traced, std::shared_ptr<Trace> in, bool is_number, std::uint32_t at)
    : value(traced), trace(std::move(in)), weak(is_number), line(at), number(trace->next_number()) {}

Trace::Trace(std::string name) : graph_(std::move(name)) { note_line(); }

std::uint32_t Trace::note_line() {
  const SourceLine at = caller();
  if (lines_.empty() || lines_.back().line != at.line || lines_.back().file != at.file) lines_.push_back(at);
  return static_cast<std::uint32_t>(lines_.size() - 1);
}

/// Of a traced array; its region may have ended.
std::string type_text(const Item& item) {
  try {
    return item.type().to_string();
  } catch (const Error&) {
    return "a type that is gone";
  }
}

Item Trace::input(Dims shape, DType dtype, bool weak, bool donated) {
  inputs_.push_back({fmt::format("{}{}", donated ? "donated." : "", inputs_.size()), Type{dtype, shape}, weak, donated});
  const std::string& name = inputs_.back().name;
  return {donated ? graph_.state(name, std::move(shape), dtype) : graph_.input(name, std::move(shape), dtype), shared_from_this(), weak};
}

void Item::check_known(std::string_view instead) const {
  if (donated) fail("an array of {} was donated to a compiled function, which wrote a result in its place", donated->to_string());
  check_in_use();
  if (!tensor)
    fail("an array of {} is being traced by {}: its elements are known when the compiled function runs, not while it is traced{}{}",
         type_text(*this), trace->graph().name(), instead.empty() ? "" : ": ", instead);
}

const Tensor& Item::known() const {
  check_known();
  return *tensor;
}

void Item::check_in_use() const {
  if (!is_traced() || !trace->finished()) return;
  const SourceLine& made = trace->line(line);
  fail("an array of {} is used outside of the function in which it was traced: {}, made at {}:{}", type_text(*this), trace->graph().name(),
       made.file, made.line);
}

Value Trace::value_of(nb::handle array) {
  const Item& item = item_of(array);
  item.check_in_use();
  if (item.is_traced()) {
    if (watch_ && item.number <= watch_->since) watch_->taken.push_back(nb::borrow(array));
    const auto other = others_.find(array.ptr());
    return other == others_.end() ? item.value : other->second;
  }
  if (const auto found = known_.find(array.ptr()); found != known_.end()) return found->second;
  const Type type = item.type();
  const auto bytes = static_cast<std::size_t>(type.size().value()) * static_cast<std::size_t>(info(type.dtype).bits) / 8;
  Value value;
  if (bytes <= most_constant_bytes) value = graph_.constant(read(item));
  else value = graph_.input(fmt::format("captured.{}", captured_.size()), type.shape, type.dtype), captured_.push_back(nb::borrow(array));
  known_.emplace(array.ptr(), value);
  if (bytes <= most_constant_bytes) kept_.push_back(nb::borrow(array));
  return value;
}

nb::list Trace::taken_by(const nb::object& function, nb::handle arrays) {
  const std::uint64_t since = made_;
  const nb::list copies = wrap(values_of(arrays, *this), shared_from_this());
  const Exchanged watch(watch_, std::optional(Watch{since, {}}));
  function(copies);
  nb::list taken;
  for (const nb::object& array : watch_->taken)
    if (std::ranges::none_of(taken, [&](nb::handle other) { return other.is(array); })) taken.append(array);
  return taken;
}

nb::object Trace::with_others(nb::handle arrays, nb::handle others, const nb::object& function) {
  std::map<PyObject*, Value> all = others_;
  const Values values = values_of(others, *this);
  std::size_t i = 0;
  for (nb::handle array : arrays) all.insert_or_assign(array.ptr(), values.at(i++));
  const Exchanged exchanged(others_, std::move(all));
  return function();
}

nb::object wrap(Item item) {
  nb::object object = nb::inst_alloc(hooks().array_class);
  new (nb::inst_ptr<Item>(object)) Item(std::move(item));
  nb::inst_mark_ready(object);
  return object;
}

nb::list wrap(std::span<const Value> values, const std::shared_ptr<Trace>& trace) {
  nb::list arrays;
  for (const Value& value : values) arrays.append(value ? wrap(Item(value, trace)) : nb::none());
  return arrays;
}

bool is_array(nb::handle object) { return nb::isinstance<Item>(object); }
const Item& item_of(nb::handle array) { return nb::cast<const Item&>(array); }

Values values_of(nb::handle arrays, Trace& trace) {
  Values values;
  for (nb::handle array : arrays) values.push_back(array.is_none() ? Value() : trace.value_of(is_array(array) ? array : as_array(array)));
  return values;
}

std::shared_ptr<Trace> trace_of(nb::handle arrays) {
  for (nb::handle array : arrays)
    if (is_array(array) && item_of(array).trace) return item_of(array).trace;
  return nullptr;
}

Array read(const Item& item) {
  const Tensor& tensor = item.known();
  if (std::optional<Array> known = tensor.known()) return *std::move(known);
  const Released released;
  return device_of_thread().empty() ? tensor.read() : tensor.read(graph_cache());
}

nb::object as_array(nb::handle object) { return hooks().as_array(object); }
nb::object as_leaf(nb::handle object) { return hooks().as_leaf(object); }
DType as_dtype(nb::handle object) { return nb::cast<DType>(hooks().as_dtype(object)); }

SourceLine caller() {
  const Held held;  // errors of arrays that are computed within a call are found while the lock is away
  const auto folder = nb::cast<std::string>(hooks().folder);
  nb::object frame = nb::module_::import_("sys").attr("_getframe")();
  while (true) {
    const auto file = nb::cast<std::string>(frame.attr("f_code").attr("co_filename"));
    nb::object outer = frame.attr("f_back");
    if (!file.starts_with(folder) || outer.is_none()) return {file, nb::cast<int>(frame.attr("f_lineno"))};
    frame = std::move(outer);
  }
}

void bind_types(nb::module_& m) {
  m.def("set_hooks", [](nb::object array_class, nb::object as_array, nb::object as_leaf, nb::object as_dtype, nb::object folder) {
    hooks() = {std::move(array_class), std::move(as_array), std::move(as_leaf), std::move(as_dtype), std::move(folder)};
  });
  auto dtype = nb::enum_<DType>(m, "DType", "The element type of an array.");
  for (std::size_t i = 0; i < dtype_table.size(); ++i) dtype.value(dtype_table[i].name.data(), static_cast<DType>(i));

  m.def("dim_of", &dim_of);
  nb::class_<Dim>(m, "Dim", "A size that is known when a compiled function runs: a symbol of 1..bound, or a polynomial of symbols.")
      .def(
          "__init__", [](Dim* self, const std::string& name, std::int64_t bound) { new (self) Dim(Dim::symbol(name, bound)); },
          nb::arg("name"), nb::arg("bound"))
      .def("__repr__", &Dim::to_string)
      .def(
          "__reduce__",
          [](const Dim& dim) {
            return nb::make_tuple(nb::module_::import_("rlx._pickling").attr("dim_of"), nb::make_tuple(pickled_terms(dim)));
          },
          nb::sig("def __reduce__(self) -> tuple"))
      .def("__hash__", &Dim::hash)
      .def(
          "__eq__",
          [](const Dim& a, nb::handle b) {
            if (nb::isinstance<Dim>(b)) return a == nb::cast<const Dim&>(b);
            return nb::isinstance<nb::int_>(b) && a == Dim(nb::cast<std::int64_t>(b));
          },
          nb::arg().none())
      .def(
          "__add__", [](const Dim& a, const Dim& b) { return a + b; }, nb::is_operator())
      .def(
          "__add__", [](const Dim& a, std::int64_t b) { return a + b; }, nb::is_operator())
      .def(
          "__radd__", [](const Dim& a, std::int64_t b) { return a + b; }, nb::is_operator())
      .def(
          "__sub__", [](const Dim& a, const Dim& b) { return a - b; }, nb::is_operator())
      .def(
          "__sub__", [](const Dim& a, std::int64_t b) { return a - b; }, nb::is_operator())
      .def(
          "__rsub__", [](const Dim& a, std::int64_t b) { return b - a; }, nb::is_operator())
      .def(
          "__mul__", [](const Dim& a, const Dim& b) { return a * b; }, nb::is_operator())
      .def(
          "__mul__", [](const Dim& a, std::int64_t b) { return a * b; }, nb::is_operator())
      .def(
          "__rmul__", [](const Dim& a, std::int64_t b) { return a * b; }, nb::is_operator())
      .def("__neg__", [](const Dim& a) { return -a; })
      .def_prop_ro("upper", &Dim::upper, "The largest value that the bounds of the symbols allow.");
}

}  // namespace rlx::python
