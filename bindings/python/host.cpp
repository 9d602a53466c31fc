// Functions of Python that compiled programs call.
#include "rlx/host_call.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "item.h"
#include "released.h"

namespace rlx::python {
namespace {

/// Arrays of Python, which may keep them: copies.
nb::list copies_of(std::span<const Array> operands) {
  nb::list arrays;
  for (const Array& operand : operands) arrays.append(wrap(Item(Tensor(copy_of(operand)))));
  return arrays;
}

std::vector<Array> elements_of(const nb::object& arrays) {
  std::vector<Array> all;
  for (nb::handle each : arrays) all.push_back(read(item_of(each)));
  return all;
}

/// `callable` takes a list of arrays and gives one.
HostFunction host_function(const nb::object& callable) {
  auto* kept = new nb::object(callable);  // as long as the process, like the function
  return [kept](std::span<const Array> operands) {
    const Held held;
    return elements_of((*kept)(copies_of(operands)));
  };
}

/// An attribute as Python sees it. Graphs are none of them: ops that have any take no kernels.
nb::object attribute(const Attr& attr) {
  const auto as_object = []<class T>(const T& value) -> nb::object {
    if constexpr (std::is_same_v<T, Array>) return wrap(Item(Tensor(value)));
    else if constexpr (std::is_same_v<T, Dims>) return sizes_of(value);
    else if constexpr (std::is_same_v<T, Region>) return nb::none();
    else return nb::cast(value);
  };
  return std::visit(as_object, attr);
}

/// `callable` takes a list of arrays and a dict of attributes, and gives a list of arrays; None takes the kernel back.
void register_kernel_of(const std::string& op, const std::string& device, const nb::object& callable) {
  if (callable.is_none()) return register_kernel(op, device, nullptr);
  auto* kept = new nb::object(callable);  // as long as the process: compiled functions may have it
  register_kernel(op, device, [kept](std::span<const Array> operands, const std::map<std::string_view, Attr>& attributes) {
    const Held held;
    nb::dict given;
    for (const auto& [name, value] : attributes) given[nb::str(name.data(), name.size())] = attribute(value);
    return elements_of((*kept)(copies_of(operands), given));
  });
}

/// `like` has an array of the type of each result.
nb::list host_call_of(const nb::object& callable, nb::handle arrays, nb::handle like, const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  std::vector<Type> types;
  for (nb::handle each : like) types.push_back(item_of(each).type());
  return wrap(host_call(host_function(callable), values_of(arrays, *trace), types), trace);
}

}  // namespace

void bind_host(nb::module_& m) {
  m.def("host_call", &host_call_of);
  m.def("register_kernel", &register_kernel_of, nb::arg("op"), nb::arg("device"), nb::arg("kernel").none());
}

}  // namespace rlx::python
