#include "text/template/python_text.h"

#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "text/template/python_operations.h"
#include "text/template/renderer.h"
#include "text/unicode/unicode.h"

namespace rlx::jinja {
namespace {

bool is_printable(char32_t value) {
  if (value < 0x7F) return value >= ' ';
  const utf8proc_category_t kind = utf8proc_category(static_cast<utf8proc_int32_t>(value));
  const bool separator = kind >= UTF8PROC_CATEGORY_ZS && kind <= UTF8PROC_CATEGORY_ZP;
  const bool other = kind == UTF8PROC_CATEGORY_CN || kind >= UTF8PROC_CATEGORY_CC;
  return !separator && !other;
}

std::string quoted(std::string_view text) {
  const char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  while (!text.empty()) {
    const auto [value, bytes] = unicode::decode(text);
    if (value == static_cast<unsigned char>(quote) || value == '\\') out += '\\', out += static_cast<char>(value);
    else if (value == '\n') out += "\\n";
    else if (value == '\r') out += "\\r";
    else if (value == '\t') out += "\\t";
    else if (is_printable(value)) out += text.substr(0, bytes);
    else if (value < 0x100) out += fmt::format("\\x{:02x}", static_cast<unsigned>(value));
    else if (value < 0x10000) out += fmt::format("\\u{:04x}", static_cast<unsigned>(value));
    else out += fmt::format("\\U{:08x}", static_cast<unsigned>(value));
    text.remove_prefix(bytes);
  }
  return out + quote;
}

/// Text of values. It counts as memory while it grows: few values may be met many times.
class ValueWriter {
 public:
  explicit ValueWriter(Renderer& run) : run_(run) {}
  virtual ~ValueWriter() = default;
  ValueWriter(const ValueWriter&) = delete;
  ValueWriter& operator=(const ValueWriter&) = delete;

  std::string text(const Value& value) {
    write(value);
    return std::move(out_);
  }

 protected:
  void add(std::string_view text) {
    run_.memory().charge(text.size());
    out_ += text;
  }
  void write(const Value& value) {
    const Renderer::Level level(run_);
    run_.count_steps(1);
    write_one(value);
  }
  virtual void write_one(const Value& value) = 0;

  Renderer& run_;

 private:
  std::string out_;
};

/// Python's repr.
class ReprWriter : public ValueWriter {
 public:
  using ValueWriter::ValueWriter;

 private:
  void write_one(const Value& value) override {
    if (value.is<std::string_view>()) add(quoted(value.as<std::string_view>()));
    else if (value.is<Sequence*>()) write_sequence(*value.as<Sequence*>());
    else if (value.is<Dict*>()) write_dict(*value.as<Dict*>());
    else if (value.is<Undefined>()) add("Undefined");
    else if (value.is<Object*>()) run_.refuse("a {} has no text", type_name(value));
    else add(text_of(run_, value));
  }

  void write_items(std::string_view begin, const std::vector<Value>& items, std::string_view end) {
    add(begin);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) add(", ");
      write(items[i]);
    }
    add(end);
  }

  void write_sequence(const Sequence& sequence) {
    switch (sequence.kind) {
      case Sequence::Kind::list: return write_items("[", sequence.items, "]");
      case Sequence::Kind::tuple: return write_items("(", sequence.items, sequence.items.size() == 1 ? ",)" : ")");
      case Sequence::Kind::range: return add(sequence.title);
      case Sequence::Kind::view: return add(sequence.title), write_items("([", sequence.items, "])");
      case Sequence::Kind::iterator: run_.refuse("an iterator has no text (use the filter 'list')");
    }
  }

  void write_dict(const Dict& dict) {
    add("{");
    bool first = true;
    for (const auto& [key, value] : dict.entries) {
      if (!std::exchange(first, false)) add(", ");
      write(key);
      add(": ");
      write(value);
    }
    add("}");
  }
};

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_text(value);
}

std::string json_string(std::string_view text, bool ascii) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto [value, bytes] = unicode::decode(text);
    constexpr std::string_view plain = "\"\\\n\r\t\f\b", marks = "\"\\nrtfb";
    if (const auto found = value < 0x80 ? plain.find(static_cast<char>(value)) : std::string_view::npos; found != std::string_view::npos)
      out += '\\', out += marks[found];
    else if (value < 0x20) out += fmt::format("\\u{:04x}", static_cast<unsigned>(value));
    else if (!ascii || value < 0x7F || value == 0x7F) out += text.substr(0, bytes);
    else if (value < 0x10000) out += fmt::format("\\u{:04x}", static_cast<unsigned>(value));
    else
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + static_cast<unsigned>(value >> 10), 0xDC00 + static_cast<unsigned>(value & 0x3FF));
    text.remove_prefix(bytes);
  }
  return out + '"';
}

class JsonWriter : public ValueWriter {
 public:
  JsonWriter(Renderer& run, const JsonStyle& style) : ValueWriter(run), style_(style) {}

 private:
  void write_one(const Value& value) override {
    if (value.is<None>()) add("null");
    else if (value.is<bool>()) add(value.as<bool>() ? "true" : "false");
    else if (value.is<Integer>()) add(fmt::format("{}", value.as<Integer>()));
    else if (value.is<double>()) add(json_float(value.as<double>()));
    else if (value.is<std::string_view>()) add(json_string(value.as<std::string_view>(), style_.ascii));
    else if (value.is<Dict*>()) write_dict(*value.as<Dict*>());
    else if (value.is<Sequence*>() && value.as<Sequence*>()->kind <= Sequence::Kind::tuple) write_list(value.as<Sequence*>()->items);
    else run_.refuse("'tojson': a value of type {} has no JSON", type_name(value));
  }

  /// Begins an element of a list or dict.
  void separate(bool first) {
    if (!first) add(style_.item_separator);
    break_line();
  }
  void break_line() {
    if (!style_.broken) return;
    add("\n");
    for (int i = 0; i < level_; ++i) add(style_.indent);
  }

  void write_list(const std::vector<Value>& items) {
    if (items.empty()) return add("[]");
    add("[");
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      separate(i == 0);
      write(items[i]);
    }
    --level_;
    break_line();
    add("]");
  }

  /// Keys that JSON lacks become text, as in Python.
  std::string key_text(const Value& key) {
    if (key.is<std::string_view>()) return json_string(key.as<std::string_view>(), style_.ascii);
    if (!key.is<None>() && !key.is_number()) run_.refuse("'tojson': a value of type {} is no key of an object", type_name(key));
    JsonWriter inner(run_, style_);
    return '"' + inner.text(key) + '"';
  }

  void write_dict(const Dict& dict) {
    if (dict.entries.empty()) return add("{}");
    std::vector<std::pair<Value, Value>> entries = dict.entries;
    run_.memory().charge(entries.size() * sizeof(entries[0]));
    if (style_.sorted)
      std::stable_sort(entries.begin(), entries.end(), [&](const auto& a, const auto& b) { return less(run_, a.first, b.first); });
    add("{");
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      separate(i == 0);
      add(key_text(entries[i].first));
      add(style_.key_separator);
      write(entries[i].second);
    }
    --level_;
    break_line();
    add("}");
  }

  const JsonStyle& style_;
  int level_ = 0;
};

}  // namespace

std::string float_text(double value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  std::string digits = fmt::format("{}", value);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  return digits;
}

std::string_view text_of(Renderer& run, const Value& value) {
  if (value.is<std::string_view>()) return value.as<std::string_view>();
  if (value.is<Undefined>()) return {};
  if (value.is<None>()) return "None";
  if (value.is<bool>()) return value.as<bool>() ? "True" : "False";
  if (value.is<Integer>()) return run.memory().keep(fmt::format("{}", value.as<Integer>()));
  if (value.is<double>()) return run.memory().keep(float_text(value.as<double>()));
  return run.memory().keep(repr(run, value));
}

std::string repr(Renderer& run, const Value& value) { return ReprWriter(run).text(value); }

std::string json_text(Renderer& run, const Value& value, const JsonStyle& style) { return JsonWriter(run, style).text(value); }

}  // namespace rlx::jinja
