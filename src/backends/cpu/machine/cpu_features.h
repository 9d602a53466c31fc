#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::cpu {

/// What this machine's CPU can do, with the operating system's consent (the state of its registers is saved on a task switch).
/// Everything but `name` may decide which kernel runs; `name` is for reports only, as names have been seen to lie.
struct CpuFeatures {
  std::string name;

  bool avx2 = false, fma = false, f16c = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false;
  bool avx512_vnni = false, avx512_bf16 = false, avx512_fp16 = false, avx_vnni = false;
  bool amx_tile = false, amx_int8 = false, amx_bf16 = false;  // of the CPU alone: they are of use where tiles_allowed
  bool tiles_allowed = false;  // the system gave this process AMX's tile registers, for which it has to be asked
  bool neon = false, neon_dot = false, neon_bf16 = false, neon_i8mm = false;

  std::int64_t l1_bytes = 32 << 10;   // data cache of a core
  std::int64_t l2_bytes = 256 << 10;  // of a core
  std::int64_t l3_bytes = 0;          // shared; 0 when there is none or it is unknown
};

/// The instruction sets for which there are kernels; each includes those before it of its architecture: neon is that of ARM, the others are
/// of x86-64. avx512 stands for F, BW, DQ and VL; amx for tile products of bf16 numbers and of 8-bit integers, beside which everything is
/// as at avx512.
enum class CpuLevel { portable, neon, avx2, avx512, amx };

/// Detected on the first call, which also asks for the tile registers where the CPU has them, for all threads of the process.
const CpuFeatures& cpu_features();

/// All that the CPU says of its instructions and of its model, the same on each of its cores: what a compiler chooses for this machine
/// follows from it.
std::string cpu_identity();

/// One line for reports: name, the level in use, what keeps it from being higher, further instruction sets, caches.
std::string describe(const CpuFeatures& features, CpuLevel level);

std::string_view to_string(CpuLevel level);

/// The levels that `features` allow, the best last.
std::vector<CpuLevel> allowed_levels(const CpuFeatures& features);
CpuLevel best_level(const CpuFeatures& features);

/// `word`, the name of a level, when given, else the best. Throws Error for another word, for a level that the CPU lacks, and for amx where
/// the system refuses it.
/// `asked_by` names who gave the word.
CpuLevel choose_level(const CpuFeatures& features, std::optional<std::string_view> word, std::string_view asked_by = "RLX_CPU");

/// The level of what names none: choose_level of this CPU and the environment variable RLX_CPU, decided on the first call.
CpuLevel cpu_level();

}  // namespace rlx::cpu
