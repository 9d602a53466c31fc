// Rotary embeddings without f64. A position has three digits of 7 bits; the turn is that of each digit, one after the other, and sines and
// cosines of those stand in tables.
#include <cmath>

#include "backends/coreml/operations.h"

namespace rlx::coreml {
namespace {

constexpr std::int64_t base = 128;  // positions -2^20 to 2^20 - 1, as the last digit is from -64 to 63

/// A turn by angles: (..., S, pairs) each.
struct Turn {
  Tensor cosine, sine;
};

/// Of the digit `first` + row in units of `unit`, with this magnitude, from tables (digits, pairs).
Turn turn_of_digit(Body& out, const Tensor& row, const Array& frequencies, std::int64_t first, std::int64_t unit, double magnitude) {
  const std::int64_t pairs = frequencies.size();
  Array cosines(f32, {base, pairs}), sines(f32, {base, pairs});
  for (std::int64_t i = 0; i < base * pairs; ++i) {
    const std::int64_t position = (first + i / pairs) * unit;
    const double angle = static_cast<double>(position) * frequencies.get_double(i % pairs);
    cosines.set_double(i, magnitude * std::cos(angle)), sines.set_double(i, magnitude * std::sin(angle));
  }
  const auto rows_of = [&](const Array& table) { return take(out, out.constant(table, "rotary angles"), row, 0); };
  return {rows_of(cosines), rows_of(sines)};
}

Turn joined(Body& out, const Turn& a, const Turn& b) {
  const auto times = [&](const Tensor& x, const Tensor& y) { return binary(out, "mul", x, y); };
  return {binary(out, "sub", times(a.cosine, b.cosine), times(a.sine, b.sine)),
          binary(out, "add", times(a.sine, b.cosine), times(a.cosine, b.sine))};
}

/// `positions` (..., S).
Turn turn_of(Body& out, const Tensor& positions, const Array& frequencies, double magnitude) {
  const auto divided = [&](const Tensor& x) { return binary(out, "floor_div", x, number(x, base)); };
  const auto digit = [&](const Tensor& x) { return binary(out, "mod", x, number(x, base)); };
  const Tensor second = divided(positions), third = binary(out, "add", divided(second), number(positions, static_cast<double>(base) / 2));
  const Tensor inside = clamped(out, third, number(third, 0), number(third, base - 1));
  const Turn low = joined(out, turn_of_digit(out, digit(positions), frequencies, 0, 1, magnitude),
                          turn_of_digit(out, digit(second), frequencies, 0, base, 1));
  return joined(out, low, turn_of_digit(out, inside, frequencies, -base / 2, base * base, 1));
}

/// Layers that turn alike share the turn.
Turn shared_turn(const Call& c, const Array& frequencies) {
  const auto bytes = frequencies.bytes();
  const auto magnitude = c.attr<double>("magnitude");
  const std::string key =
      fmt::format("rope {} {} ", c.x[1].name, magnitude) + std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const Tensors made = c.out.made_once(key, [&] {
    const Dims shape(c.x[1].shape.begin(), c.x[1].shape.end() - 1);
    const Turn turn = turn_of(c.out, reshape(c.out, convert(c.out, c.x[1], Element::i32), shape), frequencies, magnitude);
    return Tensors{turn.cosine, turn.sine};
  });
  return {made[0], made[1]};
}

Tensors rope(const Call& c) {
  const Weight* const frequencies = c.weight(2);
  if (!frequencies) fail("coreml: rope with a result of {}: its frequencies must not depend on a run", c.node.results[0].to_string());
  const Turn turn = shared_turn(c, frequencies->array);
  const Tensor& x = c.x[0];
  const std::size_t last = x.shape.size() - 1;
  const std::int64_t pairs = frequencies->array.size(), size = x.shape[last].value();
  const bool half = c.word("style") == "half";
  const Tensor a = half ? cut(c.out, x, last, 0, pairs) : cut(c.out, x, last, 0, 2 * pairs, 2);
  const Tensor b = half ? cut(c.out, x, last, pairs, 2 * pairs) : cut(c.out, x, last, 1, 2 * pairs, 2);
  const Turn turned = joined(c.out, {a, b}, turn);
  const auto axis = static_cast<std::int64_t>(last);
  Tensor y;
  if (half) {
    y = concat(c.out, {turned.cosine, turned.sine}, axis);
  } else {
    Dims column = a.shape, front = a.shape;
    column.push_back(1), front.back() *= 2;
    y = reshape(c.out, concat(c.out, {reshape(c.out, turned.cosine, column), reshape(c.out, turned.sine, column)}, axis + 1), front);
  }
  if (2 * pairs < size) y = concat(c.out, {y, cut(c.out, x, last, 2 * pairs, size)}, axis);
  return {y};
}

}  // namespace

Rows rope_rows() {
  static constexpr Row<Rule> rows[] = {{"rope", rope}};
  return rows;
}

}  // namespace rlx::coreml
