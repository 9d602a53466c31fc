#include "backends/cpu/backend.h"

#include "backends/cpu/claims.h"
#include "backends/cpu/compiler.h"
#include "backends/cpu/gemm/micro_kernels/micro_kernel.h"
#include "backends/cpu/jit.h"
#include "backends/cpu/peaks/peaks.h"
#include "base/cpu_count.h"

namespace rlx::cpu {
namespace {

VectorMasks masks_of(CpuLevel level) {
  if (level >= CpuLevel::avx512) return VectorMasks::all;
  return level == CpuLevel::avx2 ? VectorMasks::last : VectorMasks::none;
}

std::int64_t past_caches_bytes() {
  constexpr std::int64_t usual = 32 << 20;  // where the size is unknown
  return cpu_features().l3_bytes > 0 ? cpu_features().l3_bytes : usual;
}

KernelText print(const Kernel& kernel, const Caps& caps) { return emit_llvm(kernel, caps.masks); }

struct Cpu : Backend {
  std::string name() const override { return "cpu"; }
  std::string description() const override { return fmt::format("{}, {} threads", describe(cpu_features(), cpu_level()), granted_cpus()); }
  DeviceFigures measure() const override {
    constexpr double budget = 0.2;
    ThreadPool pool(granted_cpus());
    DeviceFigures figures;
    figures.flops = compute_peak(pool, "f32", budget);
    figures.bytes = read_bandwidth(pool, bytes_beyond_caches(pool.size()), budget);
    figures.launch = region_seconds(pool, 0, budget);
    return figures;
  }
  TargetDevice target(const SessionOptions& options) const override {
    return target_of(options.cpu_level.empty() ? cpu_level() : choose_level(cpu_features(), options.cpu_level, "session: cpu_level"),
                     options.claims);
  }
  std::unique_ptr<HostCode> host_code(const TargetDevice& target, const SessionOptions& options, int threads) const override {
    return open_jit(target, options, threads);
  }
};

}  // namespace

TargetDevice target_of(CpuLevel level, bool with_claims) {
  Caps caps{{f32, f64, i8}, masks_of(level), past_caches_bytes()};
  if (has_micro_kernel<Bf16>(level)) caps.multiplied.push_back(bf16);
  return {"cpu", compiler_flags(level), static_cast<int>(level), std::move(caps), print, claims(with_claims), false, with_claims};
}

const Backend& backend() {
  static const Cpu cpu;
  return cpu;
}

}  // namespace rlx::cpu
