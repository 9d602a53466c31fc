#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "lowering/program_file/reader.h"
#include "lowering/program_file/writer.h"

// What things consist of, said once for writing and reading: `list_parts(way, thing)` calls `way(name, part)` for each part. `way` is a
// ProgramWriter or a ProgramReader, which then fills the thing.

namespace rlx {

/// The thing, which a reader changes.
template <class Way, class Thing>
using Of = std::conditional_t<Way::reads, Thing, const Thing>;

namespace detail {

template <class T, template <class...> class Template>
inline constexpr bool is_a = false;
template <template <class...> class Template, class... Args>
inline constexpr bool is_a<Template<Args...>, Template> = true;

/// What a part of this type may be, within 64 bits with a sign.
template <class T>
inline constexpr std::int64_t least_of = std::numeric_limits<T>::min();
template <class T>
inline constexpr std::int64_t most_of =
    std::in_range<std::int64_t>(std::numeric_limits<T>::max()) ? static_cast<std::int64_t>(std::numeric_limits<T>::max())
                                                               : std::numeric_limits<std::int64_t>::max();

template <class Way, class T>
void integer_part(Way& way, const char* name, T& part, std::int64_t least, std::int64_t most) {
  if constexpr (Way::reads) part = static_cast<std::remove_const_t<T>>(way.integer(name, least, most));
  else way.integer(static_cast<std::int64_t>(part));
}

template <class Way, class T>
void list_items(Way& way, const char* name, T& items) {
  if constexpr (Way::reads) {
    items.clear();
    for (std::int64_t left = way.count(name); left > 0; --left) {
      if constexpr (is_a<T, std::vector>) {
        way(name, items.emplace_back());
      } else {
        typename T::value_type item{};
        way(name, item);
        items.insert(std::move(item));
      }
    }
  } else {
    way.integer(static_cast<std::int64_t>(items.size()));
    for (const auto& item : items) way(name, item);
  }
}

template <class Way, class T>
void list_entries(Way& way, const char* name, T& entries) {
  if constexpr (Way::reads) {
    std::vector<std::pair<typename T::key_type, typename T::mapped_type>> all;
    list_items(way, name, all);
    entries = T(all.begin(), all.end());
  } else {
    way.integer(static_cast<std::int64_t>(entries.size()));
    for (const auto& [key, value] : entries) way(name, key), way(name, value);
  }
}

template <class Way, class T>
void optional_part(Way& way, const char* name, T& part) {
  bool has = part.has_value();
  way(name, has);
  if constexpr (Way::reads) part.reset();
  if (!has) return;
  if constexpr (Way::reads) part.emplace();
  way(name, *part);
}

/// One of the alternatives.
template <class Way, class... Kinds>
void variant_part(ProgramReader& way, const char* name, std::variant<Kinds...>& part) {
  const auto kind = static_cast<std::size_t>(way.integer(name, 0, sizeof...(Kinds) - 1));
  std::size_t at = 0;
  const auto read_where = [&](auto alternative) {
    if (at++ == kind) way(name, alternative), part = std::move(alternative);
  };
  (read_where(Kinds{}), ...);
}
template <class Way, class... Kinds>
void variant_part(ProgramWriter& way, const char* name, const std::variant<Kinds...>& part) {
  way.integer(static_cast<std::int64_t>(part.index()));
  std::visit([&](const auto& alternative) { way(name, alternative); }, part);
}

/// What no other rule is for lists its own parts.
template <class Way, class T>
void compound_part(Way& way, const char* name, T& part) {
  using Plain = std::remove_const_t<T>;
  if constexpr (is_a<Plain, std::vector> || is_a<Plain, std::set>) list_items(way, name, part);
  else if constexpr (is_a<Plain, std::map>) list_entries(way, name, part);
  else if constexpr (is_a<Plain, std::optional>) optional_part(way, name, part);
  else if constexpr (is_a<Plain, std::variant>) variant_part<Way>(way, name, part);
  else if constexpr (is_a<Plain, std::pair>) way(name, part.first), way(name, part.second);
  else list_parts(way, part);
}

template <class Way, class T>
void describe_part(Way& way, const char* name, T& part) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::same_as<Plain, bool>) integer_part(way, name, part, 0, 1);
  else if constexpr (std::same_as<Plain, DType>) integer_part(way, name, part, 0, static_cast<std::int64_t>(dtype_table.size()) - 1);
  else if constexpr (std::integral<Plain>) integer_part(way, name, part, least_of<Plain>, most_of<Plain>);
  else if constexpr (requires { way.leaf(name, part); }) way.leaf(name, part);
  else compound_part(way, name, part);
}

}  // namespace detail

template <class T>
void ProgramReader::operator()(const char* name, T& part) {
  detail::describe_part(*this, name, part);
}
template <class T>
void ProgramReader::one_of(const char* name, T& part, T last) {
  detail::integer_part(*this, name, part, 0, static_cast<std::int64_t>(last));
}
template <class T>
void ProgramWriter::operator()(const char* name, const T& part) {
  detail::describe_part(*this, name, part);
}
template <class T>
void ProgramWriter::one_of(const char* /*name*/, const T& part, T /*last*/) {
  integer(static_cast<std::int64_t>(part));
}

template <class Way>
void list_parts(Way& way, Of<Way, Type>& type) {
  way("type", type.dtype), way("shape", type.shape);
}

}  // namespace rlx
