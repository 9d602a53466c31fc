#pragma once
#include <type_traits>

#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {

/// Whether units of a packed B are elements, so that it can be read as the left operand.
template <class T>
inline constexpr bool can_transpose = std::is_same_v<T, Packed<T>>;

/// Whether C has so few columns that the kernel's panels would be mostly empty, while its rows fill some.
template <class T>
bool worth_transposing(const GemmArgs<T>& args);

/// The product C^T = B^T A^T, whose blocks go where those of C = A B do. Every element is the same chain of multiply-adds, so the bits are
/// the same. Keeps a reference to the arguments it is made of.
template <class T>
class Transposed {
 public:
  explicit Transposed(const GemmArgs<T>& given);
  Transposed(const Transposed&) = delete;
  Transposed& operator=(const Transposed&) = delete;

  const GemmArgs<T>& args() const { return args_; }

 private:
  void finish(Sum<T>* tile, std::int64_t stride, std::int64_t batch, std::int64_t row0, std::int64_t rows, std::int64_t col0,
              std::int64_t cols) const;

  const GemmArgs<T>& given_;
  GemmArgs<T> args_;
};

}  // namespace rlx::cpu
