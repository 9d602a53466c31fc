// Weights in blocks become codes and scales, as CoreML's constexpr operations take them.
#include "backends/coreml/blocks.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <functional>

#include "backends/coreml/operations.h"
#include "base/cpu_count.h"
#include "base/half.h"
#include "base/thread_pool.h"
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

/// Sees each block that is written, with its codes.
using Watch = std::function<void(const std::byte* block, std::span<const std::int8_t> codes)>;

/// The codes in `bits` each, the first in the lowest, as the numbers that `places` has for them.
Weights::Source packed_codes(const Blocks& blocks, int bits, const std::array<std::uint8_t, 256>& places,
                             const std::function<Watch()>& begin) {
  return [=](const Weights::Sink& sink) {
    Piece piece(sink);
    const Watch watch = begin();
    std::vector<std::int8_t> codes(static_cast<std::size_t>(blocks.format->values));
    std::uint32_t held = 0;
    int filled = 0;
    blocks.each([&](const std::byte* block) {
      blocks.parts->codes(block, codes.data());
      if (watch) watch(block, codes);
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

/// Numbers of each block: scales or minima of its groups, or what their factors are multiplied by.
struct Numbers {
  void (*of)(const std::byte* block, float* numbers);
  std::int64_t count;
};

/// `count` elements that `fill` gives for each block.
template <class T, class Fill>
Weights::Source of_each_block(const Blocks& blocks, std::int64_t count, const Fill& fill) {
  return [=](const Weights::Sink& sink) {
    Piece piece(sink);
    std::vector<T> some(static_cast<std::size_t>(count));
    blocks.each([&](const std::byte* block) {
      fill(block, some.data());
      const auto bytes = std::as_bytes(std::span(some));
      piece.bytes.insert(piece.bytes.end(), bytes.begin(), bytes.end());
      piece.flush_if_full();
    });
    piece.flush();
  };
}

Weights::Source packed_numbers(const Blocks& blocks, Numbers numbers, Element element) {
  if (element == Element::f32) return of_each_block<float>(blocks, numbers.count, numbers.of);
  return of_each_block<std::uint16_t>(blocks, numbers.count, [=](const std::byte* block, std::uint16_t* halves) {
    std::vector<float> some(static_cast<std::size_t>(numbers.count));
    numbers.of(block, some.data());
    std::ranges::transform(some, halves, f16_bits);
  });
}

/// Whether f16 holds the numbers but for rounding, or `exactly`.
bool fit_f16(const Blocks& blocks, Numbers numbers, bool exactly) {
  constexpr float largest = 65504, least = 0x1p-24f;
  bool fit = true;
  std::vector<float> some(static_cast<std::size_t>(numbers.count));
  blocks.each([&](const std::byte* block) {
    numbers.of(block, some.data());
    for (const float x : some)
      fit = fit && std::fabs(x) <= largest && (x == 0 || std::fabs(x) >= least) && !(exactly && f16_value(f16_bits(x)) != x);
  });
  return fit;
}

/// The values of blocks, one after the other.
class DecodedValues {
 public:
  explicit DecodedValues(Blocks blocks) : blocks_(std::move(blocks)) {}
  std::span<const float> next(std::size_t count) {
    if (used_ == values_.size()) {
      values_.resize(std::max(count, static_cast<std::size_t>(blocks_.format->values)));
      blocks_.format->decode(blocks_.array.bytes().data() + done_ / blocks_.format->values * blocks_.format->bytes, values_.data(),
                             std::ssize(values_));
      done_ += std::ssize(values_), used_ = 0;
    }
    used_ += count;
    return std::span(values_).subspan(used_ - count, count);
  }

 private:
  Blocks blocks_;
  std::vector<float> values_ = {};
  std::size_t used_ = 0;
  std::int64_t done_ = 0;
};

float in_f16(const std::string& name, float x) {
  const float stored = f16_value(f16_bits(x));
  if (!std::isfinite(stored)) fail("coreml: '{}': a weight is {}, which f16 cannot hold (allowed: -65504 to 65504)", name, x);
  return stored;
}

/// Adds what blocks lose, as the device decodes them in `element`, to a report.
class Comparison {
 public:
  Comparison(const Blocks& given, Blocks stored, Element element, std::shared_ptr<StoredWeight> report)
      : given_(given), stored_(std::move(stored)), rounds_(element == Element::f16), report_(std::move(report)) {}

  void operator()(const std::byte* block, std::span<const std::int8_t> codes) {
    const BlockParts& parts = *stored_.parts;
    const std::size_t groups = codes.size() / static_cast<std::size_t>(parts.group);
    std::vector<float> scales(groups), minima(groups);
    parts.scales(block, scales.data());
    if (parts.minima) parts.minima(block, minima.data());
    const std::span<const float> wanted = given_.next(codes.size());
    for (std::size_t j = 0; j < codes.size(); ++j) {
      const std::size_t g = j / static_cast<std::size_t>(parts.group);
      const float scaled = rounded(rounded(scales[g]) * static_cast<float>(codes[j]));
      const float seen = scaled - rounded(minima[g]);
      report_->add(wanted[j], report_->rounds_decoded ? in_f16(report_->name, seen) : seen);
    }
  }

 private:
  float rounded(float x) const { return rounds_ ? f16_value(f16_bits(x)) : x; }
  DecodedValues given_;
  Blocks stored_;
  bool rounds_;
  std::shared_ptr<StoredWeight> report_;
};

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

std::string name_of(const Form& form) {
  if (form.is_table) return fmt::format("table of {}", 1 << form.bits);
  return fmt::format("{}{}", form.element == Element::u4 ? "u" : "i", form.bits);
}

/// Of a weight, with numbers of f16 or f32 in one level or two.
double bits_of(const Form& form, const BlockParts& parts, std::int64_t values, Element element, bool nests) {
  const double number = form_of(element).bits, kinds = parts.minima ? 2 : 1;
  return form.bits + kinds * (nests ? 8.0 / parts.group + number / static_cast<double>(values) : number / parts.group);
}

class Decoding {
 public:
  /// `given`: the blocks that became `blocks`.
  Decoding(Body& out, Blocks blocks, const Blocks& given, const std::string& name, Element element)
      : out_(out),
        blocks_(std::move(blocks)),
        given_(given),
        element_(element),
        nests_(out.parts().nests_scales && parts().scale_levels.unit) {
    if (element_ == Element::f16 && !(fits(parts().scales, parts().scale_levels) && fits(parts().minima, parts().minimum_levels)))
      element_ = Element::f32;
    const Form form = form_of(parts(), out_.parts().target);
    const std::string stored =
        fmt::format("{} with {} scales{}", name_of(form), element_ == Element::f16 ? "f16" : "f32", nests_ ? " in two levels" : "");
    const bool is_other = given_.format != blocks_.format;
    report_ = out_.parts().report(
        blocks_.array, element_,
        StoredWeight{name, std::string(given_.format->name), is_other ? fmt::format("{} ({})", parts().type, stored) : stored,
                     blocks_.values(), bits_of(form, parts(), blocks_.format->values, element_, nests_)});
  }

  DecodedBlocks decoded() const {
    const Argument scales = numbers("scales", parts().scales, parts().scale_levels);
    DecodedBlocks result{{}, {}, parts().group, report_};
    result.scaled =
        out_.add("constexpr_blockwise_shift_scale", {{"data", codes()}, {"scale", scales}}, element_, dims_of(blocks_.shape(1)));
    if (!parts().minima) return result;
    const Argument minima = numbers("minima", parts().minima, parts().minimum_levels);
    const auto* const made = std::get_if<Tensor>(&minima);
    result.minima = made ? *made : out_.stored(std::get<Immediate>(minima).value, element_, blocks_.shape(parts().group));
    return result;
  }

 private:
  const BlockParts& parts() const { return *blocks_.parts; }
  std::string key(std::string_view part) const { return key_of(blocks_.array, part, element_); }
  std::int64_t groups() const { return blocks_.format->values / parts().group; }

  bool fits(void (*numbers)(const std::byte*, float*), const BlockParts::Levels& levels) const {
    if (!numbers) return true;
    return nests_ ? fit_f16(blocks_, {levels.unit, 1}, true) : fit_f16(blocks_, {numbers, groups()}, false);
  }

  /// Of groups: a value of the file, or where they have two levels what multiplies these.
  Argument numbers(std::string_view part, void (*of)(const std::byte*, float*), const BlockParts::Levels& levels) const {
    const Sizes shape = blocks_.shape(parts().group);
    if (!nests_) return stored(part, element_, shape, packed_numbers(blocks_, {of, groups()}, element_));
    const Immediate factors =
        stored(fmt::format("{} factors", part), Element::i8, shape, of_each_block<std::int8_t>(blocks_, groups(), levels.factors));
    const Immediate units = stored(fmt::format("{} units", part), element_, blocks_.shape(blocks_.format->values),
                                   packed_numbers(blocks_, {levels.unit, 1}, element_));
    return out_.add("constexpr_blockwise_shift_scale", {{"data", factors}, {"scale", units}}, element_, dims_of(shape));
  }
  Immediate stored(std::string_view part, Element element, const Sizes& shape, Weights::Source source) const {
    return Immediate(out_.in_file(key(part), element, shape, std::move(source)));
  }

  /// What compares the codes while they are written, where they may differ from what was given.
  std::function<Watch()> comparison() const {
    return [given = given_, blocks = blocks_, element = element_, report = report_]() -> Watch {
      if (given.format == blocks.format && element == Element::f32 && !report->rounds_decoded) return {};
      return Comparison(given, blocks, element, report);
    };
  }

  Argument codes() const {
    const Form form = form_of(parts(), out_.parts().target);
    if (form.is_table) return by_table(form);
    std::array<std::uint8_t, 256> places{};
    for (std::size_t i = 0; i < places.size(); ++i)
      places[i] = static_cast<std::uint8_t>((static_cast<int>(i) + lowest_code) & ((1 << form.bits) - 1));
    return packed("codes", form, places);
  }

  Immediate packed(std::string_view part, const Form& form, const std::array<std::uint8_t, 256>& places) const {
    return stored(part, form.element, blocks_.shape(1), packed_codes(blocks_, form.bits, places, comparison()));
  }

  /// Places in a table of the codes that there are.
  Tensor by_table(const Form& form) const {
    const CodeSet there = codes_in(blocks_);
    std::array<std::uint8_t, 256> places{};
    std::string table;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (there[i]) places[i] = static_cast<std::uint8_t>(table.size()), table += static_cast<char>(static_cast<int>(i) + lowest_code);
    table.resize(std::size_t{1} << form.bits, '\0');
    Sizes of_table(blocks_.array.shape().size(), 1);
    of_table.insert(of_table.end(), {static_cast<std::int64_t>(table.size()), 1});
    constexpr std::uint32_t bytes = 7, values = 1;
    const Immediate entries(immediate_value(Element::i8, of_table, ProtobufWriter().message(bytes, ProtobufWriter().text(values, table))));
    return out_.add("constexpr_lut_to_dense", {{"indices", packed("places", form, places)}, {"lut", entries}}, Element::i8,
                    dims_of(blocks_.shape(1)));
  }

  Body& out_;
  Blocks blocks_, given_;
  Element element_;
  bool nests_;
  std::shared_ptr<StoredWeight> report_;
};

Blocks as_blocks(const Array& array, const BlockFormat& format) { return {array, &format, find_block_parts(format.name)}; }

/// The rows in blocks of another type.
Array requantized(const Weight& weight, const BlockFormat& from, const BlockFormat& to) {
  Sizes shape = weight.array.shape();
  const std::int64_t row_bytes = shape.back(), columns = row_bytes / from.bytes * from.values;
  if (columns % to.values != 0)
    fail("coreml: '{}': rows of {} weights are no whole blocks of {}, which have {}", weight.name, columns, to.name, to.values);
  shape.back() = columns / to.values * to.bytes;
  auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(weight.array.size() / row_bytes * shape.back()));
  ThreadPool(granted_cpus()).parallel_for(weight.array.size() / row_bytes, 1, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<float> values(static_cast<std::size_t>(columns));
    for (std::int64_t row = begin; row < end; ++row) {
      from.decode(weight.array.bytes().data() + row * row_bytes, values.data(), columns);
      if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); }))
        fail("coreml: '{}': weights that are not finite (mend the weights)", weight.name);
      to.encode(values.data(), nullptr, bytes->data() + row * shape.back(), columns);
    }
  });
  return {u8, shape, *bytes, bytes};
}

/// As numbers of f16, made while they are written.
DecodedBlocks stored_f16(Body& out, const Blocks& blocks, const std::string& name) {
  constexpr Element element = Element::f16;
  const auto report = out.parts().report(
      blocks.array, element,
      StoredWeight{name, std::string(blocks.format->name), "f16", blocks.values(), static_cast<double>(form_of(element).bits)});
  const auto fill = [=](const std::byte* block, std::uint16_t* halves) {
    std::vector<float> values(static_cast<std::size_t>(blocks.format->values));
    blocks.format->decode(block, values.data(), std::ssize(values));
    for (std::size_t i = 0; i < values.size(); ++i) {
      halves[i] = f16_bits(values[i]);
      report->add(values[i], in_f16(name, values[i]));
    }
  };
  const Sizes shape = blocks.shape(1);
  const Weights::Source source = of_each_block<std::uint16_t>(blocks, blocks.format->values, fill);
  return {out.stored(out.in_file(key_of(blocks.array, "values", element), element, shape, source), element, shape), {}, 1, report};
}

/// The type as which blocks are stored.
const BlockFormat& stored_type(const ProgramParts& parts, const BlockFormat& given) {
  auto wanted = parts.block_types.find(given.name);
  if (wanted == parts.block_types.end()) wanted = parts.block_types.find("");
  return wanted == parts.block_types.end() ? given : *find_block_format(wanted->second);
}

}  // namespace

DecodedBlocks decode_on_device(Body& out, const Weight& weight) {
  ProgramParts& parts = out.parts();
  const Element element = parts.multiplies_f16 ? Element::f16 : Element::f32;
  parts.needs(Target::ios18, "weights in blocks");
  const Blocks given = as_blocks(weight.array, *find_block_format(weight.blocks));
  const BlockFormat& wanted = stored_type(parts, *given.format);
  if (!find_block_parts(wanted.name)) return stored_f16(out, given, weight.name);
  Array array = weight.array;
  if (&wanted != given.format) {
    const auto [known, is_new] = parts.requantized.try_emplace(key_of(weight.array, wanted.name, Element::f32), Array(u8, {0}));
    if (is_new) known->second = requantized(weight, *given.format, wanted);
    array = known->second;
  }
  return Decoding(out, as_blocks(array, wanted), given, weight.name, element).decoded();
}

Tensor whole(Body& out, const DecodedBlocks& blocks) {
  if (!blocks.minima) return blocks.scaled;
  Dims apart = blocks.minima->shape;
  apart.push_back(1);
  Dims grouped = apart;
  grouped.back() = blocks.group;
  const auto wide = [&](const Tensor& x, const Dims& shape) { return convert(out, reshape(out, x, shape), Element::f32); };
  const Tensor y = binary(out, "sub", wide(blocks.scaled, grouped), wide(*blocks.minima, apart));
  return reshape(out, y, blocks.scaled.shape);
}

Tensor decoded(Body& out, const Weight& weight, Element element) {
  const DecodedBlocks blocks = decode_on_device(out, weight);
  blocks.report->rounds_decoded = blocks.report->rounds_decoded || element == Element::f16;
  return convert(out, whole(out, blocks), element);
}

std::string block_forms() {
  std::string text =
      "| type | iOS 18 | bits of a weight, in f16 and f32 | iOS 26 | bits | in two levels, iOS 18 | iOS 26 | in f32 | in f16 |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const BlockFormat& format : block_formats()) {
    const BlockParts* const parts = find_block_parts(format.name);
    if (!parts) continue;
    const auto bits = [&](const Form& form, bool nests) {
      if (nests && !parts->scale_levels.unit) return std::string("-");
      return fmt::format("{:.3g}, {:.3g}", bits_of(form, *parts, format.values, Element::f16, nests),
                         bits_of(form, *parts, format.values, Element::f32, nests));
    };
    const Form old = form_of(*parts, Target::ios18), now = form_of(*parts, Target::ios26);
    const std::string rounded = parts->scale_bits <= 11 ? "rounded" : fmt::format("rounded, as are scales of {} bits", parts->scale_bits);
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", parts->type, name_of(old), bits(old, false), name_of(now),
                        bits(now, false), bits(old, true), bits(now, true), parts->minima ? "exact, in two terms" : "exact", rounded);
  }
  return text;
}

}  // namespace rlx::coreml
