#pragma once
#include <optional>
#include <vector>

#include "kernel/pull.h"

namespace rlx {

/// Pages of keys and values have a multiple of so many rows, so that no block of rows lies in two of them.
inline constexpr std::int64_t rows_of_pages = 128;

/// Rows that lie in pages: row r of an item is row r % rows of page table[item..., r / rows], as a gather of pages has it.
struct PageTable {
  ValueId value;  // stored, i32; an entry is clamped to 0..pages-1
  Dim offset;
  std::vector<Dim> strides;  // of the table: batch..., page
  Dim pages;
  std::int64_t rows = 0;  // of one page
  Dim stride;             // elements from page to page
};

/// A strided operand or result: element at[0], at[1], ... of the op's operand is element offset + sum of at[i] * strides[i] of `value`.
struct StridedOperand {
  ValueId value;  // stored
  Dim offset;
  std::vector<Dim> strides;
  std::optional<PageTable> pages = {};  // of keys and values: what is added for the row
};

/// Numbers that int8 keys or values are multiplied by: those of feature d are at place d >> shift of the last axis.
struct RowScales {
  StridedOperand operand;
  int shift = 0;
};

/// Keys or values with their scales, where they have some.
struct StoredRows {
  StridedOperand elements;
  std::optional<RowScales> scales;
};

/// The value as a view of a stored one of the same type of elements. Nothing where its elements are computed, or no such view.
std::optional<StridedOperand> strided(const Graph& graph, ValueId value, const Puller::IsStored& is_stored);

/// Keys or values (batch..., head, row, feature), features side by side: views of stored values, whose elements the kernel widens. Nothing
/// where they are not such.
std::optional<StoredRows> stored_rows(const Graph& graph, ValueId value, const Puller::IsStored& is_stored);

/// Where each element of the op's result lies in the last value of the region; nothing when that is not linear.
std::optional<StridedOperand> destination(const Graph& graph, const std::vector<ValueId>& region);

}  // namespace rlx
