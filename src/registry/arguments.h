#pragma once
#include <optional>
#include <type_traits>
#include <utility>

#include "rlx/op_types.h"
#include "rlx/registry.h"

namespace rlx {

namespace detail {

template <class T>
struct IsFunction : std::false_type {};
template <class R, class... Args>
struct IsFunction<std::function<R(Args...)>> : std::true_type {};

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

inline Values group_of(const Value& value) { return {value}; }
inline Values group_of(const Values& values) { return values; }

/// A group as a builder's function gives it.
inline void ungroup(const Values& group, Values& to) { to = group; }
inline void ungroup(const Values& group, Value& to) {
  if (group.size() != 1) fail("rlx.apply: a function gives {} values (allowed: 1)", group.size());
  to = group[0];
}

template <class R>
R results_of(const std::vector<Values>& groups) {
  const auto check = [&](std::size_t wanted) {
    if (groups.size() != wanted) fail("rlx.apply: a function gives {} groups of values (allowed: {})", groups.size(), wanted);
  };
  R results;
  if constexpr (std::same_as<R, std::pair<Values, Values>>) {
    check(2);
    results = {groups[0], groups[1]};
  } else {
    check(1);
    ungroup(groups[0], results);
  }
  return results;
}

/// The function that a builder takes, from the one that the caller gave.
template <class R, class... Args>
void convert(const GroupFunction& given, std::function<R(Args...)>& to) {
  to = [given](Args... args) { return results_of<R>(given({group_of(args)...})); };
}

}  // namespace detail

/// The arguments of one call, in the order of the builder's parameters.
class CallArguments {
 public:
  CallArguments(const Builder& builder, std::vector<CallArgument> items);

  template <class T>
  T get(std::size_t i) const {
    if constexpr (std::same_as<T, Operand>) return value(i);
    else if constexpr (std::same_as<T, Operands>) return values(i);
    else {
      T result{};
      read(i, result);
      return result;
    }
  }
  template <class T>
  T get(std::size_t i, T initial) const {
    return given(i) ? get<T>(i) : initial;
  }
  /// Replaces a member of a structure of options, where it is given.
  template <class T>
  void set(std::size_t i, T& member) const {
    if (given(i)) member = get<T>(i);
  }

 private:
  bool given(std::size_t i) const { return items_[i].index() != 0; }
  Value value(std::size_t i) const;
  Values values(std::size_t i) const;
  std::size_t word(std::size_t i) const;  // its place among the parameter's words
  std::int64_t integer(std::size_t i) const { return std::get<std::int64_t>(items_[i]); }

  void read(std::size_t i, Value& to) const { to = value(i); }
  void read(std::size_t i, Values& to) const { to = values(i); }
  void read(std::size_t i, bool& to) const { to = std::get<bool>(items_[i]); }
  void read(std::size_t i, std::int64_t& to) const { to = integer(i); }
  void read(std::size_t i, int& to) const;
  void read(std::size_t i, Axis& to) const { to = integer(i); }
  void read(std::size_t i, double& to) const;
  void read(std::size_t i, std::string& to) const { to = std::get<std::string>(items_[i]); }
  void read(std::size_t i, DType& to) const { to = std::get<DType>(items_[i]); }
  void read(std::size_t i, std::vector<std::int64_t>& to) const;
  void read(std::size_t i, Axes& to) const { read(i, to.values); }
  void read(std::size_t i, std::vector<double>& to) const;
  void read(std::size_t i, Dim& to) const;
  void read(std::size_t i, Dims& to) const;
  template <class T>
  void read(std::size_t i, T& to) const {
    if constexpr (std::is_enum_v<T>) to = static_cast<T>(word(i));
    else if constexpr (detail::IsOptional<T>::value) to = get<typename T::value_type>(i);
    else if constexpr (detail::IsFunction<T>::value) detail::convert(std::get<GroupFunction>(items_[i]), to);
    else  // std::vector<std::function>
      for (const GroupFunction& function : std::get<std::vector<GroupFunction>>(items_[i])) detail::convert(function, to.emplace_back());
  }

  const Builder& builder_;
  std::vector<CallArgument> items_;
};

}  // namespace rlx
