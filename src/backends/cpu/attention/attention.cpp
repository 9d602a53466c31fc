#include "backends/cpu/attention/attention.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <vector>

#include "backends/cpu/attention/products.h"
#include "backends/cpu/attention/query_block.h"
#include "backends/cpu/gemm/blocking.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

/// To share a loop costs about a microsecond; what one core multiplies in that time.
constexpr double multiply_adds_per_share = 50e3;

/// What a block of rows costs beside its keys, in keys.
constexpr std::int64_t keys_per_block = 16;

/// A block of rows of one head of k, and the keys that it brings in.
struct Task {
  std::int64_t item, kv_head, row0, rows;
  Range keys;
  std::int64_t partial = -1;  // where its sums are kept for a merge; -1: it stores its rows
};

/// Rows whose keys were cut.
struct Merge {
  Task rows;  // of the first chunk
  std::int64_t chunks;
};

/// How the scores are cut into tiles. The rows of one head of k, (head of its group, query), are one axis. The keys are cut where there is
/// one block of rows, or few queries, as when a text is continued.
template <class T, class K>
class Tiling {
 public:
  explicit Tiling(const AttentionArgs<T, K>& args) : args_(args), kernel_(attention_kernel(args.level)) {}

  /// The most partial sums that there may be.
  std::int64_t partials() const {
    std::int64_t cut_items = 0;
    for (std::int64_t item = 0; item < args_.batch; ++item) cut_items += is_cut(item) ? blocks_of(item) : 0;
    const std::int64_t chunks = divide_up(args_.keys, attention_key_chunk);
    const auto all = checked_product(std::initializer_list<std::int64_t>{chunks > 1 ? cut_items : 0, args_.kv_heads, chunks});
    if (!all) fail("attention: {} keys for {} heads are more sums than 64 bits count", args_.keys, args_.kv_heads);
    return *all;
  }

  void make_tasks() {
    for (std::int64_t item = 0; item < args_.batch; ++item) {
      const std::int64_t rows = rows_of(item), lanes = lanes_of(item), blocks = blocks_of(item);
      std::vector<Range> seen;
      for (std::int64_t block = 0; block < blocks; ++block)
        seen.push_back(visible(item, block * lanes, std::min(lanes, rows - block * lanes)));
      for (std::int64_t head = 0; head < args_.kv_heads; ++head)
        for (std::int64_t block = 0; block < blocks; ++block) {
          const std::int64_t row0 = block * lanes;
          const Task task{item, head, row0, std::min(lanes, rows - row0), seen[static_cast<std::size_t>(block)]};
          if (is_cut(item) && divide_up(task.keys.end, attention_key_chunk) - task.keys.begin / attention_key_chunk > 1) add_chunks(task);
          else add(task);
        }
    }
  }

  /// Calls `body(tasks, worker)` for shares of the tasks that are about the same work.
  template <class Body>
  void share(ThreadPool& pool, const Body& body) const {
    const double work = work_ * static_cast<double>(kernel_.vector_lanes) * static_cast<double>(args_.head_size + args_.value_size);
    const auto parts = static_cast<std::int64_t>(std::clamp(work / multiply_adds_per_share, 1.0, static_cast<double>(pool.size())));
    const auto begin_of = [&](std::int64_t part) {
      return std::ranges::lower_bound(middles_, work_ * static_cast<double>(part) / static_cast<double>(parts)) - middles_.begin();
    };
    pool.parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      body(std::span(tasks_).subspan(static_cast<std::size_t>(begin_of(begin)), static_cast<std::size_t>(begin_of(end) - begin_of(begin))),
           worker);
    });
  }

  const std::vector<Merge>& merges() const { return merges_; }

 private:
  std::int64_t lanes_of(std::int64_t item) const {
    return is_few(args_, item) ? kernel_.few : kernel_.vector_lanes * AttentionKernel::most_vectors;
  }
  bool is_cut(std::int64_t item) const { return args_.queries_of(item) <= most_few_queries || blocks_of(item) == 1; }
  std::int64_t rows_of(std::int64_t item) const { return args_.heads / args_.kv_heads * args_.queries_of(item); }
  std::int64_t blocks_of(std::int64_t item) const { return divide_up(rows_of(item), lanes_of(item)); }

  /// The keys from the first to the last that one of the rows sees.
  Range visible(std::int64_t item, std::int64_t row0, std::int64_t rows) const {
    if (!args_.causal && args_.window == 0) return {0, args_.keys};
    Range all{args_.keys, 0};
    for (std::int64_t row = row0; row < row0 + rows; ++row) {
      const std::int64_t position = args_.position(item, row % args_.queries_of(item));
      all.begin = std::min(all.begin, args_.window > 0 ? std::max<std::int64_t>(position - args_.window + 1, 0) : 0);
      all.end = std::max(all.end, std::min(position + 1, args_.keys));
    }
    return all.begin < all.end ? all : Range{0, 0};
  }

  void add(const Task& task) {
    const auto cost = static_cast<double>(divide_up(task.rows, kernel_.vector_lanes) * (task.keys.size() + keys_per_block));
    tasks_.push_back(task);
    middles_.push_back(work_ + cost / 2);
    work_ += cost;
  }

  void add_chunks(Task task) {
    const std::int64_t first = task.keys.begin / attention_key_chunk, end = divide_up(task.keys.end, attention_key_chunk);
    const Range all = task.keys;
    merges_.push_back({task, end - first});
    merges_.back().rows.partial = partials_;
    for (std::int64_t chunk = first; chunk < end; ++chunk) {
      task.keys = {std::max(chunk * attention_key_chunk, all.begin), std::min((chunk + 1) * attention_key_chunk, all.end)};
      task.partial = partials_++;
      add(task);
    }
  }

  const AttentionArgs<T, K>& args_;
  const AttentionKernel& kernel_;
  std::vector<Task> tasks_;
  std::vector<double> middles_;  // of each task, in the work of all
  std::vector<Merge> merges_;
  double work_ = 0;
  std::int64_t partials_ = 0;
};

/// Blocks of queries that meet each block of keys in turn, so that its rows are prepared once for all: as many as five eighths of a
/// second-level cache hold. Where rows are taken as they lie each goes by itself.
template <class T, class K>
std::int64_t blocks_together(const AttentionArgs<T, K>& args) {
  // Rounding then takes a fortieth of the products' time, and pairing a four-hundredth. 512 queries of 8 heads are 4 times as many blocks.
  constexpr std::int64_t most = 32;
  if (!shares_rows(args)) return 1;
  return std::clamp<std::int64_t>(cpu_features().l2_bytes / 8 * 5 / static_cast<std::int64_t>(query_block_bytes(args).own), 1, most);
}

/// Scratch memory of a worker. Throws Error for sizes beyond 64 bits.
template <class T, class K>
std::size_t worker_bytes(const AttentionArgs<T, K>& args) {
  const QueryBlockBytes bytes = query_block_bytes(args);
  const auto block = checked_add(bytes.own, bytes.before);
  const auto own = block ? checked_mul(*block, static_cast<std::size_t>(blocks_together(args))) : std::nullopt;
  const auto all = own ? checked_add(*own, bytes.shared) : std::nullopt;
  if (!all) fail("attention: heads of {} and {} features take more bytes than 64 bits count", args.head_size, args.value_size);
  return *all;
}

/// Runs tasks on scratch memory of its own.
template <class T, class K>
class Worker {
 public:
  /// `partials`: of all tasks.
  Worker(const AttentionArgs<T, K>& args, std::byte* workspace, float* partials)
      : args_(args), workspace_(workspace), partials_(partials), elements_(partial_elements(args)), bytes_(query_block_bytes(args)) {
    add_block();
  }

  void run(std::span<const Task> tasks) {
    while (!tasks.empty()) {
      const auto first = tasks.first(count_together(tasks));
      while (blocks_.size() < first.size()) add_block();
      for (std::size_t i = 0; i < first.size(); ++i) blocks_[i].begin(first[i].item, first[i].kv_head, first[i].row0, first[i].rows);
      attend(first);
      for (std::size_t i = 0; i < first.size(); ++i) {
        if (first[i].partial < 0) blocks_[i].store();
        else blocks_[i].save(partials_ + first[i].partial * elements_);
      }
      tasks = tasks.subspan(first.size());
    }
  }

  /// In the order of the keys.
  void run(const Merge& merge) {
    QueryBlock<T, K>& block = blocks_.front();
    block.begin(merge.rows.item, merge.rows.kv_head, merge.rows.row0, merge.rows.rows);
    for (std::int64_t chunk = 0; chunk < merge.chunks; ++chunk) block.merge(partials_ + (merge.rows.partial + chunk) * elements_);
    block.store();
  }

 private:
  /// The first tasks that are of one head of k.
  std::size_t count_together(std::span<const Task> tasks) const {
    const Task& first = tasks.front();
    std::size_t count = 1;
    const auto most = first.partial < 0 ? std::min(tasks.size(), static_cast<std::size_t>(blocks_together(args_))) : 1;
    while (count < most && tasks[count].item == first.item && tasks[count].kv_head == first.kv_head) ++count;
    return count;
  }

  void add_block() { blocks_.emplace_back(args_, workspace_, workspace_ + bytes_.shared + blocks_.size() * (bytes_.own + bytes_.before)); }

  void attend(std::span<const Task> tasks) {
    if constexpr (!std::is_same_v<K, float>)
      if (blocks_.front().takes_rows()) return attend_shared(tasks);
    for (std::size_t i = 0; i < tasks.size(); ++i) blocks_[i].attend(tasks[i].keys);
  }

  /// The first task has more rows than few; the last may not.
  void attend_shared(std::span<const Task> tasks) {
    SharedRows<T, K> rows(args_, blocks_.front().room_for_rows());
    Range all = tasks.front().keys;
    for (const Task& task : tasks) all = {std::min(all.begin, task.keys.begin), std::max(all.end, task.keys.end)};
    for (Range keys{all.begin / 2 * 2, 0}; keys.begin < all.end; keys.begin = keys.end) {
      keys.end = std::min((keys.begin / attention_key_block + 1) * attention_key_block, all.end);
      rows.load(tasks.front().item, tasks.front().kv_head, keys);
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        const Range own{std::max(keys.begin, tasks[i].keys.begin), std::min(keys.end, tasks[i].keys.end)};
        if (blocks_[i].takes_rows()) blocks_[i].attend(own, rows);
        else blocks_[i].attend(own);
      }
    }
  }

  const AttentionArgs<T, K>& args_;
  std::byte* workspace_;
  float* partials_;
  std::int64_t elements_;
  QueryBlockBytes bytes_;
  std::vector<QueryBlock<T, K>> blocks_;
};

}  // namespace

bool multiplies_bf16(CpuLevel level) { return pair_products(level) != nullptr; }

template <class T, class K>
std::size_t attention_workspace(const AttentionArgs<T, K>& args, int threads) {
  if (args.batch == 0 || args.heads == 0 || args.queries == 0) return 0;
  const auto own = checked_mul(worker_bytes(args), static_cast<std::size_t>(threads));
  const auto partials =
      checked_product(std::initializer_list<std::int64_t>{Tiling<T, K>(args).partials(), partial_elements(args), sizeof(float)});
  const auto bytes = own && partials ? checked_add(*own, static_cast<std::size_t>(*partials)) : std::nullopt;
  if (!bytes) fail("attention: the workspace of {} threads takes more bytes than 64 bits count", threads);
  return *bytes;
}

template <class T, class K>
void attention(const AttentionArgs<T, K>& args, ThreadPool& pool) {
  if (args.batch == 0 || args.heads == 0 || args.queries == 0) return;
  const std::size_t bytes = worker_bytes(args);
  auto* const partials = reinterpret_cast<float*>(args.workspace + static_cast<std::size_t>(pool.size()) * bytes);
  const auto worker_at = [&](int worker) {
    return Worker<T, K>(args, args.workspace + static_cast<std::size_t>(worker) * bytes, partials);
  };
  Tiling<T, K> tiling(args);
  tiling.make_tasks();
  tiling.share(pool, [&](std::span<const Task> tasks, int worker) { worker_at(worker).run(tasks); });
  const auto merges = static_cast<std::int64_t>(tiling.merges().size());
  pool.parallel_for(merges, 8, [&](std::int64_t begin, std::int64_t end, int index) {
    Worker<T, K> worker = worker_at(index);
    for (std::int64_t merge = begin; merge < end; ++merge) worker.run(tiling.merges()[static_cast<std::size_t>(merge)]);
  });
}

template std::size_t attention_workspace(const AttentionArgs<float>&, int);
template std::size_t attention_workspace(const AttentionArgs<Bf16>&, int);
template std::size_t attention_workspace(const AttentionArgs<float, Bf16>&, int);
template std::size_t attention_workspace(const AttentionArgs<float, F16>&, int);
template std::size_t attention_workspace(const AttentionArgs<float, std::int8_t>&, int);
template void attention(const AttentionArgs<float>&, ThreadPool&);
template void attention(const AttentionArgs<Bf16>&, ThreadPool&);
template void attention(const AttentionArgs<float, Bf16>&, ThreadPool&);
template void attention(const AttentionArgs<float, F16>&, ThreadPool&);
template void attention(const AttentionArgs<float, std::int8_t>&, ThreadPool&);

}  // namespace rlx::cpu
