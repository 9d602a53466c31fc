#include "models/flow.h"

#include "rlx/ops.h"
#include "rlx/session.h"

namespace rlx {

std::string Flow::path(std::string_view name) const { return prefix_ + std::string(name); }

Flow Flow::scope(std::string_view name) const {
  Flow inner = *this;
  inner.prefix_ = path(name) + ".";
  return inner;
}

Value Flow::param(std::string_view name, Dims shape) { return graph_.param(path(name), std::move(shape), dtype_); }

Value Flow::linear(std::string_view name, Value x, std::int64_t out, bool bias) {
  Flow here = scope(name);
  Value weight = here.param("weight", {out, x.dim(-1)});
  return rlx::linear(x, weight, bias ? here.param("bias", {out}) : Value());
}

Value Flow::embedding(std::string_view name, Value ids, std::int64_t rows, std::int64_t width) {
  return rlx::embedding(scope(name).param("weight", {rows, width}), ids);
}

Value Flow::layer_norm(std::string_view name, Value x, double eps) {
  Flow here = scope(name);
  Value weight = here.param("weight", {x.dim(-1)});
  return rlx::layer_norm(x, weight, here.param("bias", {x.dim(-1)}), {-1}, eps);
}

}  // namespace rlx
