#include "base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

#include "base/cpu_count.h"
#include "rlx/error.h"

namespace rlx {
namespace {

// A loop's number stands above the count of its workers and never comes again; threads wait for a change of its low bits, the ticket. Who
// takes part in a loop first marks the part as begun, and reads the job only then, so that a worker that comes late disturbs nothing. One
// that missed a whole turn of tickets sleeps on until the next loop.
constexpr int worker_bits = 12;
constexpr std::uint64_t worker_mask = (1u << worker_bits) - 1;
constexpr int stop_workers = 0;           // no loop is shared by zero workers,
constexpr std::uint32_t no_loop_yet = 1;  // nor by one: that runs inline
static_assert(ThreadPool::max_threads == static_cast<int>(worker_mask));

// Long enough to bridge the serial part between two loops of one model, and the end of a loop for the thread whose part was shorter: who
// sleeps there waits for its turn again where the machine is busy. Short against a scheduler's time slice.
constexpr std::chrono::microseconds spin_time{300};
constexpr int pauses_per_clock_read = 16;

// In so many pieces a caller whose turn has not come runs its loop, and asks for the turn between them.
constexpr std::int64_t pieces_alone = 16;

// The parts of a loop are alike. Who waits for another part for longer than it spins, and longer than its own part took, waits for a thread
// that has no CPU, and by spinning keeps a CPU from it. For so long nobody spins then.
constexpr std::chrono::milliseconds crowded_time{50};

/// Which loop the current thread is inside of, if any: a loop within it runs inline.
struct Inside {
  const ThreadPool* pool = nullptr;
  int worker = 0;
};
thread_local Inside inside;

/// Where the loops that this thread starts are noted.
thread_local LoopRecord* loop_record = nullptr;

alignas(128) std::atomic<int> spinning_threads{0};

// Of the bytes that come next, each worker fetches so many beforehand: what memory gives in some tens of microseconds. What its
// second-level cache does not hold goes to the next one. A few lines at a time, so that the end of the wait is seen at once.
constexpr std::size_t most_ahead = 2 << 20, ahead_at_a_time = 512, cache_line = 64;

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

RecordLoops::RecordLoops(LoopRecord& record) { loop_record = &record; }
RecordLoops::~RecordLoops() { loop_record = nullptr; }

ThreadPool::ThreadPool(int threads, void (*at_start)(), const std::vector<std::vector<int>>& nodes)
    : size_(threads), nodes_(std::max<std::size_t>(nodes.size(), 1)), granted_(granted_cpus()), loop_(no_loop_yet), ticket_(no_loop_yet) {
  if (threads < 1 || threads > max_threads) fail("thread pool: {} threads (allowed: 1..{})", threads, max_threads);
  workers_ = std::make_unique<Worker[]>(static_cast<std::size_t>(threads));
  // Memory belongs to the node of the thread that first touches it, so a worker stays on one: what it packs or zeroes it later reads. The
  // caller goes where it likes.
  const std::vector<std::size_t> node_of = nodes.size() > 1 ? nodes_of_workers(nodes, threads) : std::vector<std::size_t>();
  try {
    for (int worker = 1; worker < threads; ++worker) {
      std::vector<int> cpus = node_of.empty() ? std::vector<int>() : nodes[node_of[static_cast<std::size_t>(worker)]];
      workers_[worker].thread = std::thread([this, worker, at_start, own = std::move(cpus)] {
        if (!own.empty()) stay_on(own);
        if (at_start != nullptr) at_start();
        work(worker);
      });
    }
  } catch (const std::system_error& error) {
    stop();  // those that did start
    fail("thread pool: the system does not start {} threads: {}", threads, error.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

int ThreadPool::worker() { return inside.worker; }

void ThreadPool::stop() {
  publish({.workers = stop_workers});
  for (int worker = 1; worker < size_; ++worker) {
    if (workers_[worker].thread.joinable()) workers_[worker].thread.join();
  }
}

void ThreadPool::publish(const Job& job) {
  job_ = job;
  const std::uint64_t number = (loop_.load(std::memory_order_relaxed) >> worker_bits) + 1;
  const std::uint64_t loop = number << worker_bits | static_cast<std::uint64_t>(job.workers);
  loop_.store(loop, std::memory_order_release);
  ticket_.store(static_cast<std::uint32_t>(loop), std::memory_order_seq_cst);
  ticket_.notify_all();  // a system call only when someone sleeps
}

void ThreadPool::read_ahead(std::span<const std::span<const std::byte>> pieces) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    bytes += pieces[i].size();
    if (i >= most_pieces_ahead) continue;
    ahead_[i].begin.store(pieces[i].data(), std::memory_order_relaxed);
    ahead_[i].bytes.store(pieces[i].size(), std::memory_order_relaxed);
  }
  ahead_pieces_.store(std::min(pieces.size(), most_pieces_ahead), std::memory_order_relaxed);
  ahead_bytes_.store(bytes, std::memory_order_relaxed);
  ahead_number_.fetch_add(1, std::memory_order_release);
}

/// Finds where the worker's part of what comes next begins.
void ThreadPool::find_ahead(int worker) {
  const std::size_t share = ahead_bytes_.load(std::memory_order_relaxed) / static_cast<std::size_t>(size_);
  const std::size_t pieces = ahead_pieces_.load(std::memory_order_relaxed);
  std::size_t at = share * static_cast<std::size_t>(worker);
  Worker& mine = workers_[worker];
  mine.ahead_left = 0;
  for (std::size_t i = 0; i < pieces && mine.ahead_left == 0; ++i) {
    const std::size_t bytes = ahead_[i].bytes.load(std::memory_order_relaxed);
    if (at >= bytes) at -= bytes;
    else {
      // As a number: it may have been read while it changed, so that this is no place in any memory.
      mine.ahead = reinterpret_cast<std::uintptr_t>(ahead_[i].begin.load(std::memory_order_relaxed)) + at;
      mine.ahead_left = std::min({share, most_ahead, bytes - at});
    }
  }
}

/// Fetches some of what comes next. False when there is nothing to fetch.
bool ThreadPool::bring_nearer(int worker) {
  const std::uint32_t number = ahead_number_.load(std::memory_order_acquire);
  Worker& mine = workers_[worker];
  if (mine.ahead_of != number) mine.ahead_of = number, find_ahead(worker);
  if (mine.ahead_left == 0) return false;
  for (std::size_t line = 0; line < ahead_at_a_time; line += cache_line)
    __builtin_prefetch(reinterpret_cast<const void*>(mine.ahead + line), 0, 2);
  mine.ahead += ahead_at_a_time;
  mine.ahead_left -= std::min(mine.ahead_left, ahead_at_a_time);
  return true;
}

/// Spins until `value` differs from `old`. False when the time was over first.
template <class Value>
bool ThreadPool::spin(const std::atomic<Value>& value, Value old, int worker) {
  const auto deadline = Clock::now() + spin_time;
  do {
    for (int i = 0; i < pauses_per_clock_read; ++i) {
      if (value.load(std::memory_order_acquire) != old) return true;
      if (!bring_nearer(worker)) pause_cpu();
    }
  } while (Clock::now() < deadline);
  return false;
}

/// Returns once `value` differs from `old`: spins where a CPU is free for it, then sleeps.
template <class Value>
void ThreadPool::await_change(const std::atomic<Value>& value, Value old, int worker) {
  if (value.load(std::memory_order_acquire) != old) return;
  if (size_ <= granted_ && !is_crowded()) {
    const bool allowed = spinning_threads.fetch_add(1, std::memory_order_relaxed) < granted_;
    const bool changed = allowed && spin(value, old, worker);
    spinning_threads.fetch_sub(1, std::memory_order_relaxed);
    if (changed) return;
  }
  value.wait(old, std::memory_order_acquire);
}

bool ThreadPool::is_crowded() const {
  const Clock::rep until = crowded_until_.load(std::memory_order_relaxed);
  return until != 0 && Clock::now().time_since_epoch().count() < until;
}

/// Ends a loop whose first part began at `begin` and is done.
void ThreadPool::await_others(Clock::time_point begin) {
  std::int32_t left = running_.load(std::memory_order_acquire);
  if (left == 0) return;
  const auto done = Clock::now();
  do await_change(running_, left, 0);
  while ((left = running_.load(std::memory_order_acquire)) != 0);
  const auto end = Clock::now();
  if (end - done > spin_time + (done - begin))
    crowded_until_.store((end + crowded_time).time_since_epoch().count(), std::memory_order_relaxed);
}

void ThreadPool::work(int worker) {
  for (std::uint32_t seen = no_loop_yet;;) {
    await_change(ticket_, seen, worker);
    seen = ticket_.load(std::memory_order_acquire);
    const std::uint64_t loop = loop_.load(std::memory_order_acquire);
    const int workers = static_cast<int>(loop & worker_mask);
    if (workers == stop_workers) return;
    if (worker >= workers || !begin_part(worker, loop)) continue;
    run_part(worker);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_one();
  }
}

/// Whether the part was still to be begun: then nobody else runs it, and the loop does not end before it.
bool ThreadPool::begin_part(int worker, std::uint64_t loop) {
  std::atomic<std::uint64_t>& begun = workers_[worker].begun;
  std::uint64_t before = begun.load(std::memory_order_relaxed);
  return before < loop && begun.compare_exchange_strong(before, loop, std::memory_order_acq_rel);
}

/// What the caller does when its own part is done.
void ThreadPool::run_unbegun(int workers) {
  const std::uint64_t loop = loop_.load(std::memory_order_relaxed);
  for (int worker = 1; worker < workers; ++worker) {
    if (!begin_part(worker, loop)) continue;
    run_part(worker);
    running_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

std::int64_t ThreadPool::grains_of(const Job& job) { return job.count / job.grain + (job.count % job.grain != 0); }

ThreadPool::Range ThreadPool::range_of(const Job& job, int worker) {
  const std::int64_t grains = grains_of(job);
  // Whole grains per worker, the first `extra` workers one more: no product that could overflow.
  const std::int64_t share = grains / job.workers, extra = grains % job.workers;
  const std::int64_t first = share * worker + std::min<std::int64_t>(worker, extra);
  const std::int64_t begin = first * job.grain;
  const std::int64_t length = (share + (worker < extra)) * job.grain;
  return {begin, worker + 1 == job.workers ? job.count : begin + length};
}

void ThreadPool::run_part(int worker) noexcept {
  const Job job = job_;
  inside = {this, worker};
  try {
    if (!job.record) run_body(job, worker);
    else {
      const auto began = LoopRecord::Clock::now();
      run_body(job, worker);
      job.record->of_worker[static_cast<std::size_t>(worker)].push_back({job.record->part, began, LoopRecord::Clock::now()});
    }
  } catch (...) {
    workers_[worker].error = std::current_exception();
  }
  inside = {};
}

void ThreadPool::run_body(const Job& job, int worker) {
  if (job.piece == 0) {
    const Range range = range_of(job, worker);
    return (*job.body)(range.begin, range.end, worker);
  }
  do
    while (const auto piece = next_piece(job, worker)) (*job.body)(piece->begin, piece->end, worker);
  while (take_over(job, worker));
}

/// The next of the indices that the worker has left, towards the end fewer and fewer. Nobody waits for what is in `left`, and no range
/// comes there twice: no order matters.
std::optional<ThreadPool::Range> ThreadPool::next_piece(const Job& job, int worker) {
  std::atomic<Left>& mine = workers_[worker].left;
  Left left = mine.load(std::memory_order_relaxed);
  while (left.begin < left.end) {
    const std::int64_t begin = left.begin, half = (std::int64_t{left.end} - begin + 1) / 2, end = begin + std::min(job.piece, half);
    if (mine.compare_exchange_weak(left, {static_cast<std::uint32_t>(end), left.end}, std::memory_order_relaxed)) return Range{begin, end};
  }
  return std::nullopt;
}

/// Moves the second half of what another worker has left to this one, which has nothing left. False when nobody has.
bool ThreadPool::take_over(const Job& job, int worker) {
  for (int next = 1; next < job.workers; ++next) {
    std::atomic<Left>& others = workers_[(worker + next) % job.workers].left;
    Left left = others.load(std::memory_order_relaxed);
    while (left.begin < left.end) {
      const std::uint32_t middle = left.begin + (left.end - left.begin) / 2;
      if (!others.compare_exchange_weak(left, {left.begin, middle}, std::memory_order_relaxed)) continue;
      workers_[worker].left.store({middle, left.end}, std::memory_order_relaxed);
      return true;
    }
  }
  return false;
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, Body body) {
  if (count < 0 || grain < 1) fail("parallel_for: count {}, grain {} (allowed: count 0 and more, grain 1 and more)", count, grain);
  run({.body = &body, .count = count, .grain = grain});
}

void ThreadPool::parallel_pieces(std::int64_t count, std::int64_t grain, std::int64_t piece, Body body) {
  if (count < 0 || count > UINT32_MAX || grain < 1 || piece < 1)
    fail("parallel_pieces: count {}, grain {}, piece {} (allowed: count 0 to {}, grain and piece 1 and more)", count, grain, piece,
         UINT32_MAX);
  run({.body = &body, .count = count, .grain = grain, .piece = piece});
}

/// Runs a loop whose workers are not chosen yet. A caller whose turn has not come computes meanwhile, so that threads which call for short
/// loops get as many CPUs as they are. One whose loop is recorded waits: what ran alone is in no record.
void ThreadPool::run(Job job) {
  if (job.count == 0) return;
  const Body body = *job.body;
  if (inside.pool) return body(0, job.count, inside.pool == this ? inside.worker : 0);
  if (size_ == 1 || job.count <= job.grain) return body(0, job.count, 0);

  std::unique_lock turn(callers_, std::defer_lock);
  if (loop_record) turn.lock();
  const std::int64_t piece = (grains_of(job) / pieces_alone + 1) * job.grain;
  std::int64_t begin = 0;
  while (!turn && job.count - begin > piece && !turn.try_lock()) {
    body(begin, begin + piece, 0);
    begin += piece;
  }
  if (!turn) return body(begin, job.count, 0);
  const auto rest = [&](std::int64_t from, std::int64_t to, int worker) { body(begin + from, begin + to, worker); };
  const Body left = rest;
  if (begin > 0) job.body = &left, job.count -= begin;
  share(job);
}

/// By a caller that has the turn.
void ThreadPool::share(Job job) {
  job.workers = static_cast<int>(std::min<std::int64_t>(size_, grains_of(job)));
  job.record = loop_record;
  for (int worker = 0; job.piece > 0 && worker < job.workers; ++worker) {
    const Range range = range_of(job, worker);
    workers_[worker].left.store({static_cast<std::uint32_t>(range.begin), static_cast<std::uint32_t>(range.end)},
                                std::memory_order_relaxed);
  }
  running_.store(job.workers - 1, std::memory_order_relaxed);
  const auto begin = Clock::now();
  publish(job);
  run_part(0);
  run_unbegun(job.workers);
  await_others(begin);

  std::exception_ptr first;
  for (int worker = job.workers; worker-- > 0;) {
    if (workers_[worker].error) first = std::exchange(workers_[worker].error, nullptr);
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace rlx
