#pragma once
#include <functional>
#include <memory>
#include <optional>
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
  /// A builder for operands of certain types. Its results' types are found once; then it is noted down without building anything, and an
  /// expression of the same operations as one that was read before is found compiled.
  class Operation {
   public:
    /// Throws Error as the builder does for operands of these types.
    Operation(std::function<Values(const Values&)> build, const std::vector<Type>& operands);
    /// Its results. The operands must have the types that it was made for.
    std::vector<Tensor> operator()(std::vector<Tensor> operands) const;

   private:
    friend class Tensor;
    struct State;
    std::shared_ptr<const State> state_;
  };

  /// The result of `build` on the operands, which may use every builder of rlx/ops.h:
  /// `Tensor::of([](const Values& v) { return softmax(matmul(v[0], v[1]), 1); }, {x, w})`.
  static Tensor of(Builder build, std::vector<Tensor> operands);
  /// The same for a builder of several results.
  static std::vector<Tensor> all(std::function<Values(const Values&)> build, std::vector<Tensor> operands);

  const Type& type() const;
  /// The value if it has been computed; does not wait for one that is being computed.
  std::optional<Array> known() const;
  /// The value; computes it on `session`, together with everything it needs, if nobody has read it before.
  Array read(const Session& session) const;
  /// The same with graphs that were compiled before: an expression of a structure that was read before compiles nothing.
  Array read(GraphCache& cache) const;
  /// The same with a cache that all tensors share, made at the first call.
  Array read() const;

 private:
  struct Node;
  struct Expression;
  struct Compiled;
  Array computed(const std::function<Executable(const Expression&)>& compile) const;
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
