#pragma once

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

/// Denormals are numbers like others while it lives, on the thread that made it.
class KeepDenormals {
 public:
  KeepDenormals();
  ~KeepDenormals();
  KeepDenormals(const KeepDenormals&) = delete;
  KeepDenormals& operator=(const KeepDenormals&) = delete;

 private:
  unsigned saved_;
};

/// Makes the current thread flush denormals for good, as every worker of a pool that runs kernels does.
void flush_denormals();

}  // namespace rlx::cpu
