// Running results of any associative function, in logarithmically many steps.
#include <functional>

#include "ir/op.h"
#include "rlx/ops.h"

namespace rlx {
namespace {

using Combine = std::function<Values(const Values& earlier, const Values& later)>;

class AssociativeScan {
 public:
  AssociativeScan(const Combine& combine, std::int64_t axis) : combine_(combine), axis_(axis) {}

  /// Pairs of neighbours have the results of odd positions, by the same for half as many; those of even positions are one element more
  /// (Blelloch, Prefix sums and their applications, 1990).
  Values of(const Values& x) const {
    const std::int64_t n = x[0].dim(axis_).value(), half = n / 2;
    if (n < 2) return x;
    const Values odd = of(combined(every_other(x, 0, 2 * half), every_other(x, 1, n)));
    Values even = every_other(x, 0, 1);
    if (n > 2) {
      const Values rest = combined(part(odd, 0, (n - 1) / 2), every_other(x, 2, n));
      for (std::size_t i = 0; i < x.size(); ++i) even[i] = concat({even[i], rest[i]}, axis_);
    }
    Values y;
    for (std::size_t i = 0; i < x.size(); ++i) y.push_back(interleaved(even[i], odd[i]));
    return y;
  }

 private:
  Values part(const Values& x, std::int64_t begin, std::int64_t end, std::int64_t step = 1) const {
    Values y;
    for (const Value& v : x) y.push_back(slice_axis(v, axis_, begin, end, step));
    return y;
  }
  Values every_other(const Values& x, std::int64_t begin, std::int64_t end) const { return part(x, begin, end, 2); }

  Values combined(const Values& earlier, const Values& later) const {
    const Values y = combine_(earlier, later);
    bool fits = y.size() == later.size();
    for (std::size_t i = 0; fits && i < y.size(); ++i) fits = y[i].type() == later[i].type();
    if (fits) return y;
    const auto listed = [](const Values& values) {
      std::string text;
      for (const Value& v : values) text += (text.empty() ? "" : ", ") + v.type().to_string();
      return text;
    };
    fail("rlx.associative_scan: the function gives ({}) for ({}) (allowed: the types that it is given)", listed(y), listed(later));
  }

  /// even[0], odd[0], even[1], ...; there may be one even element more.
  Value interleaved(Value even, Value odd) const {
    const std::int64_t pairs = odd.dim(axis_).value();
    Dims shape = odd.shape();
    shape[static_cast<std::size_t>(axis_)] = 2 * pairs;
    Value y = reshape(stack({slice_axis(even, axis_, 0, pairs), odd}, axis_ + 1), shape);
    return even.dim(axis_) == odd.dim(axis_) ? y : concat({y, slice_axis(even, axis_, pairs, pairs + 1)}, axis_);
  }

  const Combine& combine_;
  std::int64_t axis_;
};

}  // namespace

/// Element k along `axis` of each result is what `combine` makes of the elements 0..k of `xs`, or k..n-1 with `reverse`, as
/// jax.lax.associative_scan. `combine` gets several elements at once, slices along `axis` with all values of `xs`, and must be associative
/// and elementwise along `axis`; it is called some 2 log2(n) times. With `reverse` its first argument are the later elements. Throws Error
/// for sizes along `axis` that differ or are symbolic, and when it changes types.
Values associative_scan(const std::function<Values(const Values& earlier, const Values& later)>& combine, Operands xs,
                        std::int64_t axis /*= 0*/, bool reverse /*= false*/) {
  if (xs.empty()) fail("rlx.associative_scan: no values (allowed: at least one)");
  axis = normalize_axis("associative_scan", axis, xs[0].type());
  for (const Value& x : xs)
    if (axis >= x.rank() || !x.dim(axis).is_static() || !(x.dim(axis) == xs[0].dim(axis)))
      fail("rlx.associative_scan: axis {} of {} beside {} (allowed: one static size)", axis, x.type().to_string(),
           xs[0].type().to_string());
  const auto turned = [&](Values v) {
    if (reverse)
      for (Value& x : v) x = flip(x, {axis});
    return v;
  };
  return turned(AssociativeScan(combine, axis).of(turned(xs)));
}

}  // namespace rlx
