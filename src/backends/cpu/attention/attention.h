#pragma once
#include <cstddef>
#include <cstdint>

#include "backends/cpu/gemm/micro_kernels/panel_format.h"
#include "backends/cpu/machine/cpu_features.h"
#include "base/thread_pool.h"

namespace rlx::cpu {

struct TileProducts;

/// Keys are brought into the softmax by blocks of this many, which begin at multiples of it.
inline constexpr std::int64_t attention_key_block = 128;
/// The sums of so many keys are merged, in the order of the keys: tasks of their own compute them where few rows see many keys.
inline constexpr std::int64_t attention_key_chunk = 1024;

/// A strided operand (batch, head, row, column): element (b, h, r, c) is data[items[b] + h * head_stride + r * row_stride + c *
/// column_stride]. An axis that is repeated has stride 0. Rows of keys and values may lie in pages, of whole blocks of keys: row r is then
/// row r % page_rows of the page that begins at pages[b * item_pages + r / page_rows].
template <class T>
struct AttentionOperand {
  T* data = nullptr;
  const std::int64_t* items = nullptr;
  std::int64_t head_stride = 0, row_stride = 0, column_stride = 0;
  const std::int64_t* pages = nullptr;  // (batch, item_pages); null: there are none
  std::int64_t page_rows = 0, item_pages = 0;

  T* at(std::int64_t item, std::int64_t head, std::int64_t row) const {
    T* const of_head = data + items[item] + head * head_stride;
    if (!pages) return of_head + row * row_stride;
    return of_head + pages[item * item_pages + row / page_rows] + row % page_rows * row_stride;
  }
};

/// The factors of int8 keys or values: those of features d are in column d >> shift, and columns lie side by side.
struct RowFactors {
  AttentionOperand<const float> operand = {};
  int shift = 0;
};

/// For elements T, float or Bf16: softmax(rules(q k^T * scale)) v, with sums in f32, as the op `attention` has it; weights are rounded to
/// bf16 too where multiplies_bf16 holds. Heads of q share heads of k and v in runs of heads / kv_heads. Beside floats, keys and values may
/// be Bf16, F16 or int8 numbers, which are widened where they are read.
template <class T, class K = T>
struct AttentionArgs {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 0, keys = 0;
  std::int64_t head_size = 0;   // features of q and k
  std::int64_t value_size = 0;  // features of v and of the result

  AttentionOperand<const T> q;                // rows are queries, columns features
  AttentionOperand<const K> k, v;             // rows are keys; features must lie side by side
  RowFactors k_factors, v_factors;            // of int8
  AttentionOperand<const std::uint8_t> mask;  // rows are queries, columns keys; 0 hides; no data: no mask
  AttentionOperand<const float> bias;         // the same axes; no data: none
  const std::int32_t* positions = nullptr;    // of all queries, item by item; null: the last query and the last key meet
  /// (batch + 1): item b has the queries from first_queries[b] to first_queries[b + 1] of the positions; null: every item has `queries`.
  const std::int64_t* first_queries = nullptr;
  AttentionOperand<T> out;  // like q, with the features of v

  float scale = 1, softcap = 0;  // softcap 0: none
  bool causal = false;
  std::int64_t window = 0;  // 0: none
  bool int16 = false;       // rows may be rounded to integers of 16 bits, as the op's attribute says

  CpuLevel level = cpu_level();
  const TileProducts* tiles = nullptr;  // null: those of the level, where it has some
  std::byte* workspace = nullptr;       // attention_workspace bytes on a 64-byte boundary

  std::int64_t first_query(std::int64_t item) const { return first_queries ? first_queries[item] : item * queries; }
  std::int64_t queries_of(std::int64_t item) const { return first_query(item + 1) - first_query(item); }
  /// The last key, beside the masks, that a query of an item sees is the one at its position.
  std::int64_t position(std::int64_t item, std::int64_t query) const {
    return positions ? positions[first_query(item) + query] : keys - queries_of(item) + query;
  }
  /// Whether an item has a query for each key up to the position of its last query: it is a whole text.
  bool is_text(std::int64_t item) const { return queries_of(item) > position(item, queries_of(item) - 1); }
};

/// Whether products of Bf16 elements are done as they are. Else, where features are odd in number, and for few queries, they are widened.
bool multiplies_bf16(CpuLevel level);

/// The bytes of scratch memory for these sizes on a pool of `threads`. Reads no operand. Throws Error for sizes beyond 64 bits.
template <class T, class K>
std::size_t attention_workspace(const AttentionArgs<T, K>& args, int threads);

/// Online softmax over blocks of keys (Milakov & Gimelshein 2018; Dao et al. 2022): scores never leave the first-level cache, and blocks of
/// keys that no query of a block sees are skipped. Every row of the result is one chain of operations that depends on its own operands
/// and the sizes only: the bits are the same at any number of threads and at any place in a batch.
template <class T, class K>
void attention(const AttentionArgs<T, K>& args, ThreadPool& pool);

}  // namespace rlx::cpu
