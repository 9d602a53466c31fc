#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

/// The values of chat templates: those of Python that Jinja shows. They are small handles; a Memory owns what they refer to until the
/// rendering ends, so strings are cut and lists passed on without copies.
namespace rlx::jinja {

/// Python's integers as far as 128 bits reach; arithmetic beyond is an error, never another number.
__extension__ using Integer = __int128;

struct Value;
struct Dict;
struct Arguments;
class Renderer;

/// Prints as nothing and counts as false; most other uses fail with `why`.
struct Undefined {
  std::string_view why;
};

struct None {};

/// Lists, tuples, and what else is iterated over.
struct Sequence {
  enum class Kind : std::uint8_t {
    list,
    tuple,
    range,
    view,      // of a dict: has a length, but no elements by index
    iterator,  // gives each item once: what `map`, `select` and the like make
  };
  Kind kind = Kind::list;
  std::vector<Value> items;
  std::size_t taken = 0;   // of an iterator
  std::string_view title;  // of a range or view, for its text: "range(0, 3)", "dict_items"
};

/// What few operations know: namespaces, macros, methods, loops.
class Object {
 public:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  /// As messages name it: "namespace".
  virtual std::string_view type_name() const = 0;
  virtual bool callable() const { return false; }
  /// The attribute, or nothing.
  virtual std::optional<Value> attribute(Renderer&, std::string_view) const;
  virtual Value call(Renderer& run, const Arguments& arguments) const;
};

struct Value : std::variant<Undefined, None, bool, Integer, double, std::string_view, Sequence*, Dict*, Object*> {
  using variant::variant;

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(*this);
  }
  template <class T>
  const T& as() const {
    return std::get<T>(*this);
  }
  bool is_number() const { return is<bool>() || is<Integer>() || is<double>(); }
};

/// The positional and named arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

/// Keys and values in the order of insertion.
struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  std::unordered_map<std::string_view, std::size_t> by_name;  // of the keys that are strings
};

/// {% set ns.x = ... %} changes one; nothing else of a template's values ever changes.
class Namespace : public Object {
 public:
  explicit Namespace(Dict* values) : values_(values) {}
  Dict& values() { return *values_; }
  std::string_view type_name() const override { return "namespace"; }
  std::optional<Value> attribute(Renderer& run, std::string_view name) const override;

 private:
  Dict* values_;
};

/// Owns strings, lists, dicts and objects. What is ever made counts against a limit, so that no template fills the memory.
class Memory {
 public:
  /// `owner` stands before messages.
  Memory(std::size_t limit, const std::string& owner) : limit_(limit), owner_(owner) {}

  std::string_view keep(std::string text);
  Sequence* sequence(Sequence::Kind kind, std::vector<Value> items, std::string_view title = {});
  Dict* dict();
  template <class T, class... Args>
  T* object(Args&&... args) {
    charge(sizeof(T));
    auto made = std::make_unique<T>(std::forward<Args>(args)...);
    T* pointer = made.get();
    objects_.push_back(std::move(made));
    return pointer;
  }
  /// Counts `bytes` that are about to be made. Throws Error beyond the limit.
  void charge(std::size_t bytes);

 private:
  std::size_t limit_, made_ = 0;
  const std::string& owner_;
  std::deque<std::string> strings_;
  std::deque<Sequence> sequences_;
  std::deque<Dict> dicts_;
  std::deque<std::unique_ptr<Object>> objects_;
};

}  // namespace rlx::jinja
