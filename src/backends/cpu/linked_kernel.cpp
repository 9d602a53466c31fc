#include "backends/cpu/linked_kernel.h"

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "rlx/error.h"

namespace rlx::cpu {
namespace {

/// Far more than a kernel has, and little enough that everything is within the reach of a relocation.
constexpr std::size_t most_bytes = std::size_t{1} << 28;

/// The tables of an object; what they say has been compared with the size of the file only.
class ObjectFile {
 public:
  explicit ObjectFile(std::span<const std::byte> bytes) : bytes_(bytes) {
    const auto header = read<Elf64_Ehdr>(0);
    constexpr std::array<unsigned char, 6> ident{ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB};
    if (!std::ranges::equal(ident, std::span(header.e_ident).first(ident.size())) || header.e_type != ET_REL ||
        header.e_machine != EM_X86_64)
      fail("kernel object: it is no relocatable ELF object of x86-64");
    sections_ = read_many<Elf64_Shdr>(header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr));
    const auto table = std::ranges::find(sections_, Elf64_Word{SHT_SYMTAB}, &Elf64_Shdr::sh_type);
    if (table == sections_.end()) fail("kernel object: it has no symbols");
    symbols_ = read_many<Elf64_Sym>(table->sh_offset, table->sh_size);
    names_ = bytes_of(section(table->sh_link));
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  const std::vector<Elf64_Sym>& symbols() const { return symbols_; }
  const Elf64_Shdr& section(std::size_t i) const {
    if (i >= sections_.size()) fail("kernel object: section {} of {}", i, sections_.size());
    return sections_[i];
  }
  std::span<const std::byte> bytes_of(const Elf64_Shdr& section) const { return part(section.sh_offset, section.sh_size); }
  std::vector<Elf64_Rela> relocations(const Elf64_Shdr& section) const { return read_many<Elf64_Rela>(section.sh_offset, section.sh_size); }

  std::string name_of(const Elf64_Sym& symbol) const {
    if (symbol.st_name >= names_.size()) fail("kernel object: a name at {} of {} bytes", symbol.st_name, names_.size());
    const auto from = names_.subspan(symbol.st_name);
    return {reinterpret_cast<const char*>(from.data()), static_cast<std::size_t>(std::ranges::find(from, std::byte{0}) - from.begin())};
  }

 private:
  std::span<const std::byte> part(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) fail("kernel object: {} bytes at {} of {}", size, offset, bytes_.size());
    return bytes_.subspan(offset, size);
  }
  template <class T>
  std::vector<T> read_many(std::uint64_t offset, std::uint64_t size) const {
    const auto from = part(offset, size);
    std::vector<T> all(from.size() / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), from.data(), all.size() * sizeof(T));
    return all;
  }
  template <class T>
  T read(std::uint64_t offset) const {
    part(offset, sizeof(T));
    return read_many<T>(offset, sizeof(T))[0];
  }

  std::span<const std::byte> bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::span<const std::byte> names_;
};

/// A function of another library: its address, which may be too far away for a call, and `jmp *-14(%rip)`, which goes there.
struct Import {
  const void* address;
  std::array<unsigned char, 8> jump{0xff, 0x25, 0xf2, 0xff, 0xff, 0xff};
};
constexpr std::size_t jump_offset = offsetof(Import, jump);

/// Where the parts of an object lie in memory, as distances from its first byte.
class Layout {
 public:
  explicit Layout(const ObjectFile& object) {
    for (const Elf64_Shdr& section : object.sections()) sections_.push_back(place(object, section));
    for (const Elf64_Sym& symbol : object.symbols()) symbols_.push_back(place(object, symbol));
  }

  std::size_t bytes() const { return bytes_; }
  /// Nothing for a section that is not needed when the kernel runs.
  std::optional<std::size_t> of_section(std::size_t i) const { return sections_.at(i); }
  std::size_t of_symbol(std::size_t i) const {
    if (i >= symbols_.size() || !symbols_[i]) fail("kernel object: symbol {} of {} is nowhere", i, symbols_.size());
    return *symbols_[i];
  }

 private:
  std::size_t take(std::size_t bytes, std::size_t alignment) {
    const std::size_t at = (bytes_ + alignment - 1) / alignment * alignment;
    if (bytes > most_bytes || at > most_bytes - bytes) fail("kernel object: more than {} bytes", most_bytes);
    bytes_ = at + bytes;
    return at;
  }
  std::optional<std::size_t> place(const ObjectFile& object, const Elf64_Shdr& section) {
    if (!(section.sh_flags & SHF_ALLOC)) return std::nullopt;
    const std::size_t alignment = std::max<std::size_t>(section.sh_addralign, 1);
    if (section.sh_type != SHT_PROGBITS || (section.sh_flags & (SHF_WRITE | SHF_TLS)) || !std::has_single_bit(alignment) ||
        alignment > 4096)
      fail("kernel object: a section of type {} with flags {:#x}, aligned to {}", section.sh_type, section.sh_flags, alignment);
    return take(object.bytes_of(section).size(), alignment);
  }
  std::optional<std::size_t> place(const ObjectFile& object, const Elf64_Sym& symbol) {
    if (symbol.st_shndx == SHN_UNDEF) return symbol.st_name == 0 ? std::nullopt : std::optional(take(sizeof(Import), alignof(Import)));
    if (symbol.st_shndx >= sections_.size() || !sections_[symbol.st_shndx]) return std::nullopt;
    if (symbol.st_value > object.section(symbol.st_shndx).sh_size) return std::nullopt;
    return *sections_[symbol.st_shndx] + symbol.st_value;
  }

  std::size_t bytes_ = 0;
  std::vector<std::optional<std::size_t>> sections_, symbols_;
};

void write_imports(const ObjectFile& object, const Layout& layout, std::byte* to) {
  for (std::size_t i = 0; i < object.symbols().size(); ++i) {
    const Elf64_Sym& symbol = object.symbols()[i];
    if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0) continue;
    const std::string name = object.name_of(symbol);
    const Import import{.address = dlsym(RTLD_DEFAULT, name.c_str())};
    if (!import.address) fail("kernel object: no library of this process has the function '{}'", name);
    std::memcpy(to + layout.of_symbol(i), &import, sizeof import);
  }
}

/// The distance from where it is written to the symbol, with the relocation's own addend.
void relocate(const ObjectFile& object, const Layout& layout, const Elf64_Rela& relocation, std::size_t section, std::byte* to) {
  const std::size_t type = ELF64_R_TYPE(relocation.r_info), index = ELF64_R_SYM(relocation.r_info), size = object.section(section).sh_size;
  std::size_t target = layout.of_symbol(index);
  const bool imported = object.symbols()[index].st_shndx == SHN_UNDEF;
  if (type != R_X86_64_PLT32 && (type != R_X86_64_PC32 || imported)) fail("kernel object: a relocation of type {}", type);
  if (imported) target += jump_offset;
  if (size < 4 || relocation.r_offset > size - 4) fail("kernel object: a relocation at {} of {} bytes", relocation.r_offset, size);
  const std::size_t place = *layout.of_section(section) + relocation.r_offset;
  const auto distance = static_cast<std::int64_t>(target + static_cast<std::uint64_t>(relocation.r_addend) - place);
  const auto word = static_cast<std::int32_t>(distance);
  if (word != distance) fail("kernel object: a relocation over {} bytes", distance);
  std::memcpy(to + place, &word, sizeof word);
}

void write_sections(const ObjectFile& object, const Layout& layout, std::byte* to) {
  for (std::size_t i = 0; i < object.sections().size(); ++i)
    if (const auto at = layout.of_section(i)) std::ranges::copy(object.bytes_of(object.section(i)), to + *at);
  for (const Elf64_Shdr& section : object.sections()) {
    if ((section.sh_type != SHT_RELA && section.sh_type != SHT_REL) || section.sh_info >= object.sections().size() ||
        !layout.of_section(section.sh_info))
      continue;
    if (section.sh_type == SHT_REL) fail("kernel object: relocations without addends");
    for (const Elf64_Rela& each : object.relocations(section)) relocate(object, layout, each, section.sh_info, to);
  }
}

std::size_t entry_of(const ObjectFile& object, const Layout& layout, std::string_view name) {
  for (std::size_t i = 0; i < object.symbols().size(); ++i)
    if (const Elf64_Sym& symbol = object.symbols()[i];
        ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF && object.name_of(symbol) == name)
      return layout.of_symbol(i);
  fail("kernel object: it has no function '{}'", name);
}

}  // namespace

LinkedKernel::LinkedKernel(std::span<const std::byte> bytes, std::string_view name) {
  const ObjectFile object(bytes);
  const Layout layout(object);
  entry_ = entry_of(object, layout, name);
  pages_ = map_pages(layout.bytes(), Backing::reserved);
  if (!pages_) fail("kernel object: no memory for {} bytes", layout.bytes());
  write_sections(object, layout, pages_.get());
  write_imports(object, layout, pages_.get());
  if (mprotect(pages_.get(), layout.bytes(), PROT_READ | PROT_EXEC) != 0) fail("kernel object: the system refuses memory for code");
}

KernelFunction LinkedKernel::function() const { return reinterpret_cast<KernelFunction>(pages_.get() + entry_); }

}  // namespace rlx::cpu
