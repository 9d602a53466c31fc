#pragma once
#if defined(__x86_64__) && defined(__linux__)
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>

#include "backends/tile_registers.h"

namespace rlx::test {

/// While it lives, the AMX instructions that a CPU without AMX refuses are carried out by ModelTiles, each from its machine code. So the
/// very bytes that run on a CPU with AMX are tested elsewhere. At most one at a time; an unknown instruction ends the program.
class TileTrap {
 public:
  TileTrap() {
    struct sigaction action{};
    action.sa_sigaction = carry_out;
    action.sa_flags = SA_SIGINFO;
    count() = 0;
    sigaction(SIGILL, &action, &before_);
  }
  ~TileTrap() { sigaction(SIGILL, &before_, nullptr); }
  TileTrap(const TileTrap&) = delete;
  TileTrap& operator=(const TileTrap&) = delete;

  std::int64_t instructions() const { return count(); }

 private:
  static std::atomic<std::int64_t>& count() {
    static std::atomic<std::int64_t> instructions = 0;
    return instructions;
  }

  using Registers = greg_t*;

  static std::int64_t value_of_register(Registers registers, int number) {
    constexpr int places[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                              REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return registers[places[number]];
  }

  /// An operand in memory: the address without its index, which is the distance of rows.
  struct Memory {
    std::int64_t base = 0, index = 0;
    int length = 0;  // bytes of machine code, from the ModRM byte on
  };

  static Memory memory_of(Registers registers, const std::uint8_t* modrm, bool high_index, bool high_base) {
    const int mode = modrm[0] >> 6, low = modrm[0] & 7;
    Memory memory{.length = 1};
    int base = low;
    if (low == 4) {
      const int sib = modrm[memory.length++], index = (sib >> 3 & 7) + 8 * high_index;
      base = sib & 7;
      if (index != 4) memory.index = value_of_register(registers, index) << (sib >> 6);
    }
    const bool from_code = mode == 0 && low == 5;  // the address counts from the next instruction
    if (mode == 0 && base == 5 && !from_code) refuse("an address without a base");
    std::int32_t distance = 0;
    if (mode == 1) distance = static_cast<std::int8_t>(modrm[memory.length]);
    if (mode == 2 || from_code) std::memcpy(&distance, modrm + memory.length, 4);
    memory.length += mode == 1 ? 1 : mode == 2 || from_code ? 4 : 0;
    memory.base = from_code ? reinterpret_cast<std::int64_t>(modrm + memory.length) : value_of_register(registers, base + 8 * high_base);
    memory.base += distance;
    return memory;
  }

  /// VEX.128.0F38.W0: C4, then the three high bits of registers, inverted, and the map; W, a register, inverted, length and prefix; opcode,
  /// ModRM.
  static int execute(Registers registers, const std::uint8_t* code) {
    enum Prefix { none = 0, p66 = 1, pf3 = 2, pf2 = 3 };
    if (code[0] != 0xc4 || (code[1] & 31) != 2 || (code[2] & 0x84) != 0) refuse("no instruction of tiles");
    const bool high_reg = !(code[1] & 0x80), high_index = !(code[1] & 0x40), high_base = !(code[1] & 0x20);
    const int prefix = code[2] & 3, third = ~(code[2] >> 3) & 15, opcode = code[3], mode = code[4] >> 6;
    const int reg = (code[4] >> 3 & 7) + 8 * high_reg, rm = code[4] & 7;
    TileRegisters& tiles = ModelTiles::registers();
    if (mode == 3) {
      if (opcode == 0x49 && prefix == none && code[4] == 0xc0) tiles.tilerelease();
      else if (opcode == 0x49 && prefix == pf2 && rm == 0) tiles.tilezero(reg);
      else if (opcode == 0x5c && prefix == pf3) tiles.tdpbf16ps(reg, rm, third);
      else if (opcode == 0x5e && prefix == pf2) tiles.tdpbssd(reg, rm, third);
      else refuse("no instruction of tiles");
      return 5;
    }
    const Memory memory = memory_of(registers, code + 4, high_index, high_base);
    void* const base = reinterpret_cast<void*>(memory.base);
    if (opcode == 0x49 && prefix == none && reg == 0 && memory.index == 0) tiles.ldtilecfg(base);
    else if (opcode == 0x4b && prefix == pf2 && rm == 4) tiles.tileloadd(reg, base, memory.index);
    else if (opcode == 0x4b && prefix == pf3 && rm == 4) tiles.tilestored(reg, base, memory.index);
    else refuse("no instruction of tiles");
    return 4 + memory.length;
  }

  [[noreturn]] static void refuse(const char* what) { throw std::domain_error(what); }

  static void carry_out(int, siginfo_t*, void* context) {
    Registers const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    try {
      registers[REG_RIP] += execute(registers, reinterpret_cast<const std::uint8_t*>(registers[REG_RIP]));
      ++count();
    } catch (const std::exception& error) {
      const char* const message = error.what();
      (void)!write(STDERR_FILENO, message, std::strlen(message));
      _exit(70);
    }
  }

  struct sigaction before_{};
};

}  // namespace rlx::test
#endif
