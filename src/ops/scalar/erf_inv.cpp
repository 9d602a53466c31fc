// The inverse of erf.
#include <array>
#include <numbers>

#include "ops/scalar/function.h"
#include "ops/scalar/horner.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

// y / x is a slow function of w = -log((1 - x)(1 + x)), from 0.886 at w = 0, and far out nearly sqrt(w) (Giles, Approximating the erfinv
// function, 2011). Each fit is a polynomial in w or sqrt(w) less `centre`, with relative error 7e-9 (f32) and 3e-17 (f64) up to the
// largest x below 1.
struct Fit {
  double centre;
  std::span<const double> coefficients;
  Value of(Value v) const { return horner(v - centre, coefficients); }
};
constexpr std::array<double, 10> narrow_near{1.50140936045,     0.246640279055,    -0.0041773928752, -0.00125272639177, 0.00021834938624,
                                             -4.97241968945e-6, -3.46398526763e-6, 4.68131348055e-7, 2.33359671957e-8,  -8.93192597024e-9};
constexpr std::array<double, 10> narrow_far{2.9512944471,      1.00361923196,    0.00716158849095,   -0.00540818066771,  0.00387023295341,
                                            -0.00257629053181, 0.00132751752285, -0.000313288500852, -0.000182674637802, 0.000129250369596};
constexpr std::array<double, 24> wide_near{
    1.65365456268310275,       0.240158182425588324,     -0.00603367087142784988,  -0.000740702534154476987, 0.000186734208024648377,
    -0.0000138825233944053167, -1.36546918506035751e-6,  4.23478817378233926e-7,   -2.90703822629272664e-8,  -4.11266082002324008e-9,
    1.05121815398041267e-9,    -5.41428719808471606e-11, -1.29768855265320756e-11, 2.63048347405604415e-12,  -8.11839944307435319e-14,
    -4.00123773509189586e-14,  6.59640771242083411e-15,  -4.02821543276617422e-17, -1.30169280167964449e-16, 1.55743202462332522e-17,
    1.15002225206625297e-18,   -3.49960443547541778e-19, -1.11348376983270194e-21, 3.24070445937990191e-21};
constexpr std::array<double, 21> wide_middle{
    3.08388561049222068,       1.00525896769416538,      0.00537091455355503303,   -0.00375120850822473403,  0.00249144209795696039,
    -0.00168827553544885554,   0.000953289341579413721,  -0.000355037813785245177, 0.0000240315128657583563, 0.0000682871173925195572,
    -0.0000473206806654469684, 0.0000124650282242174553, 2.93257845538534997e-6,   -3.98570594564817333e-6,  1.48159778740225387e-6,
    -2.76171622381624125e-8,   -2.45498189633398225e-7,  1.3158663683192966e-7,    -2.09145333477312597e-8,  -1.53053979641525482e-8,
    7.68020047907705274e-9};
constexpr std::array<double, 19> wide_far{
    4.84990640140858434,       1.01030046486454538,     -0.000138719318379811946, -0.000215030119829287566, 0.0000759952780884215587,
    -0.0000196817706775872419, 4.52605260544963059e-6,  -9.93029554999066404e-7,  2.29052446353087224e-7,   -6.75555012441128784e-8,
    2.90196076713130053e-8,    -1.52566646039265147e-8, 7.82000668150727919e-9,   -3.46928865091059542e-9,  1.31721920888500621e-9,
    -4.3890984881788928e-10,   6.90049076218942126e-11, 4.32266055751474962e-11,  -2.02838355228430188e-11};

Value ratio(Value x) {
  const Value w = -log((1 - x) * (x + 1)), root = sqrt(w);
  if (x.dtype() != f64) return select(lt(w, like(w, 5)), Fit{2.5, narrow_near}.of(w), Fit{3.118, narrow_far}.of(root));
  const Value outer = select(lt(w, like(w, 16)), Fit{3.25, wide_middle}.of(root), Fit{5, wide_far}.of(root));
  return select(lt(w, like(w, 6.25)), Fit{3.125, wide_near}.of(w), outer);
}

struct ErfInv : UnaryFunction<ErfInv> {
  static constexpr std::string_view name = "erf_inv";
  static constexpr std::string_view formula = "y with erf(y) = x: infinite at -1 and 1, NaN beyond";
  static constexpr double low = -0.95, high = 0.95;
  static Value body(const ErfInv&, Value x) {
    return in_wide(name, x, [](Value v) {
      const Value end = eq(abs(v), like(v, 1));
      return select(end, v * infinity, v * ratio(select(end, like(v, 0), v)));
    });
  }
  static Values jvp(const ErfInv&, In, In y, In dx) { return times(dx[0], exp(square(widen(y[0]))) * (0.5 / std::numbers::inv_sqrtpi)); }
};
const Op<ErfInv> erf_inv_op;

}  // namespace

/// The inverse of erf: y with erf(y) = x, infinite at -1 and 1, NaN for |x| > 1. Throws Error when x is no float.
Value erf_inv(Operand x) { return erf_inv_op({}, x); }

}  // namespace rlx
