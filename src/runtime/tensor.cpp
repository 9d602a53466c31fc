#include "rlx/tensor.h"

#include <mutex>

#include "ir/array_type.h"
#include "rlx/ops.h"

namespace rlx {

/// A concrete array, or how to compute one. Once computed, the recipe is dropped, and with it the operands.
struct Tensor::Node {
  Type type;
  std::mutex mutex;
  std::optional<Array> value;
  Builder build;
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

Tensor::Tensor(Array array) : node_(std::make_shared<Node>()) {
  node_->type = type_of(array);
  node_->value = std::move(array);
}

std::shared_ptr<Tensor::Node> Tensor::noted(const Type& type, Builder build, std::vector<Tensor> operands) {
  auto node = std::make_shared<Node>();
  node->type = type;
  node->build = std::move(build);
  node->operands = std::move(operands);
  return node;
}

std::vector<Tensor> Tensor::all(std::function<Values(const Values&)> build, std::vector<Tensor> operands) {
  Graph scratch("tensor");
  Values inputs;
  for (std::size_t i = 0; i < operands.size(); ++i)
    inputs.push_back(scratch.input(fmt::format("{}", i), operands[i].type().shape, operands[i].type().dtype));
  const Values results = build(inputs);
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < results.size(); ++i) {
    // Each builds all of them: equal nodes of a graph are one.
    Builder one = [build, i](const Values& v) { return build(v)[i]; };
    tensors.push_back(Tensor(noted(results[i].type(), std::move(one), operands)));
  }
  return tensors;
}

Tensor Tensor::of(Builder build, std::vector<Tensor> operands) {
  return all([build = std::move(build)](const Values& v) { return Values{build(v)}; }, std::move(operands))[0];
}

const Type& Tensor::type() const { return node_->type; }

Array Tensor::read(GraphCache& cache) const {
  const std::scoped_lock whole(node_->mutex);
  if (node_->value) return *node_->value;
  Graph graph("tensor");
  std::map<std::string, Feed> feeds;
  std::map<const Node*, Value> values;
  // Operands before users, without recursion: expressions built in loops are deep.
  std::vector<Tensor> stack{*this};  // copies: another thread may compute a node meanwhile and drop its operands
  while (!stack.empty()) {
    const std::shared_ptr<Node> held = stack.back().node_;
    Node& node = *held;
    std::unique_lock<std::mutex> lock;
    if (&node != node_.get()) lock = std::unique_lock(node.mutex);
    const std::size_t depth = stack.size();
    if (!values.count(&node) && !node.value)
      for (const Tensor& operand : node.operands)
        if (!values.count(operand.node_.get())) stack.push_back(operand);
    if (stack.size() > depth) continue;
    if (!values.count(&node)) {
      if (node.value) {
        const std::string name = fmt::format("{}", feeds.size());
        values[&node] = graph.input(name, node.type.shape, node.type.dtype);
        feeds.emplace(name, *node.value);
      } else {
        Values operands;
        for (const Tensor& operand : node.operands) operands.push_back(values.at(operand.node_.get()));
        values[&node] = node.build(operands);
      }
    }
    stack.pop_back();
  }
  graph.output("value", values.at(node_.get()));
  node_->value = cache.compile(graph).run(feeds)[0];
  node_->build = nullptr;
  node_->operands.clear();
  return *node_->value;
}

Array Tensor::read(const Session& session) const {
  GraphCache unshared(session);
  return read(unshared);
}

Array Tensor::read() const {
  static GraphCache shared;
  return read(shared);
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
