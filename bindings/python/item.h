#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "rlx/place.h"
#include "rlx/tensor.h"

namespace rlx::python {

namespace nb = nanobind;

class Trace;

/// What a Python array is: values that are known or noted down, or the result of a node of a graph that is being traced.
struct Item {
  std::optional<Tensor> tensor;
  Value value = {};
  std::shared_ptr<Trace> trace = {};  // of `value`
  bool weak = false;                  // a Python number: it takes the element type of what it meets
  std::uint32_t line = 0;             // of the program, where `value` was made: see Trace::line
  std::uint64_t number = 0;           // of a traced array, among those of its trace
  std::optional<Type> donated = {};   // what it was, when a compiled function has taken its elements

  explicit Item(Tensor known) : tensor(std::move(known)) {}
  Item(Value traced, std::shared_ptr<Trace> in, bool is_number = false, std::uint32_t at = 0);
  const Type& type() const { return donated ? *donated : tensor ? tensor->type() : value.type(); }
  bool is_traced() const { return !tensor && !donated; }
  /// Throws Error for a traced array, with what serves instead of its elements, and for one whose elements were taken.
  void check_known(std::string_view instead = "") const;
  /// The elements, where check_known lets them be.
  const Tensor& known() const;
  /// Throws Error for a traced array that its function has left behind.
  void check_in_use() const;
};

/// What an array of a traced function stands for.
struct TracedInput {
  std::string name;  // in the graph
  Type type;
  bool weak;     // a number of Python
  bool donated;  // its memory is that of a result
  friend bool operator==(const TracedInput&, const TracedInput&) = default;
};

/// A graph in the making. Known arrays that are used in it become further inputs, small ones constants.
class Trace : public std::enable_shared_from_this<Trace> {
 public:
  explicit Trace(std::string name);
  /// Adds to a graph that goes on elsewhere.
  explicit Trace(Graph graph) : graph_(std::move(graph)) { note_line(); }

  Item input(Dims shape, DType dtype, bool weak, bool donated = false);
  /// The value of an array in this graph. Throws Error for one that another trace has left behind.
  Value value_of(nb::handle array);
  /// A number for the line of the program that is running, which `line` tells later. 0: that of the function.
  std::uint32_t note_line();
  const SourceLine& line(std::uint32_t number) const { return lines_.at(number); }
  /// No more nodes: what is used later was leaked.
  void finish() { finished_ = true; }
  bool finished() const { return finished_; }
  Graph& graph() { return graph_; }
  const std::vector<TracedInput>& inputs() const { return inputs_; }
  const std::vector<nb::object>& captured() const { return captured_; }
  std::uint64_t next_number() { return ++made_; }
  /// The traced arrays from elsewhere that function(copies of the arrays) takes, in order.
  nb::list taken_by(const nb::object& function, nb::handle arrays);
  /// What the function gives, while each of `arrays` stands for the array at its place in `others`.
  nb::object with_others(nb::handle arrays, nb::handle others, const nb::object& function);

 private:
  Graph graph_;
  std::vector<TracedInput> inputs_;
  bool finished_ = false;
  std::vector<nb::object> captured_, kept_;  // `known_` has their addresses
  std::map<PyObject*, Value> known_;
  std::vector<SourceLine> lines_;
  std::uint64_t made_ = 0;
  struct Watch {
    std::uint64_t since;
    std::vector<nb::object> taken;
  };
  std::optional<Watch> watch_;              // of taken_by
  std::map<PyObject*, Value> others_ = {};  // of with_others
};

/// A Python array around it, of the class that the package has set.
nb::object wrap(Item item);
nb::list wrap(std::span<const Value> values, const std::shared_ptr<Trace>& trace);
/// A tuple of numbers, and of Dims where they are symbolic.
nb::tuple sizes_of(std::span<const Dim> sizes);
/// Of a traced array too whose region has ended.
std::string type_text(const Item& item);
bool is_array(nb::handle object);
const Item& item_of(nb::handle array);
/// The values of a list of arrays; null for None.
Values values_of(nb::handle arrays, Trace& trace);
/// The trace that any of the arrays belongs to, or null.
std::shared_ptr<Trace> trace_of(nb::handle arrays);
/// The elements; computes them. Throws Error for a traced array.
Array read(const Item& item);
/// The same elements in memory of their own.
Array copy_of(const Array& array);
/// Whether it is an array or a number of NumPy.
bool is_numpy(nb::handle object);
/// A view of NumPy's array, which must stay; nothing for other objects, and for an array that is not what Array is: row-major elements of a
/// type that DLPack has.
std::optional<Array> view_of_numpy(nb::handle object);
/// What the package turns other objects into arrays with: operands are copied, arguments of functions are not. And words into element
/// types.
nb::object as_array(nb::handle object);
nb::object as_leaf(nb::handle object);
DType as_dtype(nb::handle object);
/// The graphs that were compiled for the device on which this thread computes: see rlx.default_device.
GraphCache& graph_cache();
/// The name of that device; empty: the usual one.
const std::string& device_of_thread();
/// The line of the Python caller, outside of the package.
SourceLine caller();

/// Writes a program file, with the values of parameters and states where `weights` says so.
void save_program(const Executable& executable, const std::filesystem::path& path, bool weights);

void bind_types(nb::module_& m);
void bind_arrays(nb::module_& m);
void bind_registry(nb::module_& m);
void bind_compiled(nb::module_& m);
void bind_trees(nb::module_& m);
void bind_transforms(nb::module_& m);
void bind_graphs(nb::module_& m);
void bind_models(nb::module_& m);
void bind_model_files(nb::module_& m);
void bind_host(nb::module_& m);

}  // namespace rlx::python
