#pragma once
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "text/template/value.h"

/// Python's operations on values. What Python raises is an Error with the line that is being rendered.
namespace rlx::jinja {

/// As Python calls the type: 'str', 'dict'.
std::string_view type_name(const Value& value);

bool truth(const Value& value);
bool equal(Renderer& run, const Value& a, const Value& b);
/// Throws Error for values without an order.
bool less(Renderer& run, const Value& a, const Value& b);
bool contains(Renderer& run, const Value& container, const Value& item);

/// `op` is one of + - * / // % **.
Value binary(Renderer& run, std::string_view op, const Value& a, const Value& b);
/// `op` is + or -.
Value unary(Renderer& run, std::string_view op, const Value& a);

/// value.name, or value['name'] where there is no such attribute; undefined without either.
Value attribute_of(Renderer& run, const Value& value, std::string_view name);
/// value[key], or value.key where there is no such element; undefined without either.
Value item_of(Renderer& run, const Value& value, const Value& key);
/// value[begin:end:step]; none stands for a missing part.
Value slice_of(Renderer& run, const Value& value, const Value& begin, const Value& end, const Value& step);

/// The length of what has one, else nothing. Strings count code points.
std::optional<std::size_t> length_of(Renderer& run, const Value& value);
/// What a loop over `value` meets: elements, keys, characters. Takes what an iterator still had.
std::vector<Value> items_of(Renderer& run, const Value& value);

const Value* find(Renderer& run, const Dict& dict, const Value& key);
/// Adds the key or replaces its value. Throws Error for a key that Python cannot hash.
void insert(Renderer& run, Dict& dict, const Value& key, const Value& value);

/// An integer for sizes and indices. Throws Error naming `what` for another type; beyond 64 bits the nearest that fits.
std::ptrdiff_t as_index(Renderer& run, const Value& value, std::string_view what);
/// Of integers and bools.
std::optional<Integer> as_integer(const Value& value);
double as_float(const Value& number);

}  // namespace rlx::jinja
