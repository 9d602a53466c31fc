#pragma once
#include <cstddef>
#include <cstdint>

namespace rlx::cpu {

/// The first `count` numbers of scratch memory, which begins behind them afterwards.
template <class Number>
Number* take(std::byte*& scratch, std::int64_t count) {
  auto* const numbers = reinterpret_cast<Number*>(scratch);
  scratch += static_cast<std::size_t>(count) * sizeof(Number);
  return numbers;
}

}  // namespace rlx::cpu
