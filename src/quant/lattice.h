#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "quant/search_lanes.h"
#include "quant/small_blocks.h"

// The values that codes stand for, before scales: what searches choose from.

namespace rlx::quant {

/// The integers from `low` to `high`; the code of `low` is 0.
template <int low, int high>
struct Integers {
  static constexpr float lowest = low, highest = high;

  static Lanes value(Lanes at) { return nearest(smaller(larger(at, all(lowest)), all(highest))); }
  static Lanes code(Lanes at) { return value(at) - lowest; }
};

/// Lattices that are a table of rising values, `Table::values`: how many borders between neighbours lie below, and the value there.
template <class Table>
struct Rising {
  template <std::size_t i>
  static Lanes beyond(Lanes at, float step) {
    constexpr float border = (Table::values[i] + Table::values[i + 1]) / 2;
    return at > border ? all(step) : Lanes{};
  }
  static Lanes value(Lanes at) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return (all(Table::values[0]) + ... + beyond<i>(at, Table::values[i + 1] - Table::values[i]));
    }(std::make_index_sequence<Table::values.size() - 1>{});
  }
  static Lanes code(Lanes at) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return (Lanes{} + ... + beyond<i>(at, 1));
    }(std::make_index_sequence<Table::values.size() - 1>{});
  }
};

/// The values of IQ4_NL and IQ4_XS.
struct NonlinearCodes {
  static constexpr float lowest = nonlinear_codes.front(), highest = nonlinear_codes.back();
  static constexpr auto values = [] {
    std::array<float, 16> result{};
    std::copy(nonlinear_codes.begin(), nonlinear_codes.end(), result.begin());
    return result;
  }();

  static Lanes value(Lanes at) { return Rising<NonlinearCodes>::value(at); }
  static Lanes code(Lanes at) { return Rising<NonlinearCodes>::code(at); }
};

/// The values of MXFP4 and NVFP4: a sign and one of eight magnitudes.
struct FloatCodes {
  static constexpr float highest = e2m1_codes[7], lowest = -highest;
  static constexpr auto values = [] {
    std::array<float, 8> result{};
    std::copy_n(e2m1_codes.begin(), result.size(), result.begin());
    return result;
  }();

  static Lanes value(Lanes at) {
    const Lanes size = Rising<FloatCodes>::value(magnitude(at));
    return at < 0.0f ? -size : size;
  }
  static Lanes code(Lanes at) { return Rising<FloatCodes>::code(magnitude(at)) + (at < 0.0f ? all(8) : Lanes{}); }
};

}  // namespace rlx::quant
