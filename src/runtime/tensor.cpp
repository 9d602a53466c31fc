#include "rlx/tensor.h"

#include <mutex>
#include <unordered_map>

#include "base/working.h"
#include "ir/array_type.h"
#include "rlx/ops.h"
#include "rlx/result_memory.h"

namespace rlx {
namespace {

/// The only output of a graph that is called "value".
Array result_of(const Executable& executable, const std::map<std::string, Feed>& feeds, const Type& type) {
  const std::vector<std::int64_t> shape = static_shape(type);
  const auto bytes = static_cast<std::size_t>(array_bytes(type.dtype, shape));
  if (bytes < least_result_bytes) return executable.run(feeds)[0];
  const std::shared_ptr<std::byte> memory = result_memory(bytes);
  executable.run(feeds, {{"value", Target(type.dtype, {memory.get(), bytes})}});
  return {type.dtype, shape, {memory.get(), bytes}, memory};
}

}  // namespace

/// What it computes, and the types of the results.
struct Tensor::Operation::State {
  std::function<Values(const Values&)> build;
  std::vector<Type> results;
};

/// A concrete array, or how to compute one. Once computed, the recipe is dropped, and with it the operands.
struct Tensor::Node {
  Type type;
  std::mutex mutex;
  std::optional<Array> value;
  std::shared_ptr<const Operation::State> operation;
  std::size_t result = 0;  // of the operation
  std::vector<Tensor> operands;

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  /// Without recursion: expressions built in loops are deep.
  ~Node() {
    std::vector<Tensor> last = std::move(operands);
    while (!last.empty()) {
      const std::shared_ptr<Node> node = std::move(last.back().node_);
      last.pop_back();
      if (node.use_count() == 1) std::move(node->operands.begin(), node->operands.end(), std::back_inserter(last)), node->operands.clear();
    }
  }
};

/// What is left to compute of a value: known values and operations, operands before users.
struct Tensor::Expression {
  struct Step {
    std::shared_ptr<Node> node;
    std::optional<Array> value;
    std::shared_ptr<const Operation::State> operation;  // null for a known value
    std::size_t result = 0;
    std::vector<std::size_t> operands;  // by step
  };
  /// Two expressions with one key are computed by one program.
  using Key = std::vector<std::size_t>;

  explicit Expression(const Tensor& root);
  Key key() const;
  Graph graph() const;
  std::map<std::string, Feed> feeds() const;

  std::vector<Step> steps;
};

/// Without recursion: expressions built in loops are deep.
Tensor::Expression::Expression(const Tensor& root) {
  std::unordered_map<const Node*, std::size_t> places;
  std::vector<std::shared_ptr<Node>> stack{root.node_};  // another thread may compute a node meanwhile and drop its operands
  while (!stack.empty()) {
    const std::shared_ptr<Node> node = stack.back();
    if (places.count(node.get())) {
      stack.pop_back();
      continue;
    }
    const auto lock = node == root.node_ ? std::unique_lock<std::mutex>() : std::unique_lock(node->mutex);
    const std::size_t depth = stack.size();
    if (!node->value)
      for (const Tensor& operand : node->operands)
        if (!places.count(operand.node_.get())) stack.push_back(operand.node_);
    if (stack.size() > depth) continue;
    Step step{.node = node, .value = node->value, .operation = node->operation, .result = node->result, .operands = {}};
    if (step.value) step.operation = nullptr;
    else
      for (const Tensor& operand : node->operands) step.operands.push_back(places.at(operand.node_.get()));
    places.emplace(node.get(), steps.size());
    steps.push_back(std::move(step));
    stack.pop_back();
  }
}

Tensor::Expression::Key Tensor::Expression::key() const {
  Key key;
  for (const Step& step : steps) {
    key.push_back(reinterpret_cast<std::size_t>(step.operation.get()));
    if (!step.operation) continue;  // its type is that of the operations' operands
    key.push_back(step.result);
    key.insert(key.end(), step.operands.begin(), step.operands.end());
  }
  return key;
}

Graph Tensor::Expression::graph() const {
  Graph graph("tensor");
  Values values;
  std::size_t inputs = 0;
  for (const Step& step : steps) {
    if (!step.operation) {
      values.push_back(graph.input(fmt::format("{}", inputs++), step.node->type.shape, step.node->type.dtype));
      continue;
    }
    Values operands;
    for (std::size_t operand : step.operands) operands.push_back(values[operand]);
    values.push_back(step.operation->build(operands)[step.result]);
  }
  graph.output("value", values.back());
  return graph;
}

std::map<std::string, Feed> Tensor::Expression::feeds() const {
  std::map<std::string, Feed> feeds;
  for (const Step& step : steps)
    if (!step.operation) feeds.emplace(std::to_string(feeds.size()), *step.value);
  return feeds;
}

/// The programs of expressions that were read before. Any number of threads may use it.
struct Tensor::Compiled {
  struct Hash {
    std::size_t operator()(const Expression::Key& key) const {
      std::size_t hash = key.size();
      for (const std::size_t part : key) hash = (hash ^ part) * 0x9E3779B97F4A7C15u;
      return hash ^ (hash >> 32);
    }
  };
  struct Entry {
    Executable executable;
    std::vector<std::shared_ptr<const Operation::State>> operations;  // whose addresses are in the key
  };
  static constexpr std::size_t most = 4096;

  GraphCache graphs;
  std::mutex mutex;
  std::unordered_map<Expression::Key, Entry, Hash> entries;

  Executable of(const Expression& expression) {
    Expression::Key key = expression.key();
    {
      const std::scoped_lock lock(mutex);
      if (const auto found = entries.find(key); found != entries.end()) return found->second.executable;
    }
    Entry entry{graphs.compile(expression.graph()), {}};  // others find theirs meanwhile
    for (const Expression::Step& step : expression.steps)
      if (step.operation) entry.operations.push_back(step.operation);
    const std::scoped_lock lock(mutex);
    if (entries.size() == most) entries.clear();
    return entries.insert_or_assign(std::move(key), std::move(entry)).first->second.executable;
  }
};

Tensor::Operation::Operation(std::function<Values(const Values&)> build, const std::vector<Type>& operands) {
  Graph scratch("tensor");
  Values inputs;
  for (const Type& type : operands) inputs.push_back(scratch.input(fmt::format("{}", inputs.size()), type.shape, type.dtype));
  std::vector<Type> types;
  for (const Value& result : build(inputs)) types.push_back(result.type());
  state_ = std::make_shared<const State>(State{std::move(build), std::move(types)});
}

std::vector<Tensor> Tensor::Operation::operator()(std::vector<Tensor> operands) const {
  const std::size_t count = state_->results.size();
  std::vector<Tensor> results;
  const auto add = [&](std::vector<Tensor> its) {
    auto node = std::make_shared<Node>();
    node->type = state_->results[results.size()];
    node->operation = state_;
    node->result = results.size();
    node->operands = std::move(its);
    results.push_back(Tensor(std::move(node)));
  };
  while (results.size() + 1 < count) add(operands);
  if (count > 0) add(std::move(operands));
  return results;
}

Tensor::Tensor(Array array) : node_(std::make_shared<Node>()) {
  node_->type = type_of(array);
  node_->value = std::move(array);
}

std::vector<Tensor> Tensor::all(std::function<Values(const Values&)> build, std::vector<Tensor> operands) {
  std::vector<Type> types;
  for (const Tensor& operand : operands) types.push_back(operand.type());
  return Operation(std::move(build), types)(std::move(operands));
}

Tensor Tensor::of(Builder build, std::vector<Tensor> operands) {
  return all([build = std::move(build)](const Values& v) { return Values{build(v)}; }, std::move(operands))[0];
}

const Type& Tensor::type() const { return node_->type; }

std::optional<Array> Tensor::known() const {
  const std::unique_lock lock(node_->mutex, std::try_to_lock);
  return lock ? node_->value : std::nullopt;
}

Array Tensor::computed(const std::function<Executable(const Expression&)>& compile) const {
  const Working working;
  const std::scoped_lock whole(node_->mutex);
  if (node_->value) return *node_->value;
  const Expression expression(*this);
  node_->value = result_of(compile(expression), expression.feeds(), node_->type);
  node_->operation = nullptr;
  node_->operands.clear();
  return *node_->value;
}

Array Tensor::read(GraphCache& cache) const {
  return computed([&](const Expression& expression) { return cache.compile(expression.graph()); });
}

Array Tensor::read(const Session& session) const {
  GraphCache unshared(session);
  return read(unshared);
}

Array Tensor::read() const {
  static Compiled shared;
  return computed([](const Expression& expression) { return shared.of(expression); });
}

Tensor operator+(const Tensor& a, const Tensor& b) {
  return Tensor::of([](const Values& v) { return v[0] + v[1]; }, {a, b});
}
Tensor operator+(const Tensor& a, double b) {
  return Tensor::of([b](const Values& v) { return v[0] + b; }, {a});
}
Tensor operator+(double a, const Tensor& b) {
  return Tensor::of([a](const Values& v) { return a + v[0]; }, {b});
}
Tensor operator-(const Tensor& a, const Tensor& b) {
  return Tensor::of([](const Values& v) { return v[0] - v[1]; }, {a, b});
}
Tensor operator-(const Tensor& a, double b) {
  return Tensor::of([b](const Values& v) { return v[0] - b; }, {a});
}
Tensor operator-(double a, const Tensor& b) {
  return Tensor::of([a](const Values& v) { return a - v[0]; }, {b});
}
Tensor operator*(const Tensor& a, const Tensor& b) {
  return Tensor::of([](const Values& v) { return v[0] * v[1]; }, {a, b});
}
Tensor operator*(const Tensor& a, double b) {
  return Tensor::of([b](const Values& v) { return v[0] * b; }, {a});
}
Tensor operator*(double a, const Tensor& b) {
  return Tensor::of([a](const Values& v) { return a * v[0]; }, {b});
}
Tensor operator/(const Tensor& a, const Tensor& b) {
  return Tensor::of([](const Values& v) { return v[0] / v[1]; }, {a, b});
}
Tensor operator/(const Tensor& a, double b) {
  return Tensor::of([b](const Values& v) { return v[0] / b; }, {a});
}
Tensor operator/(double a, const Tensor& b) {
  return Tensor::of([a](const Values& v) { return a / v[0]; }, {b});
}
Tensor operator-(const Tensor& a) {
  return Tensor::of([](const Values& v) { return -v[0]; }, {a});
}
Tensor matmul(const Tensor& a, const Tensor& b) {
  return Tensor::of([](const Values& v) { return matmul(v[0], v[1]); }, {a, b});
}

}  // namespace rlx
