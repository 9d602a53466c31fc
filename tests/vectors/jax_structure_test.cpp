// Layout ops, sorting, gather and scatter against values and derivatives computed by JAX.
#include "vectors/jax_case.h"

namespace rlx::test {
namespace {

/// lax.pad with a fill value that is an operand: ours takes a number, so the places outside are selected by a mask.
Value padded(Value x, Value fill, const Dims& lo, const Dims& hi, const std::vector<std::int64_t>& interior) {
  const Value inside = pad(broadcast(scalar(x, 1, f32), x.shape(), {}), lo, hi, interior);
  return select(gt(inside, scalar(x, 0, f32)), pad(x, lo, hi, interior), fill);
}

Values transposed(const Values& x, const json::Value& p) { return {transpose(x[0], numbers(p["permutation"]))}; }
Values sliced(const Values& x, const json::Value& p) {
  const std::vector<std::int64_t> ones(static_cast<std::size_t>(x[0].rank()), 1);
  return {slice(x[0], sizes(numbers(p["start_indices"])), sizes(numbers(p["limit_indices"])), sizes(numbers_or(p, "strides", ones)))};
}

/// Rows and columns of an image with its channels last.
Values image_resized(Value x, const ResizeOptions& options) {
  return {transpose(resize(transpose(x, {2, 0, 1}), {4, 11}, options), {1, 2, 0})};
}

JaxGroup structure() {
  return {
      .rules =
          {
              {"lax.reshape", {.build = [](auto& x, auto& p) { return Values{reshape(x[0], sizes(numbers(p["new_sizes"])))}; }}},
              {"lax.transpose", {.build = transposed}},
              {"lax.slice", {.build = sliced}},
              {"pad", made([](auto& x) { return Values{padded(x[0], x[1], {1, 0, 3}, {2, 0, 0}, {0, 0, 0})}; })},
              {"pad_interior_negative", made([](auto& x) { return Values{padded(x[0], x[1], {-1, -2, 0}, {0, -1, -3}, {2, 1, 3})}; })},
              {"jnp_pad_reflect", made([](auto& x) { return Values{pad_mode(x[0], {1, 2}, {2, 0}, PadMode::reflect)}; })},
              {"jnp_pad_linear_ramp", made([](auto& x) { return Values{pad_mode(x[0], {1, 2}, {2, 0}, PadMode::linear_ramp)}; })},
              {"interp", made([](auto& x) { return Values{interp(x[0], x[1], x[2])}; })},
              {"image_resize_linear_antialias",
               made([](auto& x) { return image_resized(x[0], {.mode = ResizeMode::linear, .antialias = true}); })},
              {"image_resize_cubic_plain",
               made([](auto& x) { return image_resized(x[0], {.mode = ResizeMode::cubic, .exclude_outside = true, .cubic_a = -0.5}); })},
              {"concatenate", made([](auto& x) { return Values{concat(x, 1)}; })},
              {"iota", made([](auto& x) { return Values{iota(x[0], x[0].shape(), i32, 1), iota(x[0], x[0].shape(), f32, 2) + x[0]}; })},
              {"repeat", made([](auto& x) { return Values{repeat(x[0], 3, 1)}; })},
              {"stack", made([](auto& x) { return Values{stack(x, 1)}; })},
              {"trace", made([](auto& x) { return Values{sum(diagonal(x[0]), {0})}; })},
          },
  };
}

JaxGroup sorting() {
  return {
      .rules =
          {
              {"lax.sort",
               {.build = [](auto& x, auto& p) { return sort(x, p.value("num_keys", 1), p.value("dimension", -1)); }, .tolerance = exact}},
              {"sort_descending_nan", made([](auto& x) { return sort({x[0]}, 1, 1, true); }, exact)},
              {"top_k_nan", made([](auto& x) { return top_k(x[0], 5); }, exact)},
              {"nonzero_size", made([](auto& x) {
                 const Values places = nonzero(x[0], 6, -1);
                 return Values{cast(places[0], i64), cast(places[1], i64)};
               })},
          },
  };
}

Values gathered(const Values& x, const json::Value& p) {
  const json::Value& d = p["dimension_numbers"];
  const GatherNumbers by{numbers(d["offset_dims"]), numbers(d["collapsed_slice_dims"]), numbers(d["start_index_map"]),
                         numbers(d["operand_batching_dims"]), numbers(d["start_indices_batching_dims"])};
  const bool clip = p.contains("mode") && (p["mode"] == "clip" || p["mode"] == "promise_in_bounds");  // these are the same in both
  const IndexMode mode = clip ? IndexMode::clip : IndexMode::fill;
  return {gather(x[0], x[1], by, sizes(numbers(p["slice_sizes"])), mode)};
}

/// Rows of a matrix.
JaxMapping row_scatter(ScatterKind kind, IndexMode mode) {
  return made([kind, mode](auto& x) { return Values{scatter(x[0], x[1], x[2], {{1}, {0}, {0}}, kind, mode)}; });
}

/// x.at[i].min(u): indices below 0 count from the end, others outside are dropped.
Value indexed(Value x, Value i, Value u, ScatterKind kind) {
  const Value wrapped = select(lt(i, scalar(i, 0, i32)), i + dim_value(i, x.dim(0), i32), i);
  return scatter(x, expand_dims(wrapped, {-1}), u, {{}, {0}, {0}}, kind, IndexMode::fill);
}

JaxGroup indexing() {
  const GatherNumbers rows{{1}, {0}, {0}}, points{{}, {0, 1}, {0, 1}};
  return {
      .rules =
          {
              {"lax.gather", {.build = gathered}},
              {"gather_i32_fill", made([rows](auto& x) { return Values{gather(x[0], x[1], rows, {1, 4}, IndexMode::fill)}; })},
              {"take_clip", made([](auto& x) { return Values{take(x[0], x[1], 1)}; })},
              {"take_along_axis", made([](auto& x) { return Values{take_along_axis(x[0], x[1], 1, IndexMode::fill)}; })},
              {"scatter_rows_drop", row_scatter(ScatterKind::set, IndexMode::fill)},
              {"scatter_add_rows_clip", row_scatter(ScatterKind::add, IndexMode::clip)},
              {"scatter_min_rows_drop", row_scatter(ScatterKind::min, IndexMode::fill)},
              {"scatter_max_rows_clip", row_scatter(ScatterKind::max, IndexMode::clip)},
              {"scatter_points_add",
               made([points](auto& x) { return Values{scatter(x[0], x[1], x[2], points, ScatterKind::add, IndexMode::fill)}; })},
              {"scatter_min_ties_values", made([](auto& x) {
                 return Values{indexed(x[0], x[1], x[2], ScatterKind::min), indexed(x[0], x[1], x[2], ScatterKind::max)};
               })},
              {"embedding", made([](auto& x) { return Values{embedding(x[0], x[1])}; })},
              {"dynamic_slice_-5_99_2", made([](auto& x) { return Values{dynamic_slice(x[0], {x[1], x[2]}, {2, 3}, true)}; })},
              {"dynamic_update_slice_3_2_1", made([](auto& x) { return Values{dynamic_update(x[0], x[1], {x[2], x[3]}, true)}; })},
              {"dynamic_index",
               made([](auto& x) { return Values{squeeze(dynamic_slice(x[0], {scalar(x[0], 0, i32), x[1]}, {5, 1}, true), {1})}; })},
          },
  };
}

TEST(Jax, Structure) { check_jax_group("structure", structure()); }
TEST(Jax, Sorting) { check_jax_group("sort", sorting()); }
TEST(Jax, Indexing) { check_jax_group("gather_scatter", indexing()); }

}  // namespace
}  // namespace rlx::test
