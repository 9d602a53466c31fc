// Reading a tensor at positions given by another: spatial transformers (Jaderberg et al. 2015), as PyTorch defines them.
#include "ops/wide.h"

namespace rlx {
namespace {

constexpr double cubic_a = -0.75;  // Keys' parameter, as PyTorch takes it

// One element that takes part in a result, along one axis: its index, and its weight (null: 1).
struct Neighbour {
  Value index, weight;
};

struct GridSample {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "grid_sample";
  static constexpr std::string_view formula =
      "x (N, C, spatial...) at the positions grid (N, out..., r), last spatial axis first, -1 and 1 the outer edges of the border "
      "elements, "
      "or their centres with align_corners";
  GridMode mode = GridMode::linear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;
  static auto fields() { return Fields<&GridSample::mode, &GridSample::padding, &GridSample::align_corners>{}; }

  static void check(Value x, Value grid) {
    check_float(name, x);
    const std::int64_t spatial = x.rank() - 2;
    if (spatial < 1 || grid.rank() != x.rank() || !is_float(grid.dtype()) || !(grid.dim(0) == x.dim(0)) || !(grid.dim(-1) == Dim(spatial)))
      fail(
          "rlx.grid_sample: x {}, grid {} (allowed: x [N, C, spatial...], grid [N, out..., r] of floats, one number for each of the r "
          "spatial axes)",
          x.type().to_string(), grid.type().to_string());
  }
  // Mirrored at the centres (align_corners) or at the outer edges of the border elements, as often as needed.
  Value reflected(Value at, Value size) const {
    const double low = align_corners ? 0 : -0.5;
    Value span = max(size - (align_corners ? 1 : 0), like(size, 1)), period = span * 2, inside = rem(abs(at - low), period);
    return select(gt(inside, span), period - inside, inside) + low;
  }
  Value padded(Value at, Value size) const {
    if (padding == GridPadding::zeros) return at;
    return clamp(padding == GridPadding::reflection ? reflected(at, size) : at, like(size, 0), size - 1);
  }
  std::vector<Neighbour> neighbours(Value at, Value size) const {
    auto index = [](Value position) { return cast(position, i32); };
    if (mode == GridMode::nearest) return {{index(round(padded(at, size))), Value()}};
    if (mode == GridMode::linear) {
      Value inside = padded(at, size), base = floor(inside), fraction = inside - base;
      return {{index(base), 1 - fraction}, {index(base + 1), fraction}};
    }
    auto near = [](Value d) { return ((cubic_a + 2) * d - (cubic_a + 3)) * d * d + 1; };
    auto far = [](Value d) { return ((cubic_a * d - 5 * cubic_a) * d + 8 * cubic_a) * d - 4 * cubic_a; };
    Value base = floor(at), fraction = at - base;
    const Value weights[] = {far(1 + fraction), near(fraction), near(1 - fraction), far(2 - fraction)};
    std::vector<Neighbour> all;
    for (int i = 0; i < 4; ++i) all.push_back({index(padded(base + (i - 1.0), size)), weights[i]});
    return all;
  }
  // The elements of x (N, C, spatial...) at one index for each spatial axis, (N, out...): (N, C, out...), 0 where one is outside.
  static Value read(Value x, const Values& indices) {
    GatherNumbers numbers{.offset_dims = {1}, .collapsed_slice_dims = {}, .start_index_map = {}};
    numbers.operand_batching_dims = numbers.start_indices_batching_dims = {0};
    for (std::int64_t d = 2; d < x.rank(); ++d) numbers.collapsed_slice_dims.push_back(d), numbers.start_index_map.push_back(d);
    Dims sizes(x.shape().size(), 1);
    sizes[1] = x.dim(1);
    return gather(x, stack(indices, -1), numbers, sizes, IndexMode::fill, 0.0);
  }
  // Every combination of neighbours: the first axes' choices are in `indices`, the product of their weights in `weight`.
  static Value total(Value x, std::span<const std::vector<Neighbour>> axes, Values indices, Value weight) {
    if (axes.empty()) {
      Value element = read(x, indices);
      return weight ? element * expand_dims(weight, {1}) : element;
    }
    Value all;
    for (const Neighbour& each : axes[0]) {
      Values chosen = indices;
      chosen.push_back(each.index);
      Value part = total(x, axes.subspan(1), chosen, weight && each.weight ? weight * each.weight : each.weight);
      all = all ? all + part : part;
    }
    return all;
  }
  static Value body(const GridSample& op, Value x, Value grid) {
    check(x, grid);
    const DType wide = promote(accumulation_type(x.dtype()), accumulation_type(grid.dtype()));
    const std::int64_t spatial = x.rank() - 2;
    std::vector<std::vector<Neighbour>> axes;
    for (std::int64_t k = 0; k < spatial; ++k) {
      const std::int64_t component = spatial - 1 - k;
      Value unit = squeeze(slice_axis(cast(grid, wide), -1, component, component + 1), {-1}), size = dim_value(grid, x.dim(2 + k), wide);
      Value at = op.align_corners ? (unit + 1) * 0.5 * (size - 1) : ((unit + 1) * size - 1) * 0.5;
      axes.push_back(op.neighbours(at, size));
    }
    return cast(total(cast(x, wide), axes, {}, Value()), x.dtype());
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (GridMode mode : {GridMode::nearest, GridMode::linear, GridMode::cubic})
      for (GridPadding padding : {GridPadding::zeros, GridPadding::border, GridPadding::reflection})
        for (bool align_corners : {false, true})
          all.push_back(
              {{{{f32, {2, 2, 4, 5}}}, {{f32, {2, 2, 3, 2}}, -1.4, 1.4}}, attrs_of(GridSample{mode, padding, align_corners}), 1e-5});
    all.push_back({{{{f32, {1, 2, 3, 2, 4}}}, {{f32, {1, 2, 2, 2, 3}}, -1.2, 1.2}}, attrs_of(GridSample{}), 1e-5});
    all.push_back({{{{bf16, {2, 1, 5}}}, {{bf16, {2, 4, 1}}, -1.2, 1.2}}, attrs_of(GridSample{}), 1e-5});
    return all;
  }
};
const Op<GridSample> grid_sample_op;

struct AffineGrid {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "affine_grid";
  static constexpr std::string_view formula =
      "theta (N, r, r + 1) times (p, 1) for each position p of a grid of `sizes`, last axis first, from -1 to 1 as in grid_sample";
  Dims sizes;
  bool align_corners = false;
  static auto fields() { return Fields<&AffineGrid::sizes, &AffineGrid::align_corners>{}; }
  // -1..1 for n positions: their centres, or with align_corners the ends on the ends; one position stands at 0.
  static Value positions(const AffineGrid& op, Value near, std::size_t axis) {
    Dims line(op.sizes.size(), 1);
    line[axis] = op.sizes[axis];
    Value number = iota(near, line, near.dtype(), static_cast<std::int64_t>(axis)), n = dim_value(near, op.sizes[axis], near.dtype());
    return op.align_corners ? (number * 2 - (n - 1)) / max(n - 1, like(n, 1)) : (number * 2 + 1 - n) / n;
  }
  static Value body(const AffineGrid& op, Value theta) {
    const auto rank = static_cast<std::int64_t>(op.sizes.size());
    check_float(name, theta);
    if (theta.rank() != 3 || rank < 1 || !(theta.dim(1) == Dim(rank)) || !(theta.dim(2) == Dim(rank + 1)))
      fail("rlx.affine_grid: theta {} for sizes {} (allowed: [N, {}, {}])", theta.type().to_string(), to_string(op.sizes), rank, rank + 1);
    return in_wide(name, theta, [&](Value wide) {
      Values components;
      for (std::size_t k = op.sizes.size(); k-- > 0;) components.push_back(broadcast_to(positions(op, wide, k), op.sizes));
      components.push_back(full(wide, op.sizes, 1, wide.dtype()));
      return move_axis(dot(stack(components, -1), wide, {rank}, {2}), rank, 0);  // (sizes..., N, r) before the move
    });
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {2, 2, 3}}}}, attrs_of(AffineGrid{{4, 5}, false}), 1e-6},
            {{{{f32, {1, 3, 4}}}}, attrs_of(AffineGrid{{2, 1, 3}, true}), 1e-6},
            {{{{bf16, {2, 1, 2}}}}, attrs_of(AffineGrid{{4}, false}), 1e-6}};
  }
};
const Op<AffineGrid> affine_grid_op;

}  // namespace

/// x (N, C, spatial...) read at grid (N, out..., r), giving (N, C, out...). The r numbers of a position name the spatial axes from the
/// last to the first; -1 and 1 are the outer edges of the border elements, or their centres with align_corners. Positions outside read 0,
/// the border or the mirrored tensor. No gradient flows into the grid in nearest mode. As PyTorch's grid_sample, for any number of
/// spatial axes and in all modes. Throws Error when shapes do not fit.
Value grid_sample(Operand x, Operand grid, GridMode mode /*= GridMode::linear*/, GridPadding padding /*= GridPadding::zeros*/,
                  bool align_corners /*= false*/) {
  return grid_sample_op({mode, padding, align_corners}, x, grid);
}

/// The grid (N, sizes..., r) for grid_sample that maps every position p of a result of the given spatial sizes to theta (p, 1), theta
/// (N, r, r + 1). align_corners as in grid_sample. Throws Error when theta does not fit the sizes.
Value affine_grid(Operand theta, Dims sizes, bool align_corners /*= false*/) {
  return affine_grid_op({std::move(sizes), align_corners}, theta);
}

}  // namespace rlx
