#pragma once
#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {

/// Whether C has so few columns, and A rows that lie so, that the kernel's `few_columns` computes it.
template <class T>
bool has_few_columns(const GemmArgs<T>& args);

/// The product where has_few_columns holds. Every element is the chain of multiply-adds that it is in any product, so the bits are the
/// same.
template <class T>
void multiply_few_columns(const GemmArgs<T>& args, ThreadPool& pool);

}  // namespace rlx::cpu
