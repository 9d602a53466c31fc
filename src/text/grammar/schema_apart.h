#pragma once
#include <functional>
#include <string>
#include <vector>

#include "formats/json/json.h"

namespace rlx::grammar {

/// Whether no value that the grammar of one schema gives satisfies the other, as far as types, listed values, limits, lengths and required
/// members show it.
class Apart {
 public:
  /// `plain` gives a schema without $ref and allOf; `place` stands before messages.
  Apart(std::function<json::Value(const json::Value&)> plain, std::string place) : plain_(std::move(plain)), place_(std::move(place)) {}

  bool operator()(const json::Value& first, const json::Value& second) const { return are_apart(first, second, deepest); }

 private:
  static constexpr int deepest = 6;  // beyond it nothing is shown

  bool are_apart(const json::Value& first, const json::Value& second, int depth) const;
  std::vector<json::Value> alternatives(const json::Value& schema, int depth) const;
  bool of_one_type_each(const json::Value& a, const json::Value& b, int depth) const;
  bool numbers_apart(const json::Value& a, const json::Value& b) const;
  bool objects_of(const json::Value& a, const json::Value& b, int depth) const;

  std::function<json::Value(const json::Value&)> plain_;
  std::string place_;
};

}  // namespace rlx::grammar
