#include "backends/cpu/machine/denormals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "base/thread_pool.h"

namespace rlx::cpu {
namespace {

/// Nothing that the compiler could compute.
template <class T>
T product(T a, T b) {
  volatile T x = a, y = b;
  return x * y;
}

template <class T>
constexpr T smallest = std::numeric_limits<T>::min();
template <class T>
constexpr T denormal = std::numeric_limits<T>::denorm_min();

template <class T>
bool keeps_denormals() {
  return product<T>(denormal<T>, 1) != 0 && product<T>(smallest<T>, T(0.5)) != 0;  // as operand, as result
}

template <class T>
bool flushes_denormals() {
  return product<T>(denormal<T>, T(0x1p30)) == 0 && product<T>(smallest<T>, T(0.5)) == 0;
}

TEST(Denormals, AreFlushedInAScope) {
  EXPECT_TRUE(keeps_denormals<float>() && keeps_denormals<double>());
  {
    const FlushDenormals flush;
    EXPECT_TRUE(flushes_denormals<float>() && flushes_denormals<double>());
    EXPECT_EQ(product(smallest<float>, 1.0f), smallest<float>);
  }
  EXPECT_TRUE(keeps_denormals<float>() && keeps_denormals<double>());
}

TEST(Denormals, AreFlushedByTheThreadsOfAPool) {
  ThreadPool pool(3, flush_denormals);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> begun = 0;
  pool.parallel_for(pool.size(), 1, [&](std::int64_t, std::int64_t, int) {
    for (++begun; begun < pool.size();) std::this_thread::yield();  // so that each part has a thread of its own
    EXPECT_EQ(flushes_denormals<float>(), std::this_thread::get_id() != caller);
    EXPECT_EQ(flushes_denormals<double>(), std::this_thread::get_id() != caller);
  });
}

}  // namespace
}  // namespace rlx::cpu
