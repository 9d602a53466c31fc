// Traces, derivatives and batches of Python functions. A function here takes a list of arrays and gives one.
#include "rlx/transform.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "item.h"
#include "rlx/graph_cache.h"
#include "rlx/ops.h"

namespace rlx::python {
namespace {

GraphCache& graph_cache() {
  static auto* one = new GraphCache;  // not freed: runs may be in flight when the interpreter ends
  return *one;
}

/// A traced function that is compiled, with the arrays that it captured.
class Compiled {
 public:
  Compiled(Trace& trace, nb::handle outputs) {
    std::int64_t count = 0;
    for (const Value& value : values_of(outputs, trace)) trace.graph().output(fmt::format("{}", count++), value);
    trace.finish();
    for (nb::handle array : trace.captured()) captured_.push_back(*item_of(array).tensor);
    inputs_ = trace.inputs();
    const nb::gil_scoped_release released;
    executable_ = graph_cache().compile(trace.graph());
  }

  nb::list operator()(nb::handle arrays) const {
    std::map<std::string, Feed> feeds;
    std::int64_t count = 0;
    for (nb::handle array : arrays) feeds.emplace(fmt::format("{}", count++), read(item_of(array)));
    if (count != inputs_) fail("a compiled function takes {} arrays (given: {})", inputs_, count);
    return run(std::move(feeds));
  }

  std::string dump(const std::string& stage) const {
    const std::map<std::string, Stage> stages{{"hir", Stage::hir}, {"mir", Stage::mir}, {"lir", Stage::lir}, {"kernels", Stage::kernels}};
    const auto it = stages.find(stage);
    if (it == stages.end()) fail("there is no stage '{}' (allowed: hir, mir, lir, kernels)", stage);
    return executable_->dump(it->second);
  }

 private:
  nb::list run(std::map<std::string, Feed> feeds) const {
    std::vector<Array> results;
    {
      const nb::gil_scoped_release released;
      for (std::size_t i = 0; i < captured_.size(); ++i) feeds.emplace(fmt::format("captured.{}", i), captured_[i].read());
      for (auto& [name, array] : executable_->run(feeds)) results.push_back(array);
      feeds.clear();
    }
    nb::list arrays;
    for (Array& array : results) arrays.append(wrap(Item(Tensor(std::move(array)))));
    return arrays;
  }

  std::optional<Executable> executable_;
  std::vector<Tensor> captured_;
  std::int64_t inputs_ = 0;
};

/// The compiled programs of a function that was called with arrays alone and gives one: found without Python.
class FlatCalls {
 public:
  void add(nb::handle arrays, nb::object program) {
    Entry entry{{}, std::move(program)};
    for (nb::handle array : arrays) entry.types.emplace_back(item_of(array).type(), item_of(array).weak);
    entries_.push_back(std::move(entry));
  }

  /// The result; None where there is no such program.
  nb::object operator()(const nb::tuple& args) const {
    for (const Entry& entry : entries_)
      if (fits(entry, args)) return nb::cast<const Compiled&>(entry.program)(args)[0];
    return nb::none();
  }

 private:
  struct Entry {
    std::vector<std::pair<Type, bool>> types;  // and whether it is a number of Python
    nb::object program;
  };

  static bool fits(const Entry& entry, const nb::tuple& args) {
    if (args.size() != entry.types.size()) return false;
    for (std::size_t i = 0; i < entry.types.size(); ++i) {
      if (!is_array(args[i])) return false;
      const Item& item = item_of(args[i]);
      if (!item.tensor || item.weak != entry.types[i].second || !(item.type() == entry.types[i].first)) return false;
    }
    return true;
  }

  std::vector<Entry> entries_;
};

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

nb::list checkpoint_of(const nb::object& callable, nb::handle arrays, const std::string& save, const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  const auto words = enum_words(Save{});
  const auto it = std::find(words.begin(), words.end(), save);
  if (it == words.end()) fail("checkpoint: there is no way to save '{}' (allowed: everything, dots, nothing)", save);
  return wrap(checkpoint(function_of(callable, trace), static_cast<Save>(it - words.begin()))(values_of(arrays, *trace)), trace);
}

}  // namespace

void bind_transforms(nb::module_& m) {
  nb::class_<Trace>(m, "Trace", "A graph in the making.")
      .def(nb::new_([](const std::string& name) { return std::make_shared<Trace>(name); }), nb::arg("name"))
      .def("input", [](Trace& trace, nb::handle shape, DType dtype, bool weak) { return wrap(trace.input(dims_of(shape), dtype, weak)); })
      .def("input_like", [](Trace& trace, const Item& like) { return wrap(trace.input(like.type().shape, like.type().dtype, like.weak)); });
  nb::class_<Compiled>(m, "Compiled", "A compiled function of arrays.")
      .def(nb::init<Trace&, nb::handle>())
      .def("__call__", &Compiled::operator())
      .def("dump", &Compiled::dump, nb::arg("stage"), "The program at a stage: hir, mir, lir or kernels.");
  nb::class_<FlatCalls>(m, "FlatCalls").def(nb::init<>()).def("add", &FlatCalls::add).def("__call__", &FlatCalls::operator());
  m.def("trace_of", [](nb::handle arrays) { return trace_of(arrays); });
  m.def("value_and_grad", &value_and_grad_of);
  m.def("vjp", &vjp_of);
  m.def("jvp", &jvp_of);
  m.def("jacobian", &jacobian_of);
  m.def("vmap", &vmap_of);
  m.def("checkpoint", &checkpoint_of);
}

}  // namespace rlx::python
