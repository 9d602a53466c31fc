#include "models/layers/flow.h"

#include "quant/block_format.h"
#include "rlx/error.h"
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

std::string Flow::stored_type(std::string_view name) const { return storage_ ? storage_(path(name)) : ""; }

Value Flow::blocks(std::string_view name, Dims shape, const std::string& type) {
  const BlockFormat* const format = find_block_format(type);
  const std::int64_t columns = shape.back().value();
  if (!format || columns % format->values != 0) fail("parameter '{}': rows of {} values cannot be blocks of {}", path(name), columns, type);
  shape.back() = columns / format->values * format->bytes;
  return graph_.param(path(name), std::move(shape), u8);
}

StoredMatrix Flow::matrix(std::string_view name, std::int64_t rows, std::int64_t columns) {
  const std::string type = stored_type(name);
  if (type.empty() || type == "F32") return {param(name, {rows, columns}), ""};
  if (type == "BF16" || type == "F16") return {graph_.param(path(name), {rows, columns}, type == "F16" ? f16 : bf16), ""};
  return {blocks(name, {rows, columns}, type), type};
}

Value product(Value x, const StoredMatrix& matrix) {
  if (!matrix.type.empty()) return block_dot(x, matrix.values, matrix.type);
  return rlx::linear(x, cast(matrix.values, x.dtype()));
}

Value rows_of(const StoredMatrix& matrix, Value ids) {
  Value rows = rlx::embedding(matrix.values, ids);
  if (!matrix.type.empty()) return decode_blocks(rows, matrix.type);
  return rows.dtype() == bf16 || rows.dtype() == f16 ? cast(rows, f32) : rows;
}

Value Flow::linear(std::string_view name, Value x, std::int64_t out, bool bias) {
  Flow here = scope(name);
  Value y = adapted(name, x, product(x, here.matrix("weight", out, x.dim(-1).value())));
  return bias ? y + here.param("bias", {out}) : y;
}

LowRankForm Flow::low_rank_form(MatrixUse use, std::int64_t experts) const {
  return adapters_ ? adapters_(path("weight"), use, experts) : LowRankForm{};
}

Value Flow::adapted(std::string_view name, Value x, Value y) {
  Flow here = scope(name);
  const LowRankForm form = here.low_rank_form(MatrixUse::product);
  if (form.rank == 0) return y;
  Value inner = product(x, {graph_.param(here.path("lora_a"), {form.rank, x.dim(-1)}, form.dtype), ""});
  inner = inner * here.param("lora_scale", {form.rank});
  return y + product(inner, {graph_.param(here.path("lora_b"), {y.dim(-1), form.rank}, form.dtype), ""});
}

Value Flow::adapted_matrix(std::string_view name, std::int64_t rows, std::int64_t columns) {
  Flow here = scope(name);
  Value matrix = here.param("weight", {rows, columns});
  const LowRankForm form = here.low_rank_form(MatrixUse::product);
  if (form.rank == 0) return matrix;
  Value a = cast(graph_.param(here.path("lora_a"), {form.rank, columns}, form.dtype), dtype_);
  Value b = cast(graph_.param(here.path("lora_b"), {rows, form.rank}, form.dtype), dtype_);
  return matrix + matmul(b * here.param("lora_scale", {form.rank}), a);
}

Value Flow::adapted_rows(std::string_view name, Value ids, std::int64_t rows, Value y) {
  Flow here = scope(name);
  const LowRankForm form = here.low_rank_form(MatrixUse::lookup);
  if (form.rank == 0) return y;
  Value inner = rows_of({graph_.param(here.path("lora_rows"), {rows, form.rank}, form.dtype), ""}, ids);
  inner = inner * here.param("lora_scale", {form.rank});
  return y + product(inner, {graph_.param(here.path("lora_b"), {y.dim(-1), form.rank}, form.dtype), ""});
}

Value Flow::adapted_experts(Value x, Value expert, std::int64_t experts, Value y) {
  const LowRankForm form = low_rank_form(MatrixUse::expert_products, experts);
  if (form.rank == 0) return y;
  const auto factor = [&](std::string_view name, const Dim& rows, const Dim& columns) {
    return transpose(graph_.param(path(name), {experts, rows, columns}, form.dtype), {0, 2, 1});
  };
  Value inner = grouped_matmul(x, factor("lora_a", form.rank, x.dim(-1)), expert);
  inner = inner * rlx::embedding(param("lora_scale", {experts, form.rank}), expert);
  return y + grouped_matmul(inner, factor("lora_b", y.dim(-1), form.rank), expert);
}

Value Flow::embedding(std::string_view name, Value ids, std::int64_t rows, std::int64_t width) {
  return adapted_rows(name, ids, rows, rows_of(scope(name).matrix("weight", rows, width), ids));
}

Value Flow::layer_norm(std::string_view name, Value x, double eps) {
  Flow here = scope(name);
  Value weight = here.param("weight", {x.dim(-1)});
  return rlx::layer_norm(x, weight, here.param("bias", {x.dim(-1)}), {-1}, eps);
}

Value Flow::expert_linear(std::string_view name, Value x, Value expert, std::int64_t experts, std::int64_t out) {
  Flow here = scope(name);
  const Dims shape{experts, out, x.dim(-1)};
  const std::string type = here.stored_type("weight");
  if (type.empty())
    return here.adapted_experts(x, expert, experts, grouped_matmul(x, transpose(here.param("weight", shape), {0, 2, 1}), expert));
  Value weight = here.blocks("weight", shape, type);
  return here.adapted_experts(x, expert, experts, grouped_block_dot(x, weight, expert, type, find_block_format(type)->values > 1));
}

Value Flow::state(std::string_view name, Dims shape, DType dtype) { return graph_.state(path(name), std::move(shape), dtype); }

void Flow::keep(std::string_view name, Value value) { graph_.output(path(name), value); }

}  // namespace rlx
