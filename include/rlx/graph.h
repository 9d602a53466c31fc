#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rlx/array.h"
#include "rlx/type.h"

namespace rlx {

class Graph;
struct GraphData;
struct GraphHome;
struct OpDef;

/// A graph inside an op: the branches of cond, the body of scan. Its inputs and outputs are matched by position.
using Region = std::shared_ptr<const Graph>;

/// One attribute of a node, in the generic form that printing, hashing, equality and serialisation work on.
using Attr = std::variant<bool, std::int64_t, double, std::string, DType, std::vector<std::int64_t>, Dims, Array, Region>;
using Attrs = std::vector<Attr>;

/// One result of one node.
struct ValueId {
  std::int32_t node = -1;
  std::int32_t result = 0;
  friend auto operator<=>(const ValueId&, const ValueId&) = default;
};

/// A handle to one result of a node. A default-made Value is null: "no operand", "zero tangent". Values of a region (the step of scan, the
/// function of vmap) end with it, and all others with the last copy of their Graph: to use one later throws Error.
class Value {
 public:
  Value() = default;
  Value(GraphData* graph, ValueId id);

  explicit operator bool() const { return home_ != nullptr; }
  /// Throws Error for a null value, and when the graph is gone.
  GraphData& graph() const;
  ValueId id() const { return id_; }
  const Type& type() const;
  DType dtype() const { return type().dtype; }
  const Dims& shape() const { return type().shape; }
  int rank() const { return type().rank(); }
  /// The size along `axis`; negative axes count from the end.
  const Dim& dim(std::int64_t axis) const;
  friend bool operator==(const Value&, const Value&) = default;

 private:
  const GraphHome* home_ = nullptr;
  std::uint32_t graph_serial_ = 0;  // of the graph at home then
  ValueId id_;
};

using Values = std::vector<Value>;

/// A Value as a builder takes it. The caller's Value is converted where the call is written, so the default argument is the place that an
/// Error names: "..., built at examples/hello.cpp:17". Only for parameters: it must end on the thread on which it began.
class Operand : public Value {
 public:
  Operand() = default;
  Operand(Value value, std::source_location at = std::source_location::current());
  /// A copy names no place: the original, which the call made, still does.
  Operand(const Operand& other) : Value(other) {}
  Operand& operator=(const Operand& other) {
    if (this != &other) Value::operator=(other);
    return *this;
  }
  Operand& operator=(const Value& value) {
    Value::operator=(value);
    return *this;
  }
  ~Operand() {
    if (at_.line() != 0) leave();
  }

 private:
  friend std::string in_call(std::string message);
  void leave();

  std::source_location at_;   // line 0: no place
  Operand* outer_ = nullptr;  // of the calls in progress on this thread
};

/// The operands of a builder that takes any number of them.
class Operands : public Values {
 public:
  Operands(Values values, std::source_location at = std::source_location::current()) : Values(std::move(values)), place_(Value(), at) {}
  Operands(Value value, std::source_location at = std::source_location::current()) : Values{value}, place_(Value(), at) {}
  Operands(std::initializer_list<Value> values, std::source_location at = std::source_location::current())
      : Values(values), place_(Value(), at) {}

 private:
  Operand place_;
};

/// An immutable node: ids are a topological order, equal nodes are one node.
struct Node {
  const OpDef* op = nullptr;
  Attrs attrs;  // in the order of op->fields
  std::vector<ValueId> operands;
  std::vector<Type> results;
};

enum class InputKind : std::uint8_t { input, param, state };

/// A graph input. Parameters are bound once per executable; a state stays on the device and may be replaced by an output.
struct Input {
  std::string name;
  InputKind kind;
  Type type;
};

/// A tensor program: an append-only table of nodes, named inputs and named outputs. Copies share the table.
/// Threads: what adds to the table (builders, transforms, `input`, `output`) needs it for itself: meanwhile no other thread may use the
/// graph, a copy, or a value of it. A graph to which nobody adds may be read, compiled, evaluated and copied (`snapshot`) by any number of
/// threads at a time. Different graphs share nothing, so that each may be built on a thread of its own. The function of a region (scan,
/// cond, vmap) is called, and must build, on the thread of the builder that takes it.
class Graph {
 public:
  explicit Graph(std::string name = "graph");
  /// A graph for a region: values of `parent` used in it become captures, passed as operands after the declared inputs.
  Graph(std::string name, GraphData& parent);

  const std::string& name() const;
  /// Throws Error when the name is empty, or taken.
  Value input(std::string name, Dims shape, DType dtype, std::source_location at = std::source_location::current());
  Value param(std::string name, Dims shape, DType dtype, std::source_location at = std::source_location::current());
  Value state(std::string name, Dims shape, DType dtype, std::source_location at = std::source_location::current());
  Value add_input(Input input, std::source_location at = std::source_location::current());
  Value constant(Array value);
  /// Throws Error when the name is taken or the value belongs to another graph.
  void output(std::string name, Operand value);

  std::size_t size() const;
  const Node& node(std::int32_t id) const;
  const std::vector<std::pair<Input, Value>>& inputs() const;
  const std::vector<std::pair<std::string, Value>>& outputs() const;
  const Type& type(ValueId id) const;
  /// Values of enclosing graphs that this region reads, in the order of its capture inputs.
  const Values& captures() const;
  /// Every symbol in the types of the inputs, with its bound.
  std::map<std::string, std::int64_t> symbols() const;
  /// A graph of its own, equal as of now: what is added to one does not show in the other. Throws Error for a region under construction.
  Graph snapshot() const;

  GraphData& data() const { return *data_; }

 private:
  std::shared_ptr<GraphData> data_;
};

/// Same structure: inputs, nodes, outputs, in the same order.
bool structurally_equal(const Graph& a, const Graph& b);
std::size_t structural_hash(const Graph& graph);

/// Adds a node (or finds the equal one) and gives its results. The base of every builder; throws Error for operands or
/// attributes that the op does not allow.
Values apply(const OpDef& op, Attrs attrs, std::span<const Value> operands);
/// The same for an op without operands.
Values apply(GraphData& graph, const OpDef& op, Attrs attrs);

/// A scalar constant of `dtype` in the graph of `near`; it broadcasts against anything. The value is converted as by `cast`.
Value scalar(Operand near, double value, DType dtype);
/// A constant in the graph of `near`.
Value constant(Operand near, Array value);

// Arithmetic promotes and broadcasts. A number takes the element type of the other operand; throws Error when that cannot hold it, as an
// integer cannot hold 0.5.

Value operator+(Operand a, Operand b);
Value operator-(Operand a, Operand b);
Value operator*(Operand a, Operand b);
Value operator/(Operand a, Operand b);
Value operator-(Operand a);
Value operator+(Operand a, double b);
Value operator-(Operand a, double b);
Value operator*(Operand a, double b);
Value operator/(Operand a, double b);
Value operator+(double a, Operand b);
Value operator-(double a, Operand b);
Value operator*(double a, Operand b);
Value operator/(double a, Operand b);

}  // namespace rlx
