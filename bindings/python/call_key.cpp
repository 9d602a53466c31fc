#include "call_key.h"

namespace rlx::python {
namespace {

class Writer {
 public:
  explicit Writer(std::vector<Tensor>& operands) : operands_(operands) {}

  /// Whether it can be told.
  bool add(nb::handle object) {
    PyObject* const p = object.ptr();
    if (is_array(object)) return add_array(item_of(object));
    if (object.is_none()) return mark('-');
    if (PyBool_Check(p)) return mark(p == Py_True ? 't' : 'f');
    if (PyLong_CheckExact(p)) return add_integer(p);
    if (PyFloat_CheckExact(p)) return mark('d') && bytes(PyFloat_AsDouble(p));
    if (PyUnicode_CheckExact(p)) return mark('s') && text(object);
    if (PyTuple_CheckExact(p) || PyList_CheckExact(p)) return add_sequence(object);
    DType dtype{};
    return nb::try_cast(object, dtype) && mark('T') && bytes(dtype);
  }

  bool text(nb::handle object) {
    Py_ssize_t size = 0;
    const char* const utf8 = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (!utf8) return PyErr_Clear(), false;
    return text({utf8, static_cast<std::size_t>(size)});
  }
  bool text(std::string_view given) {
    bytes(given.size());
    key_ += given;
    return true;
  }
  bool mark(char sign) {
    key_ += sign;
    return true;
  }
  std::string&& key() { return std::move(key_); }

 private:
  template <class T>
  bool bytes(const T& value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return true;
  }

  bool add_array(const Item& item) {
    if (!item.tensor) return false;
    operands_.push_back(*item.tensor);
    const Type& type = item.type();
    mark(item.weak ? 'w' : 'a');
    bytes(type.dtype);
    bytes(type.shape.size());
    return std::all_of(type.shape.begin(), type.shape.end(), [&](const Dim& size) { return size.is_static() && bytes(size.value()); });
  }

  bool add_integer(PyObject* object) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0 && mark('i') && bytes(value);
  }

  bool add_sequence(nb::handle sequence) {
    mark(PyList_CheckExact(sequence.ptr()) ? '[' : '(');
    for (nb::handle each : sequence)
      if (!add(each)) return false;
    return mark(')');
  }

  std::vector<Tensor>& operands_;
  std::string key_;
};

}  // namespace

std::string call_key(const std::string& name, const nb::tuple& args, const nb::dict& kwargs, std::vector<Tensor>& operands) {
  Writer writer(operands);
  writer.text(name);
  for (nb::handle arg : args)
    if (!writer.add(arg)) return {};
  for (auto [word, value] : kwargs)
    if (!writer.mark('=') || !writer.text(word) || !writer.add(value)) return {};
  return writer.key();
}

}  // namespace rlx::python
