// Arrays: memory of others in and out, without copies.
#include <algorithm>
#include <atomic>

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "item.h"

namespace rlx::python {
namespace {

/// Keeps a Python object as long as an Array needs its memory, which may end on a thread without the lock.
std::shared_ptr<const void> owner_of(nb::object object) {
  return {object.release().ptr(), [](const void* kept) {
            const nb::gil_scoped_acquire held;
            Py_DECREF(static_cast<PyObject*>(const_cast<void*>(kept)));
          }};
}

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

/// An array of the bytes of `memory`, a NumPy array of u8.
nb::object from_bytes(Bytes memory, DType dtype, std::vector<std::int64_t> shape, nb::object owner) {
  const auto* data = reinterpret_cast<const std::byte*>(memory.data());
  return wrap(Item(Tensor(Array(dtype, std::move(shape), {data, memory.size()}, owner_of(std::move(owner))))));
}

/// The bytes of a read-only NumPy array, which keeps them.
nb::object to_bytes(const Item& item) {
  const Array array = read(item);
  auto* kept = new Array(array);
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Array*>(p); });
  using Out = nb::ndarray<nb::numpy, const std::uint8_t, nb::ndim<1>>;
  return nb::cast(Out(kept->bytes().data(), {kept->bytes().size()}, owner));
}

nb::dlpack::dtype dlpack_type(DType dtype) {
  using nb::dlpack::dtype_code;
  const auto bits = static_cast<std::uint8_t>(info(dtype).bits);
  const auto code = [&]() -> std::uint8_t {
    if (dtype == bf16) return static_cast<std::uint8_t>(dtype_code::Bfloat);
    if (dtype == f8e4m3) return 10;
    if (dtype == f8e5m2) return 12;
    switch (info(dtype).kind) {
      case DTypeClass::floating: return static_cast<std::uint8_t>(dtype_code::Float);
      case DTypeClass::signed_int: return static_cast<std::uint8_t>(dtype_code::Int);
      case DTypeClass::unsigned_int: return static_cast<std::uint8_t>(dtype_code::UInt);
      case DTypeClass::boolean: return static_cast<std::uint8_t>(dtype_code::Bool);
      case DTypeClass::complex: return static_cast<std::uint8_t>(dtype_code::Complex);
    }
    return 0;
  }();
  if (bits < 8) fail("__dlpack__: elements of {} are packed, two to a byte (allowed: those of 8 bits and more)", name(dtype));
  return {code, bits, 1};
}

std::optional<DType> find_dlpack_type(nb::dlpack::dtype given) {
  for (std::size_t i = 0; i < dtype_table.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (info(dtype).bits != given.bits || info(dtype).bits < 8) continue;
    if (dlpack_type(dtype).code == given.code && given.lanes == 1) return dtype;
  }
  return std::nullopt;
}

DType from_dlpack_type(nb::dlpack::dtype given) {
  if (const std::optional<DType> found = find_dlpack_type(given)) return *found;
  fail("from_dlpack: no element type for DLPack's code {} of {} bits", given.code, given.bits);
}

/// A producer of DLPack's capsules of the elements.
template <class... Options>
nb::object exported(Array array, const Options&...) {
  auto* kept = new Array(std::move(array));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<Array*>(p); });
  const std::vector<std::size_t> shape(kept->shape().begin(), kept->shape().end());
  auto* data = const_cast<std::byte*>(std::as_const(*kept).bytes().data());
  return nb::cast(nb::ndarray<nb::array_api, Options...>(data, shape.size(), shape.data(), owner, nullptr, dlpack_type(kept->dtype())));
}

/// `copy` is ours to obey: nanobind takes none. A copy is the caller's to change.
nb::object to_dlpack(nb::handle self, const nb::kwargs& given) {
  const Array array = read(item_of(self));
  nb::dict options;
  for (auto [name, value] : given) options[name] = value;
  bool copies = false;
  if (options.contains("copy")) {
    copies = options["copy"].is(nb::handle(Py_True));
    nb::del(options["copy"]);
  }
  return (copies ? exported(copy_of(array)) : exported(array, nb::ro())).attr("__dlpack__")(**options);
}

bool is_row_major(const nb::ndarray<nb::ro>& array) {
  std::int64_t expected = 1;
  for (std::size_t i = array.ndim(); i-- > 0;) {
    if (array.shape(i) != 1 && array.stride(i) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(i));
  }
  return true;
}

std::vector<std::int64_t> sizes(const nb::ndarray<nb::ro>& memory) {
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < memory.ndim(); ++i) shape.push_back(static_cast<std::int64_t>(memory.shape(i)));
  return shape;
}

/// A view of it, which is row-major, that keeps `owner`.
Array view_of(const nb::ndarray<nb::ro>& memory, DType dtype, std::shared_ptr<const void> owner) {
  const auto* data = static_cast<const std::byte*>(memory.data());
  return {dtype, sizes(memory), {data, memory.nbytes()}, std::move(owner)};
}

/// Its elements, row by row.
Array copy_of(const nb::ndarray<nb::ro>& memory, DType dtype) {
  Array made(dtype, sizes(memory));
  const std::size_t bytes = memory.itemsize();
  std::byte* to = made.mutable_bytes().data();
  const auto walk = [&](const auto& again, const std::byte* from, std::size_t axis) -> void {
    if (axis == memory.ndim()) to = std::copy_n(from, bytes, to);
    else
      for (std::size_t i = 0; i < memory.shape(axis); ++i)
        again(again, from + static_cast<std::int64_t>(i) * memory.stride(axis) * static_cast<std::int64_t>(bytes), axis + 1);
  };
  walk(walk, static_cast<const std::byte*>(memory.data()), 0);
  return made;
}

/// Another library's array, or its capsule: a view where it lies row by row and `copy` does not ask for one. Throws Error where it lies on
/// a device, and where it had to be copied but must not be.
nb::object from_dlpack(nb::handle object, std::optional<bool> copy) {
  nb::ndarray<nb::ro> memory;
  if (!nb::try_cast(object, memory)) fail("from_dlpack: a capsule that was used before, or has no array (allowed: a new one)");
  if (memory.device_type() != nb::device::cpu::value) fail("from_dlpack: the array lies on a device (allowed: memory of the CPU)");
  const DType dtype = from_dlpack_type(memory.dtype());
  const bool is_viewed = memory.size() == 0 || is_row_major(memory);
  if (copy == false && !is_viewed) fail("from_dlpack: the array is not contiguous (allowed with copy=False: row-major ones)");
  if (copy == true || !is_viewed) return wrap(Item(Tensor(copy_of(memory, dtype))));
  return wrap(Item(Tensor(view_of(memory, dtype, std::make_shared<nb::ndarray<nb::ro>>(memory)))));
}

nb::tuple shape_of(const Item& item) { return sizes_of(item.type().shape); }

/// NumPy's class of arrays, which stays; null as long as nobody has imported it.
PyObject* numpy_array_class() {
  static std::atomic<PyObject*> known = nullptr;
  if (known) return known;
  const nb::object numpy = nb::steal(PyImport_GetModule(nb::str("numpy").ptr()));
  if (!numpy.is_valid()) return PyErr_Clear(), nullptr;
  if (nb::object found = nb::getattr(numpy, "ndarray", nb::none()); !found.is_none())
    known = found.release().ptr();  // it is imported whole
  return known;
}

bool is_numpy_array(nb::handle object) { return object.type().ptr() == numpy_array_class(); }

}  // namespace

Array copy_of(const Array& array) {
  Array copy(array.dtype(), array.shape());
  std::ranges::copy(array.bytes(), copy.mutable_bytes().begin());
  return copy;
}

nb::tuple sizes_of(std::span<const Dim> sizes) {
  nb::list made;
  for (const Dim& size : sizes) made.append(size.is_static() ? nb::cast(size.value()) : nb::cast(size));
  return nb::tuple(made);
}

bool is_numpy(nb::handle object) {
  if (is_numpy_array(object)) return true;
  PyObject* const arrays = numpy_array_class();
  return arrays && (nb::isinstance(object, arrays) || nb::isinstance(object, nb::module_::import_("numpy").attr("generic")));
}

std::optional<Array> view_of_numpy(nb::handle object) {
  nb::ndarray<nb::ro> memory;
  if (!is_numpy_array(object) || !nb::try_cast(object, memory)) return std::nullopt;
  const std::optional<DType> dtype = find_dlpack_type(memory.dtype());
  if (!dtype || (memory.size() > 0 && !is_row_major(memory))) return std::nullopt;
  return view_of(memory, *dtype, nullptr);
}

void bind_arrays(nb::module_& m) {
  nb::class_<Item>(m, "ArrayBase", nb::is_weak_referenceable())
      .def_prop_ro("shape", &shape_of, nb::sig("def shape(self) -> tuple[int, ...]"),
                   "The size along each axis; a Dim where it is symbolic.")
      .def_prop_ro(
          "ndim", [](const Item& item) { return item.type().rank(); }, "The number of axes.")
      .def_prop_ro("_dtype", [](const Item& item) { return item.type().dtype; })
      .def_prop_ro("_is_traced", &Item::is_traced)
      .def_prop_ro("_weak", [](const Item& item) { return item.weak; })
      .def("_type_text", &type_text)
      .def("_check_known", &Item::check_known, nb::arg("instead") = "")
      .def("_bytes", &to_bytes, nb::sig("def _bytes(self) -> typing.Any"))
      .def("_set_weak", [](Item& item) { item.weak = true; })
      .def(
          "block_until_ready", [](nb::object self) { return read(item_of(self)), self; },
          nb::sig("def block_until_ready(self) -> typing.Any"), "Computes the elements now.")
      .def("__dlpack_device__", [](const Item&) { return nb::make_tuple(1, 0); })
      .def("__dlpack__", &to_dlpack);
  m.def("from_bytes", &from_bytes,
        nb::sig("def from_bytes(memory: typing.Any, dtype: DType, shape: collections.abc.Sequence, owner: object, /) -> typing.Any"));
  m.def("from_dlpack", &from_dlpack, nb::arg("memory"), nb::arg("copy"),
        nb::sig("def from_dlpack(memory: typing.Any, copy: bool | None, /) -> typing.Any"));
}

}  // namespace rlx::python
