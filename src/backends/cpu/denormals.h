#pragma once
#include "base/thread_pool.h"

namespace rlx::cpu {

/// Denormals are flushed to zero while it lives, operands and results, on the thread that made it. Where the CPU cannot, nothing happens.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned saved_;
};

/// Makes every worker of a pool flush denormals for good.
void flush_denormals(ThreadPool& pool);

}  // namespace rlx::cpu
