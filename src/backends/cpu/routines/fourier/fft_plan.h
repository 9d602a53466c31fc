#pragma once
#include <memory>
#include <vector>

#include "backends/cpu/routines/fourier/fft_kernel.h"
#include "base/thread_pool.h"

namespace rlx::cpu {

/// A loop over all threads of a pool, or over the calling one alone.
struct FftTeam {
  ThreadPool* pool = nullptr;
  int size() const { return pool ? pool->size() : 1; }
  void each(std::int64_t count, std::int64_t grain, ThreadPool::Body body) const {
    if (pool) pool->parallel_for(count, grain, body);
    else if (count > 0) body(0, count, 0);
  }
};

/// Transforms of lines of one length n as short as fits the second-level cache, by passes over whole lines.
template <class T>
struct FftColumns {
  explicit FftColumns(std::int64_t n);
  std::int64_t n;
  std::vector<std::vector<T>> tables;
  std::vector<FftPass<T>> passes;
};

/// All that is known of a length before the numbers come: made once, used by any number of threads.
///
/// A short length without prime factors above 61 is transformed by passes over as many lines as vectors have lanes. A long one is split in
/// two, n = a * b: a line is a matrix (a, b), whose columns are transformed, multiplied by roots of 1, and transformed along their rows, so
/// that each half works on lines that lie side by side and stays in the caches (Bailey 1990). Other lengths become a convolution of a
/// length that can be split (Bluestein 1970).
template <class T>
class FftPlan {
 public:
  /// n of 1 or more. Of the lengths that are convolutions a plan is for one direction.
  FftPlan(std::int64_t n, bool inverse, const FftKernel<T>& kernel);

  std::int64_t length() const { return n_; }
  std::size_t bytes() const { return bytes_; }
  /// Whether lines can be transformed many at a time, by `group`.
  bool in_groups() const { return direct_ != nullptr; }
  /// Whether `line` is the faster way, or the only one.
  bool by_lines() const { return halves_ || convolution_; }

  /// Elements of scratch memory that each call needs.
  std::int64_t group_scratch() const { return direct_ ? 2 * block(n_) : 0; }
  std::int64_t line_scratch(int threads) const;

  /// y = the transform of x times `scale`, of the first `lines` lanes.
  void group(const FftMatrix<T>& x, const FftMatrix<T>& y, std::int64_t lines, T scale, T* scratch) const;
  /// The same of one line of pairs, side by side.
  void line(const T* x, T* y, bool inverse, T scale, const FftTeam& team, T* scratch) const;

 private:
  struct Halves {
    std::int64_t groups = 0;  // of columns
    FftColumns<T> first, second;
    std::vector<T> base, fine;
  };
  struct Convolution {
    std::int64_t length = 0;
    std::vector<T> chirp, filter;
    std::unique_ptr<FftPlan> plan;
  };

  std::int64_t block(std::int64_t rows) const { return rows * 2 * kernel_.lanes; }
  void make_halves();
  void make_convolution(bool inverse);
  void halves_line(const T* x, T* y, bool swapped, T scale, const FftTeam& team, T* scratch) const;
  void convolution_line(const T* x, T* y, T scale, const FftTeam& team, T* scratch) const;

  std::int64_t n_;
  const FftKernel<T>& kernel_;
  std::unique_ptr<FftColumns<T>> direct_;
  std::unique_ptr<Halves> halves_;
  std::unique_ptr<Convolution> convolution_;
  std::size_t bytes_ = 0;
};

/// The pairs e^(-2 pi i k / n) for k = 0 .. count - 1.
template <class T>
std::vector<T> roots_of_one(std::int64_t n, std::int64_t count);

/// A plan, kept for the next call that asks for it; the oldest go when all are large.
template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(std::int64_t n, bool inverse, CpuLevel level);

/// e^(-2 pi i k / n) for k = 0 .. n / 4, kept in the same manner: what real lines of length n need beside a plan for n / 2.
template <class T>
std::shared_ptr<const std::vector<T>> real_turns(std::int64_t n);

}  // namespace rlx::cpu
