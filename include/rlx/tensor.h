#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "rlx/graph.h"
#include "rlx/graph_cache.h"
#include "rlx/session.h"

namespace rlx {

/// A value for interactive use: operations on it are only noted down, and the whole expression is compiled and run when it is read.
/// Copies share the value, which is computed once. Types are checked at once: a wrong shape is an Error where it is written.
class Tensor {
 public:
  using Builder = std::function<Value(const Values&)>;

  Tensor(Array array);  // NOLINT(google-explicit-constructor): an array is a value
  /// The result of `build` on the operands, which may use every builder of rlx/ops.h:
  /// `Tensor::of([](const Values& v) { return softmax(matmul(v[0], v[1]), 1); }, {x, w})`.
  static Tensor of(Builder build, std::vector<Tensor> operands);
  /// The same for a builder of several results.
  static std::vector<Tensor> all(std::function<Values(const Values&)> build, std::vector<Tensor> operands);

  const Type& type() const;
  /// The value; computes it on `session`, together with everything it needs, if nobody has read it before.
  Array read(const Session& session) const;
  /// The same with graphs that were compiled before: an expression of a structure that was read before compiles nothing.
  Array read(GraphCache& cache) const;
  /// The same with a cache that all tensors share, made at the first call.
  Array read() const;

 private:
  struct Node;
  static std::shared_ptr<Node> noted(const Type& type, Builder build, std::vector<Tensor> operands);
  explicit Tensor(std::shared_ptr<Node> node) : node_(std::move(node)) {}
  std::shared_ptr<Node> node_;
};

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a);
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
/// Matrix product with NumPy's rules.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace rlx
