#pragma once
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "ir/reference.h"
#include "ops/sample_operands.h"
#include "rlx/ops.h"

// Graphs made of random ops, for comparing compiled programs with the reference.
namespace rlx::test {

/// Draws a graph of 5 to 40 ops over f32, bf16, i32 and bool. The same seed gives the same graph, in f64 with `wide`. Floats stay
/// within about -4..4, and what is discontinuous (comparisons, casts to integers, maxima of positions) only sees values without
/// rounding: then the distance between a graph and its f64 twin says how much rounding the graph amplifies.
class RandomGraph {
 public:
  /// Inputs and outputs get the prefix, so that several draws fit into one graph. `batch` is a size of 1..4, symbolic or not. Every second
  /// input is a parameter, so that what a program computes from parameters alone is drawn as well. Without `has_bf16`, bf16 is f32.
  RandomGraph(Graph& graph, unsigned seed, bool wide, std::string prefix, Dim batch, bool has_bf16 = true)
      : graph_(graph),
        random_(seed),
        first_is_param_(seed % 2 == 1),
        narrow_(wide || !has_bf16 ? float_type_of(wide) : bf16),
        float_(float_type_of(wide)),
        prefix_(std::move(prefix)),
        batch_(std::move(batch)) {}

  void draw() {
    const int inputs = 1 + pick(3);
    for (int i = 0; i < inputs; ++i) add_input();
    const int ops = 5 + pick(36);
    for (int i = 0; i < ops; ++i) add_op();
    const int outputs = 1 + pick(3);
    graph_.output(prefix_ + "y", values_.back().value);
    for (int i = 1; i < outputs; ++i) graph_.output(prefix_ + "y" + std::to_string(i), any().value);
    name_views();
  }

 private:
  struct Item {
    Value value;
    bool exact;  // no rounding in it: the same in f64
    int narrow;  // 0 for f32, 1 for bf16: which type the graph that is not wide has
  };

  /// Outputs that share memory, what is read from such memory at other places, and elements that alternate.
  void name_views() {
    const Value x = any().value, flat = reshape(x, {x.type().size()});
    graph_.output(prefix_ + "base", x);
    graph_.output(prefix_ + "flat", flat);
    graph_.output(prefix_ + "turned", reverse(flat, {0}));
    Dims pair = x.shape();
    pair.push_back(1);
    const Value other = pick(3) == 0 ? x : is_bool(x.dtype()) ? logical_not(x) : neg(x);
    Values halves{reshape(x, pair), reshape(other, pair)};
    if (pick(2)) std::swap(halves[0], halves[1]);
    graph_.output(prefix_ + "halves", concat(halves, x.rank()));
  }

  int pick(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  const Item& any() { return values_[static_cast<std::size_t>(pick(static_cast<int>(values_.size())))]; }
  static DType float_type_of(bool wide) { return wide ? f64 : f32; }
  DType float_type(int narrow) const { return narrow ? narrow_ : float_; }

  void add_input() {
    static const Dims tails[] = {{}, {3}, {4}, {2, 3}, {1, 4}, {17}, {5, 2}};
    Dims shape = tails[pick(7)];
    if (shape.empty() || pick(3) != 0) shape.insert(shape.begin(), batch_);
    const int kind = pick(6);
    const DType type = kind < 3 ? float_type(0) : kind == 3 ? float_type(1) : kind == 4 ? i32 : boolean;
    const std::string name = prefix_ + "x" + std::to_string(values_.size());
    const bool param = (values_.size() % 2 == 0) == first_is_param_;
    values_.push_back({param ? graph_.param(name, std::move(shape), type) : graph_.input(name, std::move(shape), type), true, kind == 3});
  }

  /// A float or another value that was drawn before; null when a few tries find none.
  template <class Test>
  const Item* find(const Test& test) {
    for (int i = 0; i < 12; ++i) {
      // Late values more often, so that graphs are deep as well as wide.
      const auto n = static_cast<int>(values_.size());
      const Item& item = values_[static_cast<std::size_t>(pick(2) ? n - 1 - pick(std::min(n, 4)) : pick(n))];
      if (test(item)) return &item;
    }
    return nullptr;
  }
  const Item* find_float() {
    return find([](const Item& i) { return is_float(i.value.dtype()); });
  }
  const Item* find_like(const Item& like) {
    return find([&](const Item& i) {
      return i.value.dtype() == like.value.dtype() && i.narrow == like.narrow && i.value.shape() == like.value.shape();
    });
  }
  void add(Value value, bool exact, int narrow) { values_.push_back({value, exact, narrow}); }

  void add_op() {
    switch (pick(9)) {
      case 0:
      case 1: return add_unary();
      case 2: return add_binary();
      case 3:
      case 4: return add_structure();
      case 5: return add_reduction();
      case 6: return add_choice();
      case 7: return add_product();
      default: return add_special();
    }
  }

  void add_unary() {
    const Item* item = find([](const Item&) { return true; });
    if (!item) return;
    const Item x = *item;
    if (is_bool(x.value.dtype())) return add(pick(2) ? logical_not(x.value) : cast(x.value, i32), true, 0);
    if (is_integer(x.value.dtype())) {
      const int choice = pick(4);
      if (choice == 3) return add(cast(x.value, float_type(0)) * 0.125, true, 0);
      return add(choice == 0 ? neg(x.value) : choice == 1 ? rem(x.value, scalar(x.value, 7, i32)) : abs(x.value), true, 0);
    }
    switch (pick(10)) {
      case 0: return add(tanh(x.value), false, x.narrow);
      case 1: return add(exp(neg(abs(x.value))), false, x.narrow);
      case 2: return add(sqrt(abs(x.value) + 1), false, x.narrow);
      case 3: return add(log(abs(x.value) + 1), false, x.narrow);
      case 4: return add(neg(x.value), x.exact, x.narrow);
      case 5: return add(abs(x.value), x.exact, x.narrow);
      case 6: return add(clamp(x.value, -1, 2), x.exact, x.narrow);
      case 7: return add(sin(x.value), false, x.narrow);
      case 8: return add(cast(x.value, float_type(1 - x.narrow)), x.exact && x.narrow, 1 - x.narrow);
      default:
        if (!x.exact) return add(gelu(x.value), false, x.narrow);
        return add(cast(x.value * 2, i32), true, 0);  // truncation sees exact values only
    }
  }

  void add_binary() {
    const Item* item = find([](const Item& i) { return !is_bool(i.value.dtype()); });
    if (!item) return;
    const Item x = *item;
    const Item* other = find_like(x);
    const Item z = other ? *other : x;
    const bool exact = x.exact && z.exact;
    if (is_integer(x.value.dtype())) {
      const int choice = pick(4);
      return add(choice == 0   ? rlx::max(x.value, z.value)
                 : choice == 1 ? rlx::min(x.value, z.value)
                 : choice == 2 ? x.value + z.value
                               : x.value * z.value,
                 true, 0);
    }
    switch (pick(5)) {
      case 0: return add(rlx::max(x.value, z.value), exact, x.narrow);
      case 1: return add(rlx::min(x.value, z.value), exact, x.narrow);
      case 2: return add((x.value + z.value) * 0.5, false, x.narrow);
      case 3: return add(tanh(x.value * z.value), false, x.narrow);
      default: return add(x.value / (abs(z.value) + 1), false, x.narrow);
    }
  }

  void add_structure() {
    const Item* item = find([](const Item& i) { return i.value.rank() > 0; });
    if (!item) return;
    const Item x = *item;
    const int rank = x.value.rank(), axis = pick(rank);
    const Dim size = x.value.dim(axis);
    std::vector<std::int64_t> perm(static_cast<std::size_t>(rank));
    switch (pick(8)) {
      case 0:
        for (int i = 0; i < rank; ++i) perm[static_cast<std::size_t>(i)] = (i + 1) % rank;
        return add(transpose(x.value, perm), x.exact, x.narrow);
      case 1: return add(reverse(x.value, {axis}), x.exact, x.narrow);
      case 2:
        if (x.value.type().size().upper() > 400) return;
        return add(concat({x.value, reverse(x.value, {axis})}, axis), x.exact, x.narrow);
      case 3: return add(reshape(x.value, {x.value.type().size()}), x.exact, x.narrow);
      case 4: {
        if (x.value.type().size().upper() > 400) return;
        Dims lo(static_cast<std::size_t>(rank), Dim(0)), hi = lo;
        lo[static_cast<std::size_t>(axis)] = 1 + pick(2);
        hi[static_cast<std::size_t>(axis)] = pick(2);
        return add(pad(x.value, lo, hi, {}, 1), x.exact, x.narrow);
      }
      case 5:
        return add(slice_axis(x.value, axis, size.lower() > 1 ? Dim(1) : Dim(0), size, size.is_static() ? 1 + pick(2) : 1), x.exact,
                   x.narrow);
      case 6:
        if (rank > 3 || x.value.type().size().upper() > 200) return;
        return add(tile(expand_dims(x.value, {axis}), {2}), x.exact, x.narrow);
      default: return add(roll(x.value, {size.lower() > 1 ? 1 : 0}, {axis}), x.exact, x.narrow);
    }
  }

  void add_reduction() {
    const Item* item = find([](const Item& i) { return i.value.rank() > 0; });
    if (!item) return;
    const Item x = *item;
    const int axis = pick(x.value.rank());
    const bool keep = pick(2);
    if (is_bool(x.value.dtype())) return add(pick(2) ? any_of(x.value, axis, keep) : all(x.value, {axis}, keep), true, 0);
    const int choice = pick(3);
    if (choice == 0) return add(reduce_max(x.value, {axis}, keep), x.exact, x.narrow);
    if (choice == 1) return add(reduce_min(x.value, {axis}, keep), x.exact, x.narrow);
    if (is_integer(x.value.dtype())) return add(sum(x.value, {axis}, keep), true, 0);
    add(mean(x.value, {axis}, keep), false, x.narrow);
  }
  static Value any_of(Value x, int axis, bool keep) { return rlx::any(x, {axis}, keep); }

  /// Comparisons of exact values, and selections by them.
  void add_choice() {
    const Item* item = find([](const Item& i) { return i.exact && !is_bool(i.value.dtype()); });
    if (!item) return;
    const Item x = *item;
    const Value condition = pick(2) ? gt(x.value, scalar(x.value, 0, x.value.dtype())) : le(x.value, reverse_all(x.value));
    if (pick(3) == 0) return add(condition, true, 0);
    const Item* first = find([&](const Item& i) { return i.value.shape() == x.value.shape() && is_float(i.value.dtype()); });
    if (!first) return add(select(condition, x.value, neg(x.value)), true, x.narrow);
    const Item a = *first;
    const Item* second = find_like(a);
    const Item b = second ? *second : a;
    add(select(condition, a.value, b.value * -0.5), a.exact && b.exact, a.narrow);
  }
  static Value reverse_all(Value x) {
    Axes axes;
    for (int i = 0; i < x.rank(); ++i) axes.values.push_back(i);
    return reverse(x, axes);
  }

  void add_product() {
    if (pick(2) == 0) return add_large_product();
    const Item* item = find([](const Item& i) { return is_float(i.value.dtype()) && i.value.rank() >= 1 && i.value.rank() <= 3; });
    if (!item) return;
    const Item x = *item;
    const int rank = x.value.rank(), axis = pick(rank);
    if (x.value.type().size().upper() > 300) return;
    // x times itself or something that reads it otherwise, over one axis; tanh keeps the result small.
    const Value other = pick(2) ? cos(x.value) : x.value;
    if (rank == 3 && pick(2)) {
      const int batch = (axis + 1) % 3;
      return add(tanh(dot(x.value, other, {axis}, {axis}, {batch}, {batch}) * 0.25), false, x.narrow);
    }
    if (rank == 3) return;  // too large a result
    add(tanh(dot(x.value, other, {axis}, {axis}) * 0.25), false, x.narrow);
  }

  /// A product with enough work for the library of products: a row of 16 numbers for each element of x, times a matrix.
  void add_large_product() {
    const Item* item = find_float();
    if (!item) return;
    const Value x = cast(item->value, float_type(0));
    const Dim size = x.type().size();
    if (size.upper() < 4 || size.upper() > 64) return;
    const auto number = [&](const Dims& shape, int axis) { return cast(iota(x, shape, i32, axis), x.dtype()); };
    const Value rows = sin(reshape(x, {size, 1}) + number({size, 16}, 1) * 0.5);
    const Value matrix = cos(number({16, 64}, 0) * 3 + number({16, 64}, 1));
    add(tanh(matmul(rows, matrix) * 0.25), false, 0);
  }

  void add_special() {
    const Item* item = find([](const Item& i) { return is_float(i.value.dtype()) && i.value.rank() > 0; });
    if (!item) return;
    const Item x = *item;
    const int axis = pick(x.value.rank());
    switch (pick(7)) {
      case 0: return add(softmax(x.value, axis), false, x.narrow);
      case 1: return add(tanh(log_softmax(x.value, axis) * 0.25), false, x.narrow);
      case 2: {
        // A constant row has no direction; 0.5 under the root bounds what normalisation amplifies.
        const Value centred = x.value - mean(x.value, {axis}, true);
        return add(centred * rsqrt(mean(centred * centred, {axis}, true) + 0.5), false, x.narrow);
      }
      case 3: return add(tanh(cumsum(x.value, axis) * 0.25), false, x.narrow);
      case 4: {
        const Item* index = find([](const Item& i) { return i.value.dtype() == i32 && i.value.rank() <= 1; });
        if (!index || x.value.rank() > 3 || x.value.type().size().upper() > 300) return;
        return add(take(x.value, index->value, axis), x.exact, x.narrow);  // clamped to the axis
      }
      case 5:
        if (!x.exact) return add(silu(x.value), false, x.narrow);
        return add(argmax(x.value, axis), true, 0);
      default: return add(sigmoid(x.value + cast(iota(x.value, x.value.shape(), i32, axis), x.value.dtype()) * 0.125), false, x.narrow);
    }
  }

  Graph& graph_;
  std::mt19937 random_;
  bool first_is_param_;
  DType narrow_, float_;
  std::string prefix_;
  Dim batch_;
  std::vector<Item> values_;
};

}  // namespace rlx::test
