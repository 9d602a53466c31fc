#pragma once
#include <vector>

#include "item.h"

namespace rlx::python {

/// The structure of nested containers: what is left of a value when its leaves are taken out. None is a container without children, a dict
/// has its values in the order of its keys.
class Tree {
 public:
  enum class Kind : std::uint8_t { leaf, none, tuple, list, dict, named_tuple, registered };
  struct Node {
    Kind kind = Kind::leaf;
    std::size_t children = 0, leaves = 1, size = 1;  // `size`: nodes below and with it
    nb::object type = {}, rest = {};                 // the class; keys of a dict, what a registered class needs beside its children
  };

  /// The structure of a value, whose leaves are appended. What `is_leaf` holds for, which may be None, is a leaf too. Throws Error for a
  /// dict whose keys do not compare.
  static Tree flatten(nb::handle value, std::vector<nb::object>& leaves, nb::handle is_leaf = nb::none());
  static Tree tuple_of(const std::vector<Tree>& children);
  /// The value of this structure with these leaves. Throws Error where they are too few.
  nb::object unflatten(const std::vector<nb::object>& leaves) const;

  bool is_leaf() const { return nodes_.front().kind == Kind::leaf; }
  std::size_t leaf_count() const { return nodes_.front().leaves; }
  std::vector<Tree> children() const;
  std::size_t hash() const;
  std::string to_string() const;
  friend bool operator==(const Tree& a, const Tree& b);

 private:
  struct Leaves {
    std::vector<nb::object>& found;
    nb::handle are;  // see flatten
  };

  void add(nb::handle value, const Leaves& leaves);
  void add_children(nb::handle values, const Leaves& leaves);
  bool add_plain(Node& node, nb::handle value, const Leaves& leaves);
  bool add_registered(Node& node, nb::handle value, const Leaves& leaves);
  void write(std::size_t& at, std::string& text) const;

  std::vector<Node> nodes_;  // a container, then its children
};

}  // namespace rlx::python
