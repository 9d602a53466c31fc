// Weights in blocks become codes and scales, as CoreML's constexpr operations take them.
#include "backends/coreml/blocks.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>

#include "backends/coreml/operations.h"
#include "base/half.h"
#include "quant/block_format.h"
#include "quant/block_parts.h"

namespace rlx::coreml {
namespace {

/// Blocks, one after the other.
struct Blocks {
  Array array;
  const BlockFormat* format;
  const BlockParts* parts;

  std::int64_t count() const { return array.size() / format->bytes; }
  std::int64_t values() const { return count() * format->values; }
  /// Calls `visit` with each block.
  template <class Visit>
  void each(const Visit& visit) const {
    const std::byte* const bytes = array.bytes().data();
    for (std::int64_t i = 0; i < count(); ++i) visit(bytes + i * format->bytes);
  }
  Sizes shape(std::int64_t neighbours) const {
    Sizes sizes = array.shape();
    sizes.back() = sizes.back() / format->bytes * format->values / neighbours;
    return sizes;
  }
};

constexpr std::size_t piece_bytes = std::size_t{1} << 20;

/// Bytes to hand over in pieces.
struct Piece {
  explicit Piece(const Weights::Sink& to) : sink(to) {}
  void flush_if_full() {
    if (bytes.size() >= piece_bytes) flush();
  }
  void flush() {
    sink(bytes);
    bytes.clear();
  }
  const Weights::Sink& sink;
  std::vector<std::byte> bytes = {};
};

/// Which codes there are, from -128 on.
using CodeSet = std::bitset<256>;
constexpr int lowest_code = -128;

CodeSet codes_in(const Blocks& blocks) {
  CodeSet there;
  std::vector<std::int8_t> codes(static_cast<std::size_t>(blocks.format->values));
  blocks.each([&](const std::byte* block) {
    blocks.parts->codes(block, codes.data());
    for (const std::int8_t code : codes) there.set(static_cast<std::size_t>(code - lowest_code));
  });
  return there;
}

/// The codes in `bits` each, the first in the lowest, as the numbers that `places` has for them.
Weights::Source packed_codes(const Blocks& blocks, int bits, const std::array<std::uint8_t, 256>& places) {
  return [=](const Weights::Sink& sink) {
    Piece piece(sink);
    std::vector<std::int8_t> codes(static_cast<std::size_t>(blocks.format->values));
    std::uint32_t held = 0;
    int filled = 0;
    blocks.each([&](const std::byte* block) {
      blocks.parts->codes(block, codes.data());
      for (const std::int8_t code : codes) {
        held |= static_cast<std::uint32_t>(places[static_cast<std::size_t>(code - lowest_code)]) << filled;
        for (filled += bits; filled >= 8; filled -= 8, held >>= 8) piece.bytes.push_back(static_cast<std::byte>(held));
      }
      piece.flush_if_full();
    });
    if (filled > 0) piece.bytes.push_back(static_cast<std::byte>(held));
    piece.flush();
  };
}

/// The numbers of groups: scales or minima.
using Numbers = void (*)(const std::byte* block, float* numbers);

template <class Visit>
void each_number(const Blocks& blocks, Numbers numbers, const Visit& visit) {
  std::vector<float> some(static_cast<std::size_t>(blocks.format->values / blocks.parts->group));
  blocks.each([&](const std::byte* block) {
    numbers(block, some.data());
    for (const float number : some) visit(number);
  });
}

Weights::Source packed_numbers(const Blocks& blocks, Numbers numbers, Element element) {
  return [=](const Weights::Sink& sink) {
    Piece piece(sink);
    const auto put = [&](auto number) {
      const auto bytes = std::as_bytes(std::span(&number, 1));
      piece.bytes.insert(piece.bytes.end(), bytes.begin(), bytes.end());
      piece.flush_if_full();
    };
    each_number(blocks, numbers, [&](float x) { element == Element::f16 ? put(f16_bits(x)) : put(x); });
    piece.flush();
  };
}

/// Whether f16 holds the numbers but for rounding.
bool fit_f16(const Blocks& blocks, Numbers numbers) {
  constexpr float largest = 65504, least = 0x1p-24f;
  bool fit = true;
  each_number(blocks, numbers, [&](float x) { fit = fit && std::fabs(x) <= largest && (x == 0 || std::fabs(x) >= least); });
  return fit;
}

/// How codes are stored.
struct Form {
  int bits;
  Element element;
  bool is_table;  // they are places in one
};

/// Four bits where they are enough; from iOS 26 on as few as there are codes, by a table.
Form form_of(const BlockParts& parts, Target target) {
  constexpr std::array<Form, 5> tables{
      {{1, Element::u1, true}, {2, Element::u2, true}, {3, Element::u3, true}, {4, Element::u4, true}, {6, Element::u6, true}}};
  const bool is_signed = parts.lowest < 0, four_bits = parts.highest <= (is_signed ? 7 : 15) && parts.lowest >= -8;
  const auto* const table = std::ranges::find_if(tables, [&](const Form& form) { return parts.distinct <= 1 << form.bits; });
  if (target >= Target::ios26 && table != tables.end() && !(four_bits && table->bits >= 4)) return *table;
  return four_bits ? Form{4, is_signed ? Element::i4 : Element::u4, false} : Form{8, Element::i8, false};
}

class Decoding {
 public:
  Decoding(Body& out, Blocks blocks, Element element) : out_(out), blocks_(std::move(blocks)), element_(element) {
    const Numbers minima = blocks_.parts->minima;
    if (element_ == Element::f16 && !(fit_f16(blocks_, blocks_.parts->scales) && (!minima || fit_f16(blocks_, minima))))
      element_ = Element::f32;
  }

  DecodedBlocks decoded() const {
    const Sizes groups = blocks_.shape(blocks_.parts->group);
    const Immediate scales(stored_value(element_, groups, numbers(blocks_.parts->scales, "scales")));
    DecodedBlocks result{{}, {}, blocks_.parts->group};
    result.scaled =
        out_.add("constexpr_blockwise_shift_scale", {{"data", codes()}, {"scale", scales}}, element_, dims_of(blocks_.shape(1)));
    if (blocks_.parts->minima) {
      const std::uint64_t offset = numbers(blocks_.parts->minima, "minima");
      result.minima = out_.stored(stored_value(element_, groups, offset), element_, groups);
    }
    return result;
  }

 private:
  std::string key(std::string_view part) const {
    return fmt::format("{} {} {} {}", static_cast<const void*>(blocks_.array.bytes().data()), blocks_.array.size(), part,
                       static_cast<int>(element_));
  }

  std::uint64_t numbers(Numbers of, std::string_view part) const {
    return out_.parts().weights.add(key(part), element_, blocks_.values() / blocks_.parts->group, packed_numbers(blocks_, of, element_));
  }

  Argument codes() const {
    const Form form = form_of(*blocks_.parts, out_.parts().target);
    if (form.is_table) return by_table(form);
    return in_bits(form.bits, form.element);
  }

  Immediate in_bits(int bits, Element element) const {
    std::array<std::uint8_t, 256> places{};
    for (std::size_t i = 0; i < places.size(); ++i)
      places[i] = static_cast<std::uint8_t>((static_cast<int>(i) + lowest_code) & ((1 << bits) - 1));
    const std::uint64_t offset = out_.parts().weights.add(key("codes"), element, blocks_.values(), packed_codes(blocks_, bits, places));
    return Immediate(stored_value(element, blocks_.shape(1), offset));
  }

  /// Places in a table of the codes that there are.
  Tensor by_table(const Form& form) const {
    const auto [bits, element, is_table] = form;
    const CodeSet there = codes_in(blocks_);
    std::array<std::uint8_t, 256> places{};
    std::string table;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (there[i]) places[i] = static_cast<std::uint8_t>(table.size()), table += static_cast<char>(static_cast<int>(i) + lowest_code);
    table.resize(std::size_t{1} << bits, '\0');
    const std::uint64_t offset = out_.parts().weights.add(key("places"), element, blocks_.values(), packed_codes(blocks_, bits, places));
    Sizes of_table(blocks_.array.shape().size(), 1);
    of_table.insert(of_table.end(), {static_cast<std::int64_t>(table.size()), 1});
    constexpr std::uint32_t bytes = 7, values = 1;
    const Immediate entries(immediate_value(Element::i8, of_table, ProtobufWriter().message(bytes, ProtobufWriter().text(values, table))));
    return out_.add("constexpr_lut_to_dense", {{"indices", Immediate(stored_value(element, blocks_.shape(1), offset))}, {"lut", entries}},
                    Element::i8, dims_of(blocks_.shape(1)));
  }

  Body& out_;
  Blocks blocks_;
  Element element_;
};

}  // namespace

DecodedBlocks decode_on_device(Body& out, const Array& blocks, const std::string& type, Element element) {
  out.parts().needs(Target::ios18, "weights in blocks");
  return Decoding(out, {blocks, find_block_format(type), find_block_parts(type)}, element).decoded();
}

Tensor whole(Body& out, const DecodedBlocks& blocks) {
  if (!blocks.minima) return blocks.scaled;
  Dims apart = blocks.minima->shape;
  apart.push_back(1);
  Dims grouped = apart;
  grouped.back() = blocks.group;
  const Tensor y = binary(out, "sub", reshape(out, blocks.scaled, grouped), reshape(out, *blocks.minima, apart));
  return reshape(out, y, blocks.scaled.shape);
}

std::string block_forms() {
  std::string text =
      "| type | iOS 18 | bits of a weight, in f16 and f32 | iOS 26 | bits | in f32 | in f16 |\n|---|---|---|---|---|---|---|\n";
  for (const BlockFormat& format : block_formats()) {
    const BlockParts* const parts = find_block_parts(format.name);
    if (!parts) continue;
    const auto codes = [](const Form& form) {
      return form.is_table ? fmt::format("table of {}", 1 << form.bits)
                           : fmt::format("{}{}", form.element == Element::u4 ? "u" : "i", form.bits);
    };
    const auto bits = [&](const Form& form) {
      const double shared = (parts->minima ? 2.0 : 1.0) / parts->group;
      return fmt::format("{:.3g}, {:.3g}", form.bits + 16 * shared, form.bits + 32 * shared);
    };
    const Form old = form_of(*parts, Target::ios18), now = form_of(*parts, Target::ios26);
    const std::string rounded = parts->scale_bits <= 11 ? "rounded" : fmt::format("rounded, as are scales of {} bits", parts->scale_bits);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", parts->type, codes(old), bits(old), codes(now), bits(now),
                        parts->minima ? "exact, in two terms" : "exact", rounded);
  }
  return text;
}

}  // namespace rlx::coreml
