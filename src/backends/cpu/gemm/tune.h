#pragma once
#include <cstdint>
#include <string>

#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {

/// What gemm does with these arguments unless it is told otherwise.
template <class T>
ProductChoice usual_choice(const GemmArgs<T>& args, int threads);

/// Whether gemm can do so. Expects sizes of 1 or more.
template <class T>
bool is_possible(const ProductChoice& choice, const GemmArgs<T>& args);

/// The fastest of the usual choice and of what lies around it, found by running the product with each: more and fewer blocks of rows,
/// columns and depth, more threads, the product transposed. Where the gain is within the noise of timing it is the usual one. `args` are
/// of sizes of 1 and more; their epilogue is not called, as one may not run twice: what it would take is copied to memory of its own.
template <class T>
ProductChoice fastest_choice(const GemmArgs<T>& args, ThreadPool& pool);

/// "2 x 3 blocks, 1 pass, grain 1", and ", transposed".
std::string to_string(const ProductChoice& choice, std::int64_t units);

}  // namespace rlx::cpu
