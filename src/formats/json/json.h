#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

/// Strict JSON (RFC 8259): duplicate keys, a byte-order mark, text that is not UTF-8, lone surrogates, comments, trailing commas
/// and trailing text are errors, and nesting is limited. Nothing here recurses with the depth of the input.
namespace rlx::json {

/// Objects keep the file's order. Looking up a key costs time linear in the number of keys: iterate over large objects.
/// Integers that do not fit 64 bits become floats, so `is_number_integer` is the test for a size.
using Value = nlohmann::ordered_json;

struct Options {
  int max_depth = 64;                            ///< nested arrays and objects allowed
  bool wide_integers = true;                     ///< let integers that do not fit 64 bits become floats; else they are errors
  bool allow_non_finite = false;                 ///< accept NaN, Infinity and -Infinity, as Python's json module writes them
  std::size_t max_bytes = std::size_t{1} << 28;  ///< larger texts are refused before they are read
};

/// Throws Error "{what}: line 3, column 7: ..."; columns count bytes from 1.
Value parse(std::string_view text, std::string_view what, Options options = {});

/// The whole file, which messages name by its path.
Value read_file(const std::filesystem::path& path, Options options = {});

/// `text` as a JSON string with its quotes, on one line as `line` has it. Throws Error naming `what` when it is not UTF-8.
std::string quote(std::string_view text, std::string_view what);

/// `value` on one line, whatever a reader takes for the end of one: U+0085, U+2028 and U+2029 are escaped, too. Bytes of texts that are not
/// UTF-8 become U+FFFD.
std::string line(const Value& value);

}  // namespace rlx::json
