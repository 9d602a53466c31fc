// Functions of Python that compiled programs call.
#include "rlx/host_call.h"

#include <nanobind/stl/shared_ptr.h>

#include "item.h"
#include "released.h"

namespace rlx::python {
namespace {

/// `callable` takes a list of arrays and gives one. Operands are copied: it may keep them.
HostFunction host_function(const nb::object& callable) {
  auto* kept = new nb::object(callable);  // as long as the process, like the function
  return [kept](std::span<const Array> operands) {
    const Held held;
    nb::list arrays;
    for (const Array& operand : operands) {
      Array copy(operand.dtype(), operand.shape());
      std::ranges::copy(operand.bytes(), copy.mutable_bytes().begin());
      arrays.append(wrap(Item(Tensor(std::move(copy)))));
    }
    std::vector<Array> results;
    for (nb::handle each : (*kept)(arrays)) results.push_back(read(item_of(each)));
    return results;
  };
}

/// `like` has an array of the type of each result.
nb::list host_call_of(const nb::object& callable, nb::handle arrays, nb::handle like, const std::shared_ptr<Trace>& trace) {
  const Place place(&caller);
  std::vector<Type> types;
  for (nb::handle each : like) types.push_back(item_of(each).type());
  return wrap(host_call(host_function(callable), values_of(arrays, *trace), types), trace);
}

}  // namespace

void bind_host(nb::module_& m) { m.def("host_call", &host_call_of); }

}  // namespace rlx::python
