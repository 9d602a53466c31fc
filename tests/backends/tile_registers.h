#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "backends/cpu/gemm/micro_kernels/matrix_tile.h"

namespace rlx::test {

/// AMX's tile registers in software, each operation as Intel's manual writes it down (SDM, volume 2: LDTILECFG, TILELOADD, TILESTORED,
/// TDPBF16PS, TDPBSSD). What the processor answers with an exception throws std::domain_error; so does a start_row, as nothing here is
/// restarted.
class TileRegisters {
 public:
  static constexpr int count = 8, most_rows = 16, most_row_bytes = 64;

  bool configured() const { return configured_; }

  /// Reads 64 bytes. Palette 0 is a release.
  void ldtilecfg(const void* memory) {
    std::array<std::uint8_t, 64> bytes{};
    std::memcpy(bytes.data(), memory, bytes.size());
    if (bytes[0] == 0) return tilerelease();
    if (bytes[0] > 1) throw std::domain_error("LDTILECFG: palette " + std::to_string(bytes[0]));
    for (std::size_t i = 1; i < bytes.size(); ++i)
      if ((i < 16 || (i >= 32 && i < 48) || i >= 56) && bytes[i] != 0)
        throw std::domain_error("LDTILECFG: reserved byte " + std::to_string(i));
    std::array<Tile, count> tiles{};
    for (std::size_t n = 0; n < count; ++n) {
      tiles[n].row_bytes = bytes[16 + 2 * n] + 256 * bytes[17 + 2 * n];
      tiles[n].rows = bytes[48 + n];
      const bool too_large = tiles[n].row_bytes > most_row_bytes || tiles[n].rows > most_rows;
      if (too_large || (tiles[n].rows == 0) != (tiles[n].row_bytes == 0))
        throw std::domain_error("LDTILECFG: shape of tile " + std::to_string(n));
    }
    tiles_ = tiles;
    configured_ = true;
  }

  void tilerelease() { *this = {}; }

  void tilezero(int tile) { used(tile).data = {}; }

  void tileloadd(int tile, const void* from, std::int64_t row_stride) {
    Tile& to = used(tile);
    to.data = {};
    for (int row = 0; row < to.rows; ++row)
      std::memcpy(to.data[at(row)].data(), static_cast<const std::byte*>(from) + row * row_stride, at(to.row_bytes));
  }

  void tilestored(int tile, void* to, std::int64_t row_stride) {
    const Tile& from = used(tile);
    for (int row = 0; row < from.rows; ++row)
      std::memcpy(static_cast<std::byte*>(to) + row * row_stride, from.data[at(row)].data(), at(from.row_bytes));
  }

  void tdpbf16ps(int dest, int left, int right) {
    check_product(dest, left, right);
    Tile& c = used(dest);
    const std::vector<float> a = floats(used(left)), b = floats(used(right));
    constexpr int row = most_row_bytes / 2;
    for (int m = 0; m < c.rows; ++m) {
      for (int n = 0; n < c.row_bytes / 4; ++n) {
        float even = 0, odd = 0;
        for (int k = 0; k < used(right).rows; ++k) {
          even = multiply_add(a[at(m * row + 2 * k)], b[at(k * row + 2 * n)], even);
          odd = multiply_add(a[at(m * row + 2 * k + 1)], b[at(k * row + 2 * n + 1)], odd);
        }
        c.put(m, n, add(c.get<float>(m, n), add(even, odd)));
      }
    }
  }

  void tdpbssd(int dest, int left, int right) {
    check_product(dest, left, right);
    Tile& c = used(dest);
    const Tile &a = used(left), &b = used(right);
    for (int m = 0; m < c.rows; ++m) {
      for (int n = 0; n < c.row_bytes / 4; ++n) {
        auto sum = c.get<std::uint32_t>(m, n);  // modulo 2^32
        for (int k = 0; k < a.row_bytes / 4; ++k)
          for (int i = 0; i < 4; ++i) {
            const int product = a.get<std::int8_t>(m, 4 * k + i) * b.get<std::int8_t>(k, 4 * n + i);
            sum += static_cast<std::uint32_t>(product);
          }
        c.put(m, n, sum);
      }
    }
  }

  /// a * b + c as f32, rounded once to the nearest even; denormal operands and results are zeros of their sign.
  static float multiply_add(float a, float b, float c) {
    constexpr float least = std::numeric_limits<float>::min();
    a = without_denormal(a), b = without_denormal(b), c = without_denormal(c);
    const float sum = std::fma(a, b, c);
    if (sum == 0 || !(std::abs(sum) <= least)) return sum;
    // What would be denormal before its last digits are rounded away is denormal: ask where there is room below.
    constexpr float room = 0x1p60F;
    (std::abs(a) < 1 ? a : b) *= room;
    return std::abs(std::fma(a, b, c * room)) < least * room ? std::copysign(0.0F, sum) : sum;
  }

 private:
  struct Tile {
    int rows = 0, row_bytes = 0;
    std::array<std::array<std::uint8_t, most_row_bytes>, most_rows> data{};

    template <class T>
    T get(int row, int index) const {
      T value;
      std::memcpy(&value, data[at(row)].data() + at(index) * sizeof(T), sizeof(T));
      return value;
    }
    template <class T>
    void put(int row, int index, T value) {
      std::memcpy(data[at(row)].data() + at(index) * sizeof(T), &value, sizeof(T));
    }
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  static float without_denormal(float x) { return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0F, x) : x; }
  static float add(float a, float b) { return multiply_add(a, 1, b); }

  /// The bf16 numbers of a tile, row by row.
  static std::vector<float> floats(const Tile& tile) {
    std::vector<float> values;
    for (const auto& row : tile.data) {
      for (std::size_t i = 0; i < row.size(); i += 2)
        values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(row[i] | row[i + 1] << 8) << 16));
    }
    return values;
  }

  Tile& used(int tile) {
    if (!configured_ || tiles_.at(at(tile)).rows == 0) throw std::domain_error("tile " + std::to_string(tile) + " is not configured");
    return tiles_[at(tile)];
  }

  void check_product(int dest, int left, int right) {
    const Tile &c = used(dest), &a = used(left), &b = used(right);
    if (dest == left || dest == right || left == right) throw std::domain_error("product: one tile twice");
    if (a.row_bytes % 4 != 0 || c.row_bytes % 4 != 0) throw std::domain_error("product: rows of half an element");
    if (a.rows != c.rows || b.row_bytes != c.row_bytes || a.row_bytes / 4 != b.rows)
      throw std::domain_error("product: shapes that do not match");
  }

  bool configured_ = false;
  std::array<Tile, count> tiles_{};
};

/// For gemm/matrix_tile.h: a set of these registers for each thread.
struct ModelTiles {
  static TileRegisters& registers() {
    thread_local TileRegisters own;
    return own;
  }

  static void configure(const cpu::TileConfig& config) { registers().ldtilecfg(&config); }
  static void release() { registers().tilerelease(); }
  template <int tile>
  static void zero() {
    registers().tilezero(tile);
  }
  template <int tile>
  static void load(const void* from, std::int64_t row_bytes) {
    registers().tileloadd(tile, from, row_bytes);
  }
  template <int tile>
  static void store(void* to, std::int64_t row_bytes) {
    registers().tilestored(tile, to, row_bytes);
  }
  template <class T, int c, int a, int b>
  static void multiply_add() {
    if constexpr (std::is_same_v<T, cpu::Bf16>) registers().tdpbf16ps(c, a, b);
    else registers().tdpbssd(c, a, b);
  }
};

/// The kernel of level amx on these registers; T is Bf16 or std::int8_t.
template <class T>
inline constexpr cpu::MicroKernel<T> model_kernel = cpu::make_matrix_tile_kernel<ModelTiles, T>();

}  // namespace rlx::test
