#include "backends/cpu/machine/cpu_features.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "rlx/error.h"

#ifdef __x86_64__
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#else
#include <fstream>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace rlx::cpu {
namespace {

#ifdef __x86_64__

struct Cpuid {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

/// Zeros for a leaf that the CPU does not have.
Cpuid cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) {
  Cpuid r;
  if (!__get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d)) return {};
  return r;
}

constexpr bool bit(std::uint64_t word, int at) { return (word >> at & 1) != 0; }

/// The register state that the operating system saves: bits 1, 2 for AVX, 5..7 for AVX-512, 17, 18 for AMX.
std::uint64_t saved_state(const Cpuid& basic) {
  if (!bit(basic.c, 27)) return 0;  // OSXSAVE: without it XGETBV is an illegal instruction
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

/// Asks for the tile registers. The system then makes signal frames large enough for them, which is why it refuses a process with a thread
/// whose own signal stack is too small.
bool ask_for_tiles() {
#ifdef __linux__
  constexpr int request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

void detect_instructions(CpuFeatures& f) {
  const Cpuid basic = cpuid(1), extended = cpuid(7), more = cpuid(7, 1);
  const std::uint64_t saved = saved_state(basic);
  const bool avx = (saved & 0x6) == 0x6 && bit(basic.c, 28);
  const bool avx512 = avx && (saved & 0xe0) == 0xe0 && bit(extended.b, 16);
  f.avx2 = avx && bit(extended.b, 5);
  f.fma = avx && bit(basic.c, 12);
  f.f16c = avx && bit(basic.c, 29);
  f.avx_vnni = avx && bit(more.a, 4);
  f.avx512f = avx512;
  f.avx512dq = avx512 && bit(extended.b, 17);
  f.avx512bw = avx512 && bit(extended.b, 30);
  f.avx512vl = avx512 && bit(extended.b, 31);
  f.avx512_vnni = avx512 && bit(extended.c, 11);
  f.avx512_bf16 = avx512 && bit(more.a, 5);
  f.avx512_fp16 = avx512 && bit(extended.d, 23);
  f.amx_tile = bit(extended.d, 24);
  f.amx_bf16 = bit(extended.d, 22);
  f.amx_int8 = bit(extended.d, 25);
  f.tiles_allowed = f.amx_tile && (saved & 0x60000) == 0x60000 && ask_for_tiles();
}

/// Intel's leaf 4 and AMD's 0x8000001d have one layout. The other vendor's leaf reads as "no cache".
void detect_caches(CpuFeatures& f) {
  for (std::uint32_t leaf : {4u, 0x8000001du}) {
    for (std::uint32_t index = 0; index < 8; ++index) {
      const Cpuid r = cpuid(leaf, index);
      const std::uint32_t type = r.a & 31;  // 0 ends the list; 1 data, 2 instructions, 3 both
      if (type == 0) break;
      if (type == 2) continue;
      const std::int64_t ways = (r.b >> 22) + 1, partitions = (r.b >> 12 & 1023) + 1, line = (r.b & 4095) + 1;
      const std::int64_t bytes = ways * partitions * line * (std::int64_t{r.c} + 1);
      const std::uint32_t level = r.a >> 5 & 7;
      if (level == 1) f.l1_bytes = bytes;
      if (level == 2) f.l2_bytes = bytes;
      if (level == 3) f.l3_bytes = bytes;
    }
  }
}

std::string detect_name() {
  std::array<char, 49> text{};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Cpuid r = cpuid(0x80000002u + i);
    std::memcpy(&text[16 * i], &r, sizeof r);
  }
  std::string name = text.data();
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name.empty() ? "unnamed x86-64" : name;
}

/// Registers that hold the number of a core or the size of what it saves are left out.
std::string detect_identity() {
  const Cpuid maker = cpuid(0), basic = cpuid(1), extended = cpuid(7), more = cpuid(7, 1), amd = cpuid(0x80000001);
  const std::uint64_t words[] = {maker.b,
                                 basic.a,
                                 basic.c,
                                 basic.d,
                                 extended.b,
                                 extended.c,
                                 extended.d,
                                 more.a,
                                 more.b,
                                 more.c,
                                 more.d,
                                 amd.c,
                                 amd.d,
                                 cpuid(0xd, 1).a,
                                 cpuid(0x14).b,
                                 cpuid(0x19).b,
                                 cpuid(0x1e, 1).a,
                                 cpuid(0x24).b,
                                 cpuid(0x80000008).b,
                                 saved_state(basic)};
  return fmt::format("{:x}", fmt::join(words, " "));
}

#else

void detect_instructions([[maybe_unused]] CpuFeatures& f) {
#if defined(__aarch64__) && defined(__linux__)
  const unsigned long set = getauxval(AT_HWCAP), more = getauxval(AT_HWCAP2);
  f.neon = (set & HWCAP_ASIMD) != 0;
  f.neon_dot = (set & HWCAP_ASIMDDP) != 0;
  f.neon_bf16 = (more & HWCAP2_BF16) != 0;
  f.neon_i8mm = (more & HWCAP2_I8MM) != 0;
#elif defined(__ARM_NEON)
  f.neon = true;
#endif
}

/// From Linux, where there is one: instructions that tell are for the system only.
void detect_caches(CpuFeatures& f) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    int level = 0;
    std::string type;
    std::int64_t kilobytes = 0;
    std::ifstream(folder + "level") >> level;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> kilobytes;  // "512K"
    if (type == "Instruction" || kilobytes <= 0) continue;
    if (level == 1) f.l1_bytes = kilobytes << 10;
    if (level == 2) f.l2_bytes = kilobytes << 10;
    if (level == 3) f.l3_bytes = kilobytes << 10;
  }
}

std::string detect_name() { return "unnamed CPU"; }

/// What Linux says of each kind of core.
std::string detect_identity() {
  std::string all;
  std::ifstream cores("/proc/cpuinfo");
  for (std::string line; std::getline(cores, line);)
    if ((line.starts_with("CPU ") || line.starts_with("Features")) && all.find(line) == std::string::npos) all += line + "\n";
  return all;
}

#endif

bool has_avx512(const CpuFeatures& f) { return f.avx512f && f.avx512bw && f.avx512dq && f.avx512vl; }

/// True where nothing but the system's consent is missing for level amx.
bool misses_tiles(const CpuFeatures& f) {
  return best_level(f) == CpuLevel::avx512 && f.amx_tile && f.amx_bf16 && f.amx_int8 && !f.tiles_allowed;
}

CpuFeatures detect() {
  CpuFeatures features;
  features.name = detect_name();
  detect_instructions(features);
  detect_caches(features);
  return features;
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

std::string cpu_identity() { return detect_identity(); }

std::string describe(const CpuFeatures& f, CpuLevel level) {
  std::string text = fmt::format("{}, {}", f.name, to_string(level));
  if (level != best_level(f)) text += fmt::format(" (RLX_CPU; the best is {})", to_string(best_level(f)));
  if (misses_tiles(f)) text += " (the system refuses AMX's tile registers)";
  const std::pair<bool, std::string_view> extras[] = {
      {f.f16c, "f16c"},         {f.avx_vnni, "avx_vnni"}, {f.avx512_vnni, "vnni"}, {f.avx512_bf16, "bf16"}, {f.avx512_fp16, "fp16"},
      {f.amx_bf16, "amx_bf16"}, {f.amx_int8, "amx_int8"}, {f.neon_dot, "dotprod"}, {f.neon_bf16, "bf16"},   {f.neon_i8mm, "i8mm"}};
  for (const auto& [has, word] : extras) {
    if (has) text += fmt::format(" {}", word);
  }
  return text + fmt::format(", L1 {} KiB, L2 {} KiB, L3 {} KiB", f.l1_bytes >> 10, f.l2_bytes >> 10, f.l3_bytes >> 10);
}

std::string_view to_string(CpuLevel level) {
  switch (level) {
    case CpuLevel::portable: return "portable";
    case CpuLevel::neon: return "neon";
    case CpuLevel::avx2: return "avx2";
    case CpuLevel::avx512: return "avx512";
    case CpuLevel::amx: return "amx";
  }
  fail_internal("cpu level {} has no name", static_cast<int>(level));
}

std::vector<CpuLevel> allowed_levels(const CpuFeatures& f) {
  std::vector<CpuLevel> levels{CpuLevel::portable};
  if (f.neon) levels.push_back(CpuLevel::neon);
  if (!f.avx2 || !f.fma) return levels;
  levels.push_back(CpuLevel::avx2);
  if (!has_avx512(f)) return levels;
  levels.push_back(CpuLevel::avx512);
  if (f.amx_tile && f.amx_bf16 && f.amx_int8 && f.tiles_allowed) levels.push_back(CpuLevel::amx);
  return levels;
}

CpuLevel best_level(const CpuFeatures& features) { return allowed_levels(features).back(); }

CpuLevel choose_level(const CpuFeatures& features, std::optional<std::string_view> word, std::string_view asked_by) {
  if (!word) return best_level(features);
  std::string allowed;
  for (CpuLevel level : allowed_levels(features)) {
    if (to_string(level) == *word) return level;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", to_string(level));
  }
  if (misses_tiles(features) && *word == to_string(CpuLevel::amx)) {
    fail(
        "{}: 'amx' needs tile registers, which this CPU has and the system refuses: run on Linux 5.16 or later, outside of sandboxes "
        "that forbid arch_prctl, and without small alternate signal stacks (allowed as it is: {})",
        asked_by, allowed);
  }
  fail("{}: '{}' is not a level of this CPU, {} (allowed: {})", asked_by, *word, features.name, allowed);
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const char* word = std::getenv("RLX_CPU");
    return choose_level(cpu_features(), word && *word ? std::optional<std::string_view>(word) : std::nullopt);
  }();
  return level;
}

}  // namespace rlx::cpu
