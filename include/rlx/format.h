#pragma once
#include <ostream>
#include <string>

#include <fmt/format.h>

#include "rlx/type.h"

/// Types and sizes as text, "f32[B,128]": with `<<` and in fmt's format strings, where they take what strings take ("{:>12}").
namespace rlx {

inline std::ostream& operator<<(std::ostream& out, DType type) { return out << name(type); }
inline std::ostream& operator<<(std::ostream& out, const Dim& size) { return out << size.to_string(); }
inline std::ostream& operator<<(std::ostream& out, const Type& type) { return out << type.to_string(); }

}  // namespace rlx

template <>
struct fmt::formatter<rlx::DType> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(rlx::DType type, Context& context) const {
    const std::string_view text = rlx::name(type);
    return fmt::formatter<fmt::string_view>::format({text.data(), text.size()}, context);
  }
};

template <>
struct fmt::formatter<rlx::Dim> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const rlx::Dim& size, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(size.to_string(), context);
  }
};

template <>
struct fmt::formatter<rlx::Type> : fmt::formatter<fmt::string_view> {
  template <class Context>
  auto format(const rlx::Type& type, Context& context) const {
    return fmt::formatter<fmt::string_view>::format(type.to_string(), context);
  }
};
