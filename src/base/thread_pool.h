#pragma once
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/function_ref.h"
#include "base/loop_record.h"
#include "base/topology.h"

namespace rlx {

/// Persistent threads that share one loop at a time. The thread that calls works too, as worker 0, so a pool of 1 starts no thread.
///
/// A worker that has not begun its part when the caller is done with its own finds the caller at it: nobody waits for a thread that has no
/// CPU, only for one that lost it midway. Idle workers spin for some hundreds of microseconds, so that loops that follow each other closely
/// cost a fraction of a microsecond each, and then sleep; while a loop's parts end far apart, because another process needs the CPUs, they
/// sleep at once. There are never more spinning threads, over all pools of the process, than CPUs that were granted when the pool was made:
/// a quota that changes later is not seen.
class ThreadPool {
 public:
  using Body = FunctionRef<void(std::int64_t begin, std::int64_t end, int worker)>;

  /// Every thread that the pool starts calls `at_start` first, which must not throw. Where there are several `nodes` of memory, worker i
  /// stays on the CPUs of node nodes_of_workers(nodes, threads)[i]. Throws Error when `threads` is outside 1..max_threads or the system
  /// cannot start them.
  explicit ThreadPool(int threads, void (*at_start)() = nullptr, const std::vector<std::vector<int>>& nodes = memory_nodes());
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  static constexpr int max_threads = 4095;

  int size() const { return size_; }
  /// Memory nodes that its workers stay on; 1 where they go where they like.
  std::size_t nodes() const { return nodes_; }

  /// The number under which the current thread runs its part of a loop; 0 outside of loops.
  static int worker();

  /// Calls `body` with disjoint ranges that cover 0..count, each (but the last) a multiple of `grain` long. Which worker gets which one
  /// range depends on count, grain and size() only, unless another thread's loop goes on: worker 0 then gets several, and the rest is cut
  /// for all. `worker` is in 0..size() and no two bodies of one loop run under the same number at a time, so that it can index scratch
  /// memory.
  ///
  /// A loop of at most one grain, and a loop started inside a shared one, run inline on their caller. Shared loops of different threads
  /// take turns: who finds another at it begins alone, as worker 0, and shares what is left once the other has ended.
  /// When bodies throw, the loop still ends on all workers, and the exception of the lowest worker is rethrown here.
  /// Throws Error for a negative count or a grain below 1.
  void parallel_for(std::int64_t count, std::int64_t grain, Body body);

  /// The same, but that workers which share the loop call `body` with at most `piece` indices at a time, and that one whose own range is
  /// done takes over half of what another has left, as often as there is something: all end together, whatever held one up. Who gets which
  /// piece is open. Throws Error for a piece below 1 and a count of 2^32 and more, too.
  void parallel_pieces(std::int64_t count, std::int64_t grain, std::int64_t piece, Body body);

  /// What the next loop that waits for memory reads: pieces, one after the other, of which its workers read an equal part each. Whoever
  /// waits meanwhile brings the beginning of its part into its caches, if that is in the first most_pieces_ahead. Nothing reads the bytes,
  /// so that they may be gone by then.
  void read_ahead(std::span<const std::span<const std::byte>> pieces);
  static constexpr std::size_t most_pieces_ahead = 8;

 private:
  /// Indices that no thread has begun.
  struct alignas(8) Left {
    std::uint32_t begin = 0, end = 0;
  };
  /// What one worker writes is kept off its neighbours' cache lines (two, as the prefetcher fetches pairs).
  struct alignas(128) Worker {
    std::atomic<std::uint64_t> begun{0};  // the last loop of which some thread began this worker's part
    std::atomic<Left> left{};             // of its range, in a loop in pieces
    std::exception_ptr error;
    std::uint32_t ahead_of = 0;  // the number of what was announced, of which
    std::uintptr_t ahead = 0;    // this comes next,
    std::size_t ahead_left = 0;  // and so many bytes are to be asked for
    std::thread thread;
  };
  struct Job {
    const Body* body = nullptr;
    std::int64_t count = 0;
    std::int64_t grain = 1;
    std::int64_t piece = 0;  // 0: each worker runs its range as a whole
    int workers = 0;
    LoopRecord* record = nullptr;
  };
  struct Range {
    std::int64_t begin = 0, end = 0;
  };

  void work(int worker);
  bool begin_part(int worker, std::uint64_t loop);
  static std::int64_t grains_of(const Job& job);
  static Range range_of(const Job& job, int worker);
  void run(Job job);
  void share(Job job);
  void run_part(int worker) noexcept;
  void run_body(const Job& job, int worker);
  std::optional<Range> next_piece(const Job& job, int worker);
  bool take_over(const Job& job, int worker);
  void run_unbegun(int workers);
  void publish(const Job& job);
  void stop();
  using Clock = std::chrono::steady_clock;
  bool is_crowded() const;
  void await_others(Clock::time_point begin);
  template <class Value>
  void await_change(const std::atomic<Value>& value, Value old, int worker);
  template <class Value>
  bool spin(const std::atomic<Value>& value, Value old, int worker);
  bool bring_nearer(int worker);
  void find_ahead(int worker);

  const int size_;
  const std::size_t nodes_;
  const int granted_;
  std::unique_ptr<Worker[]> workers_;
  std::mutex callers_;
  Job job_;
  std::atomic<Clock::rep> crowded_until_{0};      // till when other processes need the CPUs; 0: never yet
  alignas(128) std::atomic<std::uint64_t> loop_;  // its number, and how many workers take part in it
  std::atomic<std::uint32_t> ticket_;             // the low bits, on which workers wait
  /// A piece of what comes next. All may be read while they change: then other bytes are fetched.
  struct Ahead {
    std::atomic<const std::byte*> begin{nullptr};
    std::atomic<std::size_t> bytes{0};
  };
  std::array<Ahead, most_pieces_ahead> ahead_;
  std::atomic<std::size_t> ahead_pieces_{0}, ahead_bytes_{0};  // how many of them, and of all that was announced
  std::atomic<std::uint32_t> ahead_number_{0};
  alignas(128) std::atomic<std::int32_t> running_{0};  // workers of the current loop, other than the caller, that are not done
};

}  // namespace rlx
