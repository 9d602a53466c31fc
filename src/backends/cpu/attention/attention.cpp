#include "backends/cpu/attention/attention.h"

#include <algorithm>
#include <initializer_list>

#include "backends/cpu/attention/query_block.h"
#include "backends/cpu/gemm/blocking.h"
#include "base/checked.h"
#include "rlx/error.h"

namespace rlx::cpu {
namespace {

/// Keys of one task where few rows see many keys.
constexpr std::int64_t key_chunk = 1024;

/// How the scores are cut. The rows of one head of k, (head of its group, query), are one axis. The keys are cut where there is one block
/// of rows, as when a text is continued, and only by their number: the threads must not change the bits.
struct ScoreBlocks {
  template <class T>
  explicit ScoreBlocks(const AttentionArgs<T>& args)
      : lanes(attention_kernel(args.level).vector_lanes * AttentionKernel::most_vectors),
        rows(args.heads / args.kv_heads * args.queries),
        blocks(divide_up(rows, lanes)),
        chunks(blocks == 1 ? std::max<std::int64_t>(divide_up(args.keys, key_chunk), 1) : 1),
        heads(args.batch * args.kv_heads) {}
  std::int64_t lanes, rows, blocks, chunks, heads;
};

/// To share a loop costs about a microsecond; what one core multiplies in that time.
constexpr double multiply_adds_per_share = 50e3;

template <class T>
std::int64_t grain_of(const AttentionArgs<T>& args, const ScoreBlocks& cut) {
  const double work = static_cast<double>(cut.lanes) * static_cast<double>(divide_up(args.keys, cut.chunks)) *
                      static_cast<double>(args.head_size + args.value_size);
  return static_cast<std::int64_t>(multiply_adds_per_share / std::max(work, 1.0)) + 1;
}

/// Every task is a block of rows that sees all keys.
template <class T>
void attend_rows(const AttentionArgs<T>& args, const ScoreBlocks& cut, ThreadPool& pool) {
  pool.parallel_for(cut.heads * cut.blocks, grain_of(args, cut), [&](std::int64_t begin, std::int64_t end, int worker) {
    QueryBlock<T> block(args, args.workspace + static_cast<std::size_t>(worker) * query_block_bytes(args));
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t head = task / cut.blocks, turn = task % cut.blocks;
      // Under a causal mask late blocks see more keys: they take turns with early ones, so that equal parts are equal work.
      const std::int64_t index = turn % 2 == 0 ? turn / 2 : cut.blocks - 1 - turn / 2, row0 = index * cut.lanes;
      block.begin(head / args.kv_heads, head % args.kv_heads, row0, std::min(cut.lanes, cut.rows - row0));
      block.attend({0, args.keys});
      block.store();
    }
  });
}

/// Every task is a chunk of the keys, for all rows of a head of k; then the chunks of each head are merged, in their order.
template <class T>
void attend_chunks(const AttentionArgs<T>& args, const ScoreBlocks& cut, ThreadPool& pool) {
  const auto block_of = [&](int worker) {
    return QueryBlock<T>(args, args.workspace + static_cast<std::size_t>(worker) * query_block_bytes(args));
  };
  auto* const partials = reinterpret_cast<float*>(args.workspace + static_cast<std::size_t>(pool.size()) * query_block_bytes(args));
  const std::int64_t elements = partial_elements(args);
  pool.parallel_for(cut.heads * cut.chunks, grain_of(args, cut), [&](std::int64_t begin, std::int64_t end, int worker) {
    QueryBlock<T> block = block_of(worker);
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t head = task / cut.chunks, key = task % cut.chunks * key_chunk;
      block.begin(head / args.kv_heads, head % args.kv_heads, 0, cut.rows);
      block.attend({key, std::min(key + key_chunk, args.keys)});
      block.save(partials + task * elements);
    }
  });
  pool.parallel_for(cut.heads, cut.heads, [&](std::int64_t begin, std::int64_t end, int worker) {
    QueryBlock<T> block = block_of(worker);
    for (std::int64_t head = begin; head < end; ++head) {
      block.begin(head / args.kv_heads, head % args.kv_heads, 0, cut.rows);
      for (std::int64_t chunk = 0; chunk < cut.chunks; ++chunk) block.merge(partials + (head * cut.chunks + chunk) * elements);
      block.store();
    }
  });
}

}  // namespace

bool multiplies_bf16(CpuLevel level) { return pair_products(level) != nullptr; }

template <class T>
std::size_t attention_workspace(const AttentionArgs<T>& args, int threads) {
  if (args.batch == 0 || args.heads == 0 || args.queries == 0) return 0;
  const ScoreBlocks cut(args);
  const auto own = checked_mul(query_block_bytes(args), static_cast<std::size_t>(threads));
  const auto partials = checked_product(
      std::initializer_list<std::int64_t>{cut.chunks > 1 ? cut.heads : 0, cut.chunks, partial_elements(args), sizeof(float)});
  const auto bytes = own && partials ? checked_add(*own, static_cast<std::size_t>(*partials)) : std::nullopt;
  if (!bytes) fail("attention: the workspace of {} threads takes more bytes than 64 bits count", threads);
  return *bytes;
}

template <class T>
void attention(const AttentionArgs<T>& args, ThreadPool& pool) {
  if (args.batch == 0 || args.heads == 0 || args.queries == 0) return;
  const ScoreBlocks cut(args);
  if (cut.chunks > 1) attend_chunks(args, cut, pool);
  else attend_rows(args, cut, pool);
}

template std::size_t attention_workspace(const AttentionArgs<float>&, int);
template std::size_t attention_workspace(const AttentionArgs<Bf16>&, int);
template void attention(const AttentionArgs<float>&, ThreadPool&);
template void attention(const AttentionArgs<Bf16>&, ThreadPool&);

}  // namespace rlx::cpu
