#include "text/template/template.h"

#include <cstdint>

#include "rlx/error.h"
#include "text/template/python_operations.h"
#include "text/template/renderer.h"
#include "text/template/syntax.h"

namespace rlx::jinja {
namespace {

/// As a value of templates. The document outlives the rendering, so strings are not copied. Its nesting is limited by the reader.
Value value_of(Renderer& run, const json::Value& json) {
  switch (json.type()) {
    case json::Value::value_t::null: return None{};
    case json::Value::value_t::boolean: return json.get<bool>();
    case json::Value::value_t::number_integer: return Integer{json.get<std::int64_t>()};
    case json::Value::value_t::number_unsigned: return Integer{json.get<std::uint64_t>()};
    case json::Value::value_t::number_float: return json.get<double>();
    case json::Value::value_t::string: return std::string_view(json.get_ref<const std::string&>());
    case json::Value::value_t::array: {
      std::vector<Value> items;
      for (const json::Value& item : json) items.push_back(value_of(run, item));
      return run.list(std::move(items));
    }
    case json::Value::value_t::object: {
      Dict* dict = run.memory().dict();
      for (const auto& [key, value] : json.items()) insert(run, *dict, std::string_view(key), value_of(run, value));
      return dict;
    }
    case json::Value::value_t::binary:
    case json::Value::value_t::discarded: break;
  }
  fail_internal("template: a value of JSON type {}", json.type_name());
}

}  // namespace

Template Template::parse(std::string_view source, std::string name) { return Template(jinja::parse(source, std::move(name))); }

const std::string& Template::name() const { return syntax_->name; }

std::string Template::render(const json::Value& variables, const RenderOptions& options) const {
  if (!variables.is_object()) fail("{}: the variables are a value of type {} (allowed: an object)", name(), variables.type_name());
  Renderer run(*syntax_, options);
  for (const auto& [key, value] : variables.items()) run.define(key, value_of(run, value));
  return run.render();
}

}  // namespace rlx::jinja
