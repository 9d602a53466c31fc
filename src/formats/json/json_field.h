#pragma once
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/json/json.h"
#include "rlx/error.h"

namespace rlx {

/// A value in a JSON file together with where it stands, so that every error names the file and the field:
/// `tokenizer.json: model.vocab: expected an object, found a number`. Refers to the document, which must outlive it.
class JsonField {
 public:
  JsonField(const json::Value& value, std::string file, std::string path = "")
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  const json::Value& value() const { return *value_; }

  /// The member `name`; an Error if this is no object or has no such member.
  JsonField at(std::string_view name) const;
  /// The member `name`, or nothing where it is absent or null.
  std::optional<JsonField> find(std::string_view name) const;
  /// The elements of an array.
  std::vector<JsonField> items() const;
  /// The members of an object, with their names: looking up each would take a time that grows with the square of their number.
  std::vector<std::pair<std::string, JsonField>> members() const;

  std::string as_string() const;
  bool as_bool() const;
  /// An integer in [low, high].
  std::uint64_t as_integer(std::uint64_t low, std::uint64_t high) const;
  /// A token's id: an integer in [0, 2^31).
  std::int32_t as_id() const { return static_cast<std::int32_t>(as_integer(0, std::numeric_limits<std::int32_t>::max())); }
  /// The index of this string in `names`; an Error that lists them if it is none of them.
  std::size_t as_one_of(std::initializer_list<std::string_view> names) const;
  /// This field's member `type`, which says the kind of a component.
  std::string kind() const { return at("type").as_string(); }

  /// A finite number.
  double as_number() const;
  /// The file and the field, for messages.
  std::string place() const { return path_.empty() ? file_ : fmt::format("{}: {}", file_, path_); }

  /// Throws an Error with the file and the field before `text`.
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) const {
    fail("{}: {}{}{}", file_, path_, path_.empty() ? "" : ": ", fmt::format(text, std::forward<Args>(args)...));
  }
  /// Throws an Error that names this component's kind and the kinds that are supported.
  [[noreturn]] void refuse_kind(std::string_view supported) const;

 private:
  [[noreturn]] void refuse_type(std::string_view expected) const;
  JsonField member(const json::Value& value, std::string_view name) const;

  const json::Value* value_;
  std::string file_;
  std::string path_;
};

}  // namespace rlx
