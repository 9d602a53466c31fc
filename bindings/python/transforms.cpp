// Traces, derivatives and batches of Python functions. A function here takes a list of arrays and gives one.
#include "rlx/transform.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "item.h"
#include "rlx/ops.h"
#include "words.h"

namespace rlx::python {
namespace {

/// A Python function as one of values.
Function function_of(const nb::object& callable, const std::shared_ptr<Trace>& trace) {
  return [callable, trace](const Values& x) { return values_of(callable(wrap(x, trace)), *trace); };
}

/// Runs `function` in a region: what it takes is new there, so that a derivative by it sees nothing of what it captures.
nb::list in_region(const Function& function, nb::handle arrays, const std::shared_ptr<Trace>& trace) {
  return wrap(checkpoint(function, Save::everything)(values_of(arrays, *trace)), trace);
}

Dims dims_of(nb::handle shape) {
  Dims dims;
  for (nb::handle size : shape) dims.push_back(nb::isinstance<Dim>(size) ? nb::cast<Dim>(size) : Dim(nb::cast<std::int64_t>(size)));
  return dims;
}

Value zeros_of(const Value& like, const Value& value) { return value ? value : zeros_like(like); }

/// All results of the function, then the gradient of the first one by the arrays at `wrt`.
nb::list value_and_grad_of(const nb::object& callable, nb::handle arrays, std::vector<std::size_t> wrt,
                           const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  const Function function = function_of(callable, trace);
  const auto both = [&](const Values& x) {
    Values y = function(x), by;
    for (std::size_t i : wrt) by.push_back(x.at(i));
    const Values gradient = grad(y.at(0), by);
    for (std::size_t i = 0; i < by.size(); ++i) y.push_back(zeros_of(by[i], gradient[i]));
    return y;
  };
  return in_region(both, arrays, trace);
}

/// All results of the function, then the cotangents of the arrays, which come first, by those of the results, which come behind them.
nb::list vjp_of(const nb::object& callable, nb::handle arrays, std::size_t count, const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  const Function function = function_of(callable, trace);
  const auto both = [&](const Values& all) {
    const Values x(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)),
        dy(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
    Values y = function(x);
    const Values dx = vjp(y, x, dy);
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(zeros_of(x[i], dx[i]));
    return y;
  };
  return in_region(both, arrays, trace);
}

/// All results of the function, then their tangents; the tangents of the arrays come behind the arrays.
nb::list jvp_of(const nb::object& callable, nb::handle arrays, std::size_t count, const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  const Function function = function_of(callable, trace);
  const auto both = [&](const Values& all) {
    const Values x(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)),
        dx(all.begin() + static_cast<std::ptrdiff_t>(count), all.end());
    Values y = function(x);
    const Values dy = jvp(y, x, dx);
    for (std::size_t i = 0; i < dy.size(); ++i) y.push_back(zeros_of(y[i], dy[i]));
    return y;
  };
  return in_region(both, arrays, trace);
}

/// The derivative of every element of each result by every element of the only array.
nb::list jacobian_of(const nb::object& callable, nb::handle arrays, bool forward, const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  const Function function = function_of(callable, trace);
  const auto derivative = [&](const Values& x) {
    return jacobian(function, x.at(0), forward ? JacobianMode::forward : JacobianMode::reverse);
  };
  return in_region(derivative, arrays, trace);
}

nb::list vmap_of(const nb::object& callable, nb::handle arrays, std::vector<std::optional<std::int64_t>> in_axes,
                 std::vector<std::int64_t> out_axes, const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  return wrap(vmap(function_of(callable, trace), values_of(arrays, *trace), std::move(in_axes), std::move(out_axes)), trace);
}

nb::list checkpoint_of(const nb::object& callable, nb::handle arrays, const std::string& save, const std::vector<std::string>& names,
                       const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  return wrap(checkpoint(function_of(callable, trace), word<Save>("checkpoint", "save", save), names)(values_of(arrays, *trace)), trace);
}

/// `rule` gives the tangents of the results from the arrays and their tangents.
nb::list custom_jvp_of(const nb::object& callable, const nb::object& rule, nb::handle arrays, const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  const auto tangents = [&](const Values& x, const Values& dx) { return values_of(rule(wrap(x, trace), wrap(dx, trace)), *trace); };
  return wrap(custom_jvp(function_of(callable, trace), tangents)(values_of(arrays, *trace)), trace);
}

/// `forward` gives the results and what `backward` wants to keep; the latter gives the cotangents of the arrays from that and the results'.
nb::list custom_vjp_of(const nb::object& callable, const nb::object& forward, const nb::object& backward, nb::handle arrays,
                       const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  const auto first = [&](const Values& x) {
    const nb::object pair = forward(wrap(x, trace));
    return std::pair(values_of(nb::object(pair[0]), *trace), values_of(nb::object(pair[1]), *trace));
  };
  const auto second = [&](const Values& kept, const Values& dy) { return values_of(backward(wrap(kept, trace), wrap(dy, trace)), *trace); };
  return wrap(custom_vjp(function_of(callable, trace), first, second)(values_of(arrays, *trace)), trace);
}

}  // namespace

void bind_transforms(nb::module_& m) {
  nb::class_<Trace>(m, "Trace", "A graph in the making.")
      .def(nb::new_([](const std::string& name) { return std::make_shared<Trace>(name); }), nb::arg("name"))
      .def_static("of", [](const Graph& graph) { return std::make_shared<Trace>(graph); })
      .def("value", [](const std::shared_ptr<Trace>& trace, Value value) { return wrap(Item(value, trace)); })
      .def("input", [](Trace& trace, nb::handle shape, DType dtype, bool weak) { return wrap(trace.input(dims_of(shape), dtype, weak)); })
      .def("lift",
           [](Trace& trace, nb::handle array) { return wrap(Item(trace.value_of(array), trace.shared_from_this(), item_of(array).weak)); })
      .def(
          "input_like",
          [](Trace& trace, const Item& like, bool donated) {
            return wrap(trace.input(like.type().shape, like.type().dtype, like.weak, donated));
          },
          nb::arg("like"), nb::arg("donated") = false)
      .def("taken_by", &Trace::taken_by)
      .def("with_others", &Trace::with_others);
  m.def("trace_of", [](nb::handle arrays) { return trace_of(arrays); });
  m.def("value_and_grad", &value_and_grad_of);
  m.def("vjp", &vjp_of);
  m.def("jvp", &jvp_of);
  m.def("jacobian", &jacobian_of);
  m.def("vmap", &vmap_of);
  m.def("checkpoint", &checkpoint_of);
  m.def("checkpoint_name", [](nb::handle array, const std::string& name, const std::shared_ptr<Trace>& trace) {
    const Place place(&caller);
    return wrap(Item(checkpoint_name(trace->value_of(array), name), trace));
  });
  m.def("custom_jvp", &custom_jvp_of);
  m.def("custom_vjp", &custom_vjp_of);
}

}  // namespace rlx::python
