// Which worker is the first at the pages of a head's keys, when they are written and when they are read: every head is memory that nobody
// may touch, and who does is noted.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <csignal>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/gemm/aligned_buffer.h"
#include "backends/cpu/state_update/claim.h"

namespace rlx::test {
namespace state_memory_test {

constexpr std::int64_t heads = 8, keys = 4096, features = 64, head_size = keys * features;
constexpr std::size_t head_bytes = head_size * sizeof(float);

/// Keys of all heads. There is one at a time.
class WatchedKeys {
 public:
  WatchedKeys() : pages_(map_pages(heads * head_bytes, Backing::as_touched)) {
    base = pages_.get();
    std::ranges::fill(worker_of_head, -1);
    struct sigaction note{};
    note.sa_flags = SA_SIGINFO;
    note.sa_sigaction = [](int, siginfo_t* fault, void*) {
      const std::ptrdiff_t at = static_cast<std::byte*>(fault->si_addr) - base;
      if (at < 0 || at >= static_cast<std::ptrdiff_t>(heads * head_bytes)) std::_Exit(1);
      const std::size_t head = static_cast<std::size_t>(at) / head_bytes;
      worker_of_head[head] = ThreadPool::worker();
      mprotect(base + head * head_bytes, head_bytes, PROT_READ | PROT_WRITE);
    };
    sigaction(SIGSEGV, &note, &before_);
    mprotect(base, heads * head_bytes, PROT_NONE);
  }
  ~WatchedKeys() {
    mprotect(base, heads * head_bytes, PROT_READ | PROT_WRITE);
    sigaction(SIGSEGV, &before_, nullptr);
  }
  WatchedKeys(const WatchedKeys&) = delete;
  WatchedKeys& operator=(const WatchedKeys&) = delete;

  static std::byte* data() { return base; }
  static std::vector<int> workers() { return {worker_of_head, worker_of_head + heads}; }

 private:
  static inline std::byte* base;
  static inline volatile int worker_of_head[heads];
  Pages pages_;
  struct sigaction before_;
};

std::vector<int> writers(ThreadPool& pool, std::int64_t tokens) {
  const WatchedKeys watched;
  const std::vector<float> values(static_cast<std::size_t>(heads * tokens * features), 1);
  const std::vector<std::int64_t> all{1, heads, keys, features};
  std::vector<cpu::Window> windows;  // of a token each, one behind the other
  for (std::int64_t token = 0; token < tokens; ++token)
    windows.push_back(
        {reinterpret_cast<const std::byte*>(values.data() + token * heads * features), {1, heads, 1, features}, {0, 0, 100 + token, 0}});
  cpu::copy_windows(windows, all, sizeof(float), watched.data(), pool);
  EXPECT_EQ(reinterpret_cast<const float*>(watched.data())[7 * head_size + (100 + tokens) * features - 1], 1);
  EXPECT_EQ(reinterpret_cast<const float*>(watched.data())[7 * head_size + (100 + tokens) * features], 0);
  return watched.workers();
}

/// Of the next token.
std::vector<int> readers(ThreadPool& pool) {
  const WatchedKeys watched;
  const std::int64_t item = 0;
  std::vector<float> q(heads * features, 1), out(heads * features);
  const std::vector<float> v(heads * head_size, 1);
  cpu::AttentionArgs<float> args;
  args.heads = args.kv_heads = heads;
  args.queries = 1, args.keys = keys;
  args.head_size = args.value_size = features;
  args.q = {q.data(), &item, features, features, 1};
  args.k = {reinterpret_cast<const float*>(watched.data()), &item, head_size, features, 1};
  args.v = {v.data(), &item, head_size, features, 1};
  args.out = {out.data(), &item, features, features, 1};
  const cpu::AlignedBuffer workspace(cpu::attention_workspace(args, pool.size()));
  args.workspace = workspace.data();
  cpu::attention(args, pool);
  return watched.workers();
}

/// Nodes that the test makes up: workers stay on CPU 0, if they may.
TEST(StateMemory, OfAHeadIsFirstTouchedByTheWorkerThatReadsIt) {
  for (const auto& [workers, by_head] : {std::pair{2, std::vector{0, 0, 0, 0, 1, 1, 1, 1}}, {4, std::vector{0, 0, 1, 1, 2, 2, 3, 3}}}) {
    ThreadPool pool(workers, nullptr, {{0}, {0}});
    EXPECT_EQ(writers(pool, 1), by_head);
    EXPECT_EQ(writers(pool, 300), by_head);
    EXPECT_EQ(readers(pool), by_head);
  }
}

TEST(StateMemory, OfOneNodeIsWrittenByTheCaller) {
  ThreadPool pool(2, nullptr, {{0}});
  EXPECT_EQ(writers(pool, 300), std::vector(heads, 0));
}

}  // namespace state_memory_test
}  // namespace rlx::test
