#include "backends/cpu/routines/fourier/fft_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>
#include <mutex>
#include <numbers>

namespace rlx::cpu {
namespace {

constexpr std::int64_t largest_radix = 61, longest_block = 2048;

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The radices of the passes, none where a prime factor is too large.
std::vector<std::int64_t> radices_of(std::int64_t n) {
  std::vector<std::int64_t> radices;
  for (std::int64_t p = 3; p <= largest_radix; p += 2)
    for (; n % p == 0; n /= p) radices.push_back(p);
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  if (n > 1) return {};
  for (; twos >= 5 || twos == 3; twos -= 3) radices.push_back(8);
  for (; twos >= 2; twos -= 2) radices.push_back(4);
  if (twos == 1) radices.push_back(2);
  if (radices.empty()) radices.push_back(1);
  return radices;
}

bool is_smooth(std::int64_t n) { return !radices_of(n).empty(); }

/// e^(-2 pi i k / n), reduced to an eighth of a turn before anything is rounded.
template <class T>
void put_root(std::int64_t k, std::int64_t n, T* pair) {
  using Wide = std::conditional_t<std::is_same_v<T, float>, double, long double>;
  k %= n;
  const std::int64_t eighth = 8 * k / n;  // lengths are below 2^59
  const std::int64_t quarter = (eighth + 1) / 2;
  const auto rest = static_cast<Wide>(4 * k - quarter * n) / static_cast<Wide>(n);  // of a quarter turn, -1/2 .. 1/2
  const Wide angle = rest * (std::numbers::pi_v<Wide> / 2), c = std::cos(angle), s = std::sin(angle);
  const Wide re[] = {c, -s, -c, s}, im[] = {s, c, -s, -c};
  pair[0] = static_cast<T>(re[quarter % 4]);
  pair[1] = static_cast<T>(-im[quarter % 4]);
}

/// The cut of a length in two that costs the fewest vector operations.
std::pair<std::int64_t, std::int64_t> best_halves(std::int64_t n, std::int64_t lanes) {
  const auto cost = [&](std::int64_t a, std::int64_t b) {
    const double far = std::max(0.0, std::log2(static_cast<double>(std::max(a, b)) / 1024));  // beyond the second-level cache
    return (static_cast<double>(a * up(b, lanes)) * (std::log2(static_cast<double>(a)) + 3) +
            static_cast<double>(b * up(a, lanes)) * (std::log2(static_cast<double>(b)) + 4)) *
           (1 + far / 4);
  };
  std::pair<std::int64_t, std::int64_t> best{1, n};
  for (std::int64_t a = 2; a * a <= n; ++a) {
    if (n % a != 0) continue;
    if (cost(a, n / a) < cost(best.first, best.second)) best = {a, n / a};
    if (cost(n / a, a) < cost(best.first, best.second)) best = {n / a, a};
  }
  return best;
}

/// A length that is cut well, `least` or somewhat more.
std::int64_t convolution_length(std::int64_t least) {
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t odd : {1, 3, 5, 9, 15}) {
    std::int64_t n = odd * 256;
    while (n < least) n *= 2;
    best = std::min(best, n);
  }
  return best;
}

}  // namespace

template <class T>
std::vector<T> roots_of_one(std::int64_t n, std::int64_t count) {
  std::vector<T> roots(static_cast<std::size_t>(2 * count));
  for (std::int64_t k = 0; k < count; ++k) put_root<T>(k, n, &roots[static_cast<std::size_t>(2 * k)]);
  return roots;
}

template <class T>
FftColumns<T>::FftColumns(std::int64_t n) : n(n) {
  std::int64_t s = 1, left = n;
  for (std::int64_t radix : radices_of(n)) {
    FftPass<T> pass{radix, left / radix, s, nullptr, nullptr};
    std::vector<T> turns(static_cast<std::size_t>(2 * pass.m * (radix - 1)));
    for (std::int64_t p = 0; p < pass.m; ++p)
      for (std::int64_t k = 1; k < radix; ++k) put_root<T>(p * k, left, &turns[static_cast<std::size_t>(2 * (p * (radix - 1) + k - 1))]);
    pass.turns = tables.emplace_back(std::move(turns)).data();
    if (radix % 2 == 1) pass.roots = tables.emplace_back(roots_of_one<T>(radix, radix)).data();
    passes.push_back(pass);
    s *= radix, left /= radix;
  }
}

template <class T>
FftPlan<T>::FftPlan(std::int64_t n, bool inverse, const FftKernel<T>& kernel) : n_(n), kernel_(kernel) {
  if (!is_smooth(n)) {
    make_convolution(inverse);
    return;
  }
  if (n >= 16 * kernel.lanes) make_halves();
  if (!halves_ || n <= longest_block) direct_ = std::make_unique<FftColumns<T>>(n);
  bytes_ += static_cast<std::size_t>(n) * 2 * sizeof(T);
}

template <class T>
void FftPlan<T>::make_halves() {
  const auto [a, b] = best_halves(n_, kernel_.lanes);
  const std::int64_t lanes = kernel_.lanes, groups = up(b, lanes);
  if (a == 1) return;
  halves_ = std::make_unique<Halves>(Halves{groups, FftColumns<T>(a), FftColumns<T>(b), {}, {}});
  halves_->base.resize(static_cast<std::size_t>(2 * a * groups));
  for (std::int64_t g = 0; g < groups; ++g)
    for (std::int64_t k = 0; k < a; ++k) put_root<T>(k * g * lanes, n_, &halves_->base[static_cast<std::size_t>(2 * (g * a + k))]);
  halves_->fine.resize(static_cast<std::size_t>(block(a)));
  for (std::int64_t k = 0; k < a; ++k)
    for (std::int64_t l = 0; l < lanes; ++l) {
      T pair[2];
      put_root<T>(k * l, n_, pair);
      T* at = &halves_->fine[static_cast<std::size_t>(block(k) + l)];
      at[0] = pair[0], at[lanes] = pair[1];
    }
}

template <class T>
void FftPlan<T>::make_convolution(bool inverse) {
  const std::int64_t m = convolution_length(2 * n_ - 1);
  convolution_ = std::make_unique<Convolution>(Convolution{m, {}, {}, std::make_unique<FftPlan>(m, false, kernel_)});
  std::vector<T>&chirp = convolution_->chirp, &filter = convolution_->filter;
  chirp.resize(static_cast<std::size_t>(2 * n_));
  std::vector<T> around(static_cast<std::size_t>(2 * m));
  std::int64_t square = 0;  // k^2 modulo 2 n
  for (std::int64_t k = 0; k < n_; ++k) {
    T* at = &chirp[static_cast<std::size_t>(2 * k)];
    put_root<T>(square, 2 * n_, at);
    if (inverse) at[1] = -at[1];
    for (const std::int64_t place : {k, k == 0 ? 0 : m - k}) {
      around[static_cast<std::size_t>(2 * place)] = at[0];
      around[static_cast<std::size_t>(2 * place + 1)] = -at[1];
    }
    square = (square + 2 * k + 1) % (2 * n_);
  }
  filter.resize(around.size());
  std::vector<T> scratch(static_cast<std::size_t>(convolution_->plan->line_scratch(1)) + 64 / sizeof(T));
  convolution_->plan->line(around.data(), filter.data(), false, static_cast<T>(1), FftTeam(), scratch.data());
  bytes_ += static_cast<std::size_t>(2 * (n_ + m)) * sizeof(T) + convolution_->plan->bytes();
}

template <class T>
std::int64_t FftPlan<T>::line_scratch(int threads) const {
  if (convolution_) return 4 * convolution_->length + convolution_->plan->line_scratch(threads);
  if (!halves_) return group_scratch();
  const std::int64_t lanes = kernel_.lanes, rows = std::max(halves_->first.n, halves_->groups * lanes);
  return block(halves_->groups * halves_->first.n) + threads * 2 * block(rows);
}

template <class T>
void FftPlan<T>::group(const FftMatrix<T>& x, const FftMatrix<T>& y, std::int64_t lines, T scale, T* scratch) const {
  const auto& passes = direct_->passes;
  const auto count = static_cast<std::int64_t>(passes.size());
  T *a = scratch, *b = scratch + block(n_);
  const bool whole = lines == kernel_.lanes, reads = whole && x.lane_stride == 1, writes = whole && y.lane_stride == 1;
  if (!reads) kernel_.gather(x, n_, lines, a);
  a = kernel_.columns(passes.data(), count, reads ? &x : nullptr, a, b, writes ? &y : nullptr, nullptr, scale);
  if (!writes) kernel_.scatter(a, n_, lines, y, scale);
}

template <class T>
void FftPlan<T>::line(const T* x, T* y, bool inverse, T scale, const FftTeam& team, T* scratch) const {
  if (convolution_) return convolution_line(x, y, scale, team, scratch);
  if (halves_) return halves_line(x, y, inverse, scale, team, scratch);
  group({const_cast<T*>(x), 1, n_, inverse}, {y, 1, n_, inverse}, 1, scale, scratch);
}

template <class T>
void FftPlan<T>::halves_line(const T* x, T* y, bool swapped, T scale, const FftTeam& team, T* scratch) const {
  const Halves& h = *halves_;
  const std::int64_t lanes = kernel_.lanes, a = h.first.n, b = h.second.n, row = h.groups * 2 * lanes;
  T *between = scratch, *blocks = scratch + block(h.groups * a);
  const std::int64_t rows = std::max(a, h.groups * lanes), most = 2 * block(rows);
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / (a * lanes));
  team.each(h.groups, grain, [&](std::int64_t begin, std::int64_t end, int worker) {
    T *one = blocks + worker * most, *other = one + most / 2;
    for (std::int64_t g = begin; g < end; ++g) {
      const FftMatrix<T> in{const_cast<T*>(x) + 2 * g * lanes, b, 1, swapped};
      const FftTurned<T> turned{between + g * 2 * lanes, row, h.base.data() + 2 * g * a, h.fine.data()};
      const std::int64_t columns = std::min(lanes, b - g * lanes);
      if (columns < lanes) kernel_.gather(in, a, columns, one);
      kernel_.columns(h.first.passes.data(), static_cast<std::int64_t>(h.first.passes.size()), columns < lanes ? nullptr : &in, one, other,
                      nullptr, &turned, scale);
    }
  });
  team.each(up(a, lanes), std::max<std::int64_t>(1, 8192 / (b * lanes)), [&](std::int64_t begin, std::int64_t end, int worker) {
    T *one = blocks + worker * most, *other = one + most / 2;
    for (std::int64_t g = begin; g < end; ++g) {
      const FftMatrix<T> out{y + 2 * g * lanes, a, 1, swapped};
      const std::int64_t lines = std::min(lanes, a - g * lanes);
      kernel_.turn_round(between + g * lanes * row, row, lines, h.groups, one);
      const bool whole = lines == lanes;
      T* result = kernel_.columns(h.second.passes.data(), static_cast<std::int64_t>(h.second.passes.size()), nullptr, one, other,
                                  whole ? &out : nullptr, nullptr, scale);
      if (!whole) kernel_.scatter(result, b, lines, out, scale);
    }
  });
}

template <class T>
void FftPlan<T>::convolution_line(const T* x, T* y, T scale, const FftTeam& team, T* scratch) const {
  const Convolution& c = *convolution_;
  T *one = scratch, *other = scratch + 2 * c.length, *rest = other + 2 * c.length;
  constexpr std::int64_t piece = 4096;
  const auto multiply = [&](const T* from, const T* by, T* to, std::int64_t n, T factor) {
    team.each(n, piece, [&](std::int64_t begin, std::int64_t end, int) {
      kernel_.multiply(from + 2 * begin, by + 2 * begin, to + 2 * begin, end - begin, factor);
    });
  };
  multiply(x, c.chirp.data(), one, n_, 1);
  std::fill(one + 2 * n_, one + 2 * c.length, static_cast<T>(0));
  c.plan->line(one, other, false, 1, team, rest);
  multiply(other, c.filter.data(), other, c.length, 1);
  c.plan->line(other, one, true, static_cast<T>(1.0 / static_cast<double>(c.length)), team, rest);
  multiply(one, c.chirp.data(), y, n_, scale);
}

namespace {

/// What was made last stays until all are beyond `most_bytes`.
template <class Key, class Made>
class Kept {
 public:
  template <class Make, class BytesOf>
  std::shared_ptr<const Made> get(const Key& key, const Make& make, const BytesOf& bytes_of) {
    {
      const std::lock_guard lock(mutex_);
      for (auto it = all_.begin(); it != all_.end(); ++it)
        if (it->first == key) {
          all_.splice(all_.begin(), all_, it);
          return all_.front().second;
        }
    }
    std::shared_ptr<const Made> made = make();
    const std::lock_guard lock(mutex_);
    all_.emplace_front(key, made);
    std::size_t bytes = 0;
    for (auto it = all_.begin(); it != all_.end();) {
      bytes += bytes_of(*it->second);
      it = bytes > most_bytes && it != all_.begin() ? all_.erase(it) : std::next(it);
    }
    return made;
  }

 private:
  static constexpr std::size_t most_bytes = std::size_t{256} << 20;
  std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<const Made>>> all_;
};

struct PlanKey {
  std::int64_t n;
  bool inverse;
  const void* kernel;
  bool operator==(const PlanKey&) const = default;
};

}  // namespace

template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(std::int64_t n, bool inverse, CpuLevel level) {
  static Kept<PlanKey, FftPlan<T>> kept;
  const FftKernel<T>& kernel = fft_kernel<T>(level);
  return kept.get(
      PlanKey{n, inverse && !is_smooth(n), &kernel}, [&] { return std::make_shared<const FftPlan<T>>(n, inverse, kernel); },
      [](const FftPlan<T>& plan) { return plan.bytes(); });
}

template <class T>
std::shared_ptr<const std::vector<T>> real_turns(std::int64_t n) {
  static Kept<std::int64_t, std::vector<T>> kept;
  return kept.get(
      n, [&] { return std::make_shared<const std::vector<T>>(roots_of_one<T>(n, n / 4 + 1)); },
      [](const std::vector<T>& roots) { return roots.size() * sizeof(T); });
}

template struct FftColumns<float>;
template struct FftColumns<double>;
template class FftPlan<float>;
template class FftPlan<double>;
template std::shared_ptr<const FftPlan<float>> fft_plan(std::int64_t, bool, CpuLevel);
template std::shared_ptr<const FftPlan<double>> fft_plan(std::int64_t, bool, CpuLevel);
template std::shared_ptr<const std::vector<float>> real_turns(std::int64_t);
template std::shared_ptr<const std::vector<double>> real_turns(std::int64_t);

}  // namespace rlx::cpu
