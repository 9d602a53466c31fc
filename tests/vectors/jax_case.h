#pragma once
#include "vectors/recorded.h"

// The cases of fixtures/jax: values, jvp, vjp and Hessian-vector products computed by JAX.
namespace rlx::test {

/// One of our graphs for an op or a case of JAX.
using JaxRule = std::function<Values(const Values& x, const json::Value& parameters)>;

struct JaxMapping {
  JaxRule build = {};
  std::optional<Tolerance> tolerance = {};  // by dtype where it is not set
  bool derivatives = true;                  // false: ours differ by contract, as the comment beside says
  bool compiled = true;
  bool flushed = false;  // XLA took subnormal operands for zeros, and so do our kernels: the reference is given the zeros
};

struct JaxGroup {
  std::map<std::string, JaxMapping> rules = {};     // by the name of the case, else by its op
  std::map<std::string, std::string> waiting = {};  // cases by name, with the op that is not there yet
};

/// "c64[2,8]" gives c64; JAX's names of the 8-bit floats carry a suffix of their variant.
inline DType recorded_dtype(const std::string& type) {
  const std::string word = type.substr(0, type.find('['));
  return parse_dtype(word == "f8e4m3fn" ? "f8e4m3" : word).value();
}

/// NumPy's name of a type: float32, uint8, bfloat16.
inline DType numpy_dtype(const std::string& name) {
  if (name == "bool") return boolean;
  if (name == "float8_e4m3fn") return f8e4m3;
  if (name == "float8_e5m2") return f8e5m2;
  const std::size_t bits = name.find_first_of("0123456789");
  const std::string letter = name.starts_with("bfloat") ? "bf" : name.substr(0, 1);
  return parse_dtype(letter + name.substr(bits)).value();
}

/// Complex numbers are stored as pairs along a last axis, 4-bit integers as i8.
inline Array recorded_array(const SafetensorsFile& file, const std::string& key, DType dtype) {
  const Array stored = file.array(key);
  std::vector<std::int64_t> shape = stored.shape();
  if (is_complex(dtype)) {
    shape.pop_back();
    const auto owner = std::make_shared<Array>(stored);
    return Array(dtype, shape, owner->bytes(), owner);
  }
  if (!is_packed(dtype)) return stored;
  Array packed(dtype, shape);
  for (std::int64_t i = 0; i < stored.size(); ++i) packed.set_int(i, stored.get_int(i));
  return packed;
}

inline Array without_subnormals(const Array& array) {
  Array flushed(array.dtype(), array.shape());
  const double smallest = array.dtype() == f64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  for (std::int64_t i = 0; i < array.size(); ++i) flushed.set_double(i, std::abs(array.get_double(i)) < smallest ? 0 : array.get_double(i));
  return flushed;
}

class JaxCase {
 public:
  JaxCase(const json::Value& entry, const SafetensorsFile& file) : entry_(entry), file_(file), name_(entry["name"].get<std::string>()) {}

  void check(const JaxMapping& mapping, RecordedProgram& compiled) const {
    RecordedGraph graph;
    Values x;
    for (std::size_t i = 0; i < entry_["in"].size(); ++i) {
      const Array operand = array("in", i, dtype("in", i));
      x.push_back(graph.input("in" + std::to_string(i), mapping.flushed ? without_subnormals(operand) : operand));
    }
    const json::Value none = json::Value::object();
    const Values y = mapping.build(x, entry_.contains("params") ? entry_["params"] : none);
    ASSERT_EQ(y.size(), entry_["out"].size());
    for (std::size_t i = 0; i < y.size(); ++i)
      graph.expect("out" + std::to_string(i), y[i], wanted("out", i, dtype("out", i)), tolerance(mapping, dtype("out", i)));
    if (entry_.contains("diff") && mapping.derivatives) derivatives(graph, mapping, x, y);
    // Hard operands are subnormals, which kernels flush, and the ends of the range; kernel functions have their own tests there.
    graph.check(name_, mapping.compiled && !name_.ends_with("hard") ? &compiled : nullptr);
  }

 private:
  DType dtype(const char* key, std::size_t i) const { return recorded_dtype(entry_[key][i].get<std::string>()); }
  Array array(const std::string& key, std::size_t i, DType type) const {
    return recorded_array(file_, name_ + "/" + key + std::to_string(i), type);
  }
  /// What f64 arithmetic gave on the same operands, where it was recorded.
  Array wanted(const std::string& key, std::size_t i, DType type) const {
    const std::string precise = "exact_" + key;
    return array(file_.find(name_ + "/" + precise + std::to_string(i)) ? precise : key, i, type);
  }
  static Tolerance tolerance(const JaxMapping& mapping, DType type) {
    if (type == f64 || type == c128) return mapping.tolerance.value_or(f64_nodes);
    if (type == f32 || type == c64) return mapping.tolerance.value_or(f32_nodes);
    return exact;
  }

  void derivatives(RecordedGraph& graph, const JaxMapping& mapping, const Values& x, const Values& y) const {
    Values inputs, tangents, outputs, cotangents;
    std::vector<DType> in_types, out_types;
    for (const json::Value& i : entry_["diff"]) {
      const auto operand = i.get<std::size_t>();
      in_types.push_back(dtype("in", operand));
      inputs.push_back(x[operand]);
      tangents.push_back(graph.input("tan" + std::to_string(tangents.size()), array("tan", tangents.size(), in_types.back())));
    }
    for (std::size_t i = 0; i < y.size(); ++i) {
      const DType type = dtype("out", i);
      if (!is_float(type) && !is_complex(type)) continue;
      out_types.push_back(type);
      outputs.push_back(y[i]);
      cotangents.push_back(graph.input("ct" + std::to_string(cotangents.size()), array("ct", cotangents.size(), type)));
    }
    const Values forward = jvp(outputs, inputs, tangents), backward = vjp(outputs, inputs, cotangents);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      graph.expect("jvp" + std::to_string(i), forward[i], wanted("jvp", i, out_types[i]), tolerance(mapping, out_types[i]));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      graph.expect("vjp" + std::to_string(i), backward[i], wanted("vjp", i, in_types[i]), tolerance(mapping, in_types[i]));
    if (!entry_.contains("hvp")) return;
    const Values second = jvp(backward, inputs, tangents);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      graph.expect("hvp" + std::to_string(i), second[i], wanted("hvp", i, in_types[i]), tolerance(mapping, in_types[i]));
  }

  const json::Value& entry_;
  const SafetensorsFile& file_;
  std::string name_;
};

inline const json::Value& jax_index() {
  static const json::Value index = json::read_file(fixture("jax/cases.json"));
  return index;
}

/// Every case of the group is checked, or listed as waiting, and every name in the tables is used.
inline void check_jax_group(const std::string& group, const JaxGroup& table) {
  const SafetensorsFile file = SafetensorsFile::open(fixture("jax/" + group + ".safetensors"));
  RecordedProgram compiled;
  std::set<std::string> used;
  std::size_t mapped = 0, waiting = 0;
  for (const json::Value& entry : jax_index()["cases"]) {
    if (entry["group"] != group) continue;
    const auto name = entry["name"].get<std::string>();
    SCOPED_TRACE(name);
    if (table.waiting.contains(name)) {
      EXPECT_FALSE(table.rules.contains(name)) << "waiting and mapped";
      used.insert(name);
      ++waiting;
      continue;
    }
    const std::string key = table.rules.contains(name) ? name : entry.value("op", std::string());
    const auto rule = table.rules.find(key);
    if (rule == table.rules.end()) {
      ADD_FAILURE() << "neither mapped nor waiting";
      continue;
    }
    used.insert(key);
    ++mapped;
    try {
      JaxCase(entry, file).check(rule->second, compiled);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  for (const auto& [name, rule] : table.rules) EXPECT_TRUE(used.contains(name)) << name << " is the name of no case";
  for (const auto& [name, op] : table.waiting) EXPECT_TRUE(used.contains(name)) << name << " is the name of no case";
  ::testing::Test::RecordProperty("mapped", static_cast<int>(mapped));
  ::testing::Test::RecordProperty("waiting", static_cast<int>(waiting));
}

/// Rules of ops with one and with two operands.
inline JaxMapping unary(std::function<Value(Value)> op, std::optional<Tolerance> tolerance = {}) {
  return {.build = [op](const Values& x, const json::Value&) { return Values{op(x[0])}; }, .tolerance = tolerance};
}
inline JaxMapping binary(std::function<Value(Value, Value)> op, std::optional<Tolerance> tolerance = {}) {
  return {.build = [op](const Values& x, const json::Value&) { return Values{op(x[0], x[1])}; }, .tolerance = tolerance};
}
/// A rule that reads no parameters.
inline JaxMapping made(std::function<Values(const Values&)> build, std::optional<Tolerance> tolerance = {}) {
  return {.build = [build](const Values& x, const json::Value&) { return build(x); }, .tolerance = tolerance};
}

/// A parameter that is one number or a list of them.
inline std::vector<std::int64_t> numbers(const json::Value& value) {
  if (value.is_number()) return {value.get<std::int64_t>()};
  return value.get<std::vector<std::int64_t>>();
}
/// That parameter, or `initial` where it is not there or null.
inline std::vector<std::int64_t> numbers_or(const json::Value& parameters, const char* key, std::vector<std::int64_t> initial) {
  return parameters.contains(key) && !parameters[key].is_null() ? numbers(parameters[key]) : initial;
}
/// The operands in the type that the result is to have, where the parameters name one.
inline Values of_preferred_type(Values x, const json::Value& parameters) {
  if (!parameters.contains("preferred_element_type") || parameters["preferred_element_type"].is_null()) return x;
  const DType type = numpy_dtype(parameters["preferred_element_type"].get<std::string>());
  for (Value& operand : x) operand = operand.dtype() == type ? operand : cast(operand, type);
  return x;
}
inline Dims sizes(const std::vector<std::int64_t>& values) { return Dims(values.begin(), values.end()); }

}  // namespace rlx::test
