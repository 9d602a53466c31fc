#include "ir/text/text_values.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "base/checked.h"
#include "base/names.h"
#include "ir/array_type.h"

namespace rlx {
namespace {

constexpr std::size_t most_axes = 64;  // NumPy's limit

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// Elements of a fixed shape, or nothing when they are too many for any machine.
std::optional<std::int64_t> element_count(const std::vector<std::int64_t>& shape) {
  auto count = checked_product(shape);
  return count && checked_mul(*count, std::int64_t{16}) ? count : std::nullopt;
}

/// Where T stands in Attr.
template <class T>
constexpr std::size_t attr_kind = [] {
  std::size_t kind = 0;
  [&]<class... Kinds>(const std::variant<Kinds...>*) {
    bool found = false;
    ((found = found || std::same_as<T, Kinds>, kind += found ? 0 : 1), ...);
  }(static_cast<const Attr*>(nullptr));
  return kind;
}();

}  // namespace

template <class Number>
Number ValueReader::parse(bool negative) {
  const Token token = lexer_.expect(Token::Kind::number, "a number");
  const std::string digits = (negative ? "-" : "") + std::string(token.text);
  Number value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range)
    lexer_.fail_at(token.at, fmt::format("{} is out of range (allowed: {}..{})", digits, std::numeric_limits<Number>::lowest(),
                                         std::numeric_limits<Number>::max()));
  if (error != std::errc() || end != digits.data() + digits.size()) lexer_.fail_at(token.at, fmt::format("{} is no integer", digits));
  return value;
}

void ValueReader::declare_symbols() {
  if (!lexer_.accept("(")) return;
  while (!lexer_.at(")")) {
    const Token name = lexer_.expect(Token::Kind::word, "a symbol");
    lexer_.expect("<=");
    const Position at = lexer_.peek().at;
    const std::int64_t bound = integer();
    if (bound < 1) lexer_.fail_at(at, fmt::format("symbol '{}': bound {} is below 1", name.text, bound));
    if (!symbols_.emplace(name.text, Dim::symbol(std::string(name.text), bound)).second)
      lexer_.fail_at(name.at, fmt::format("symbol '{}' is declared twice", name.text));
    if (!lexer_.accept(",")) break;
  }
  lexer_.expect(")");
}

std::int64_t ValueReader::magnitude(bool negative) { return parse<std::int64_t>(negative); }

std::int64_t ValueReader::integer() {
  const bool negative = lexer_.accept("-");
  return magnitude(negative);
}

/// A number, inf or nan; `narrow` rounds once, to f32.
double ValueReader::component(bool narrow) {
  const bool negative = lexer_.accept("-");
  const double sign = negative ? -1 : 1;
  if (lexer_.accept_word("inf")) return sign * std::numeric_limits<double>::infinity();
  if (lexer_.accept_word("nan")) return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  return narrow ? static_cast<double>(parse<float>(negative)) : parse<double>(negative);
}

/// As `component`, and `nan "7ff8000000000001"` for the NaN of these bits.
double ValueReader::number() {
  const double value = component(false);
  if (!std::isnan(value) || lexer_.peek().kind != Token::Kind::string) return value;
  const Token token = lexer_.take();
  std::uint64_t bits = 0;
  const char *first = std::to_address(token.text.begin()), *last = first + token.text.size();
  const auto [end, error] = std::from_chars(first, last, bits, 16);
  const auto exact = std::bit_cast<double>(bits);
  if (error != std::errc() || end != last || !std::isnan(exact))
    lexer_.fail_at(token.at, fmt::format("{} are not the bits of a NaN", quote_name(token.text)));
  return exact;
}

DType ValueReader::dtype() {
  const Token token = lexer_.expect(Token::Kind::word, "an element type");
  if (auto found = parse_dtype(token.text)) return *found;
  std::vector<std::string_view> names;
  for (const DTypeInfo& row : dtype_table) names.push_back(row.name);
  lexer_.fail_at(token.at, fmt::format("element type {} is unknown{}", quote_name(token.text), near_or_allowed(token.text, names)));
}

Dim ValueReader::factor(bool negative) {
  if (lexer_.peek().kind != Token::Kind::word) return magnitude(negative);
  const Token token = lexer_.take();
  const auto it = symbols_.find(token.text);
  if (it != symbols_.end()) return negative ? -it->second : it->second;
  std::vector<std::string_view> names;
  for (const auto& [name, symbol] : symbols_) names.push_back(name);
  lexer_.fail_at(token.at,
                 fmt::format("symbol {} is not declared in the head of the graph{}", quote_name(token.text), near_hint(token.text, names)));
}

Dim ValueReader::term(bool negative) {
  const Position at = lexer_.peek().at;
  Dim product = factor(negative);
  while (lexer_.accept("*")) {
    const Dim next = factor(false);
    product = lexer_.placed(at, [&] { return product * next; });
  }
  return product;
}

/// A polynomial as Dim prints it: 2*B*S-3.
Dim ValueReader::dim() {
  const Position at = lexer_.peek().at;
  Dim sum = term(lexer_.accept("-"));
  while (lexer_.at("+") || lexer_.at("-")) {
    const Dim next = term(lexer_.take().text == "-");
    sum = lexer_.placed(at, [&] { return sum + next; });
  }
  return sum;
}

Dims ValueReader::dims() {
  Dims sizes;
  lexer_.expect("[");
  while (!lexer_.at("]")) {
    if (sizes.size() == most_axes) lexer_.fail_at(lexer_.peek().at, fmt::format("a shape has more than {} axes", most_axes));
    sizes.push_back(dim());
    if (!lexer_.accept(",")) break;
  }
  lexer_.expect("]");
  return sizes;
}

Type ValueReader::type() {
  const Position at = lexer_.peek().at;
  const DType element = dtype();
  Type type{element, dims()};
  check_size(at, type);
  return type;
}

/// That the bytes of a value can be counted, with the symbols at their least.
void ValueReader::check_size(Position at, const Type& type) const {
  std::vector<std::int64_t> sizes;
  for (const Dim& dim : type.shape) sizes.push_back(lexer_.placed(at, [&] { return dim.lower(); }));
  if (!element_count(sizes)) lexer_.fail_at(at, fmt::format("{} has too many elements (allowed: below 2^59)", type.to_string()));
}

std::vector<std::int64_t> ValueReader::integers() {
  std::vector<std::int64_t> values;
  lexer_.expect("[");
  while (!lexer_.at("]")) {
    values.push_back(integer());
    if (!lexer_.accept(",")) break;
  }
  lexer_.expect("]");
  return values;
}

std::string ValueReader::text(const Field& field) {
  const Position at = lexer_.peek().at;
  std::string value = lexer_.name(fmt::format("a word or string for '{}'", field.name));
  bool known = field.words.empty();
  for (std::string_view word : field.words) known = known || word == value;
  if (!known) lexer_.fail_at(at, fmt::format("{} {} is unknown{}", field.name, quote_name(value), near_or_allowed(value, field.words)));
  return value;
}

void ValueReader::element(Array& into, std::int64_t i) {
  const DType dtype = into.dtype();
  const Position at = lexer_.peek().at;
  const bool narrow = dtype == f32 || dtype == c64;
  switch (info(dtype).kind) {
    case DTypeClass::boolean: {
      const bool truth = lexer_.accept_word("true");
      if (!truth && !lexer_.accept_word("false")) lexer_.fail_expected("true or false");
      return into.set_int(i, truth);
    }
    case DTypeClass::signed_int: {
      const std::int64_t value = integer();
      into.set_int(i, value);
      if (into.get_int(i) != value) lexer_.fail_at(at, fmt::format("{} does not fit {}", value, name(dtype)));
      return;
    }
    case DTypeClass::unsigned_int: {
      const auto value = parse<std::uint64_t>(false);
      into.set_uint(i, value);
      if (into.get_uint(i) != value) lexer_.fail_at(at, fmt::format("{} does not fit {}", value, name(dtype)));
      return;
    }
    case DTypeClass::floating: return into.set_double(i, component(narrow));
    case DTypeClass::complex: break;
  }
  lexer_.expect("(");
  const double real = component(narrow);
  lexer_.expect(",");
  const double imaginary = component(narrow);
  lexer_.expect(")");
  into.set_complex(i, {real, imaginary});
}

Array ValueReader::elements(const std::vector<std::int64_t>& shape, DType dtype, std::int64_t count) {
  const Position at = lexer_.peek().at;
  lexer_.expect("{");
  // Every element takes a character, so a shape cannot claim more memory than the text is worth.
  if (static_cast<std::size_t>(count) > lexer_.remaining()) lexer_.fail_at(at, fmt::format("the text ends before the {} elements", count));
  Array array(dtype, shape);
  std::int64_t read = 0;
  while (!lexer_.at("}")) {
    if (read == count) lexer_.fail_at(lexer_.peek().at, fmt::format("more than the {} elements of the shape", count));
    element(array, read++);
    if (!lexer_.accept(",")) break;
  }
  if (read != count) lexer_.fail_at(lexer_.peek().at, fmt::format("{} elements, the shape has {}", read, count));
  lexer_.expect("}");
  return array;
}

Array ValueReader::bytes(const std::vector<std::int64_t>& shape, DType dtype, std::int64_t count) {
  const Token token = lexer_.expect(Token::Kind::string, "a string of hexadecimal digits");
  const auto wanted = static_cast<std::size_t>(bytes_for(dtype, count));
  if (token.text.size() % 2 != 0 || token.text.size() / 2 != wanted)
    lexer_.fail_at(token.at, fmt::format("{} hexadecimal digits (needed: {})", token.text.size(), 2 * wanted));
  Array array(dtype, shape);
  const auto into = array.mutable_bytes();
  for (std::size_t i = 0; i < wanted; ++i) {
    const int high = hex_digit(token.text[2 * i]), low = hex_digit(token.text[2 * i + 1]);
    if (high < 0 || low < 0)
      lexer_.fail_at(token.at, fmt::format("{} are not hexadecimal digits", quote_name(token.text.substr(2 * i, 2))));
    into[i] = static_cast<std::byte>(high * 16 + low);
  }
  return array;
}

/// f32[2] {1, 2} or f32[2] bytes "0000803f00000040" or f32[2] array "name".
Array ValueReader::array() {
  const Position at = lexer_.peek().at;
  const Type type = this->type();
  std::vector<std::int64_t> shape;
  for (const Dim& dim : type.shape) {
    if (!dim.is_static() || dim.value() < 0) lexer_.fail_at(at, fmt::format("an array cannot have the type {}", type.to_string()));
    shape.push_back(dim.value());
  }
  const auto count = element_count(shape);
  if (!count) fail_internal("text: the size of {} was not checked", type.to_string());
  if (lexer_.accept_word("bytes")) return bytes(shape, type.dtype, *count);
  if (lexer_.accept_word("array")) return named_array(type);
  if (!lexer_.at("{")) lexer_.fail_expected("'{', 'bytes' or 'array'");
  return elements(shape, type.dtype, *count);
}

Array ValueReader::named_array(const Type& type) {
  const Token token = lexer_.expect(Token::Kind::string, "the name of an array");
  if (!find_) lexer_.fail_at(token.at, "an array is kept outside of this text, in a graph file");
  const Array found = lexer_.placed(token.at, [&] { return find_(lexer_.unescape(token)); });
  const Type seen = type_of(found);
  if (!(seen == type))
    lexer_.fail_at(token.at, fmt::format("array {} is {}, stated {}", quote_name(token.text), seen.to_string(), type.to_string()));
  return found;
}

Attr ValueReader::value(const Field& field) {
  const Position at = lexer_.peek().at;
  switch (field.kind) {
    case attr_kind<bool>:
      if (lexer_.accept_word("true")) return true;
      if (lexer_.accept_word("false")) return false;
      lexer_.fail_expected("true or false");
    case attr_kind<std::int64_t>: return integer();
    case attr_kind<double>: return number();
    case attr_kind<std::string>: return text(field);
    case attr_kind<DType>: return dtype();
    case attr_kind<std::vector<std::int64_t>>: return integers();
    case attr_kind<Dims>: return dims();
    case attr_kind<Array>: return array();
    default: lexer_.fail_at(at, fmt::format("attribute '{}' has no text form", field.name));
  }
}

}  // namespace rlx
