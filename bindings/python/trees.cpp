#include "trees.h"

#include <atomic>
#include <map>
#include <mutex>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace rlx::python {
namespace {

/// How a class is taken apart, and made again.
struct Registered {
  nb::object flatten, unflatten;
};
using Registry = std::map<PyObject*, Registered>;  // by class; classes stay
/// The one that holds now. None is freed: other threads may read the one before, and the interpreter may be gone.
std::atomic<const Registry*>& latest() {
  static std::atomic<const Registry*> one = new Registry;
  return one;
}
const Registry& registry() { return *latest(); }

void add_registered_class(nb::handle type, nb::object flatten, nb::object unflatten) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  auto* const more = new Registry(registry());
  (*more)[type.inc_ref().ptr()] = {std::move(flatten), std::move(unflatten)};
  latest() = more;
}

nb::object sorted_keys(nb::handle dict) {
  if (PyDict_Size(dict.ptr()) == 0) return nb::steal(PyTuple_New(0));
  const nb::object keys = nb::steal(PyDict_Keys(dict.ptr()));
  if (PyList_Sort(keys.ptr()) != 0) {
    PyErr_Clear();
    fail("the keys of a dict do not compare: {}", nb::cast<std::string>(nb::str(nb::steal(PyDict_Keys(dict.ptr())))));
  }
  return nb::steal(PyList_AsTuple(keys.ptr()));
}

bool is_named_tuple(nb::handle value) { return PyTuple_Check(value.ptr()) && nb::hasattr(value.type(), "_fields"); }

bool same(const nb::object& a, const nb::object& b) { return a.is(b) || (a.is_valid() && b.is_valid() && a.equal(b)); }

nb::object list_of(const nb::object* values, std::size_t count) {
  nb::list list;
  for (std::size_t i = 0; i < count; ++i) list.append(values[i]);
  return list;
}

nb::object made(const Tree::Node& node, const nb::object* children) {
  switch (node.kind) {
    case Tree::Kind::leaf: break;
    case Tree::Kind::none: return nb::none();
    case Tree::Kind::tuple: return nb::tuple(list_of(children, node.children));
    case Tree::Kind::list: return list_of(children, node.children);
    case Tree::Kind::dict: {
      nb::dict dict;
      for (std::size_t i = 0; i < node.children; ++i) dict[node.rest[i]] = children[i];
      return dict;
    }
    case Tree::Kind::named_tuple: return node.type(*nb::tuple(list_of(children, node.children)));
    case Tree::Kind::registered: return registry().at(node.type.ptr()).unflatten(node.rest, nb::tuple(list_of(children, node.children)));
  }
  return {};
}

}  // namespace

void Tree::add_children(nb::handle values, const Leaves& leaves) {
  for (nb::handle child : values) add(child, leaves);
}

/// Containers of Python itself.
bool Tree::add_plain(Node& node, nb::handle value, const Leaves& leaves) {
  if (value.is_none()) node.kind = Kind::none;
  else if (PyTuple_CheckExact(value.ptr())) node.kind = Kind::tuple;
  else if (PyList_CheckExact(value.ptr())) node.kind = Kind::list;
  else if (PyDict_CheckExact(value.ptr())) node.kind = Kind::dict, node.rest = sorted_keys(value);
  else return false;
  if (node.kind == Kind::none) return true;
  node.children = static_cast<std::size_t>(PyObject_Length(value.ptr()));
  if (node.kind != Kind::dict) add_children(value, leaves);
  else
    for (nb::handle key : node.rest) add(nb::object(value[key]), leaves);
  return true;
}

bool Tree::add_registered(Node& node, nb::handle value, const Leaves& leaves) {
  const auto known = registry().find(value.type().ptr());
  if (known != registry().end()) {
    const nb::object parts = known->second.flatten(value);
    const auto children = nb::tuple(nb::object(parts[0]));
    node.kind = Kind::registered, node.rest = parts[1], node.children = children.size();
    add_children(children, leaves);
  } else if (is_named_tuple(value)) {
    // Its class may say another length.
    const auto items = nb::steal<nb::tuple>(PyTuple_GetSlice(value.ptr(), 0, PyTuple_GET_SIZE(value.ptr())));
    node.kind = Kind::named_tuple, node.children = items.size();
    add_children(items, leaves);
  } else {
    return false;
  }
  node.type = nb::borrow(value.type());
  return true;
}

void Tree::add(nb::handle value, const Leaves& leaves) {
  const std::size_t at = nodes_.size(), before = leaves.found.size();
  nodes_.emplace_back();
  Node node;
  const bool is_leaf = is_array(value) || (!leaves.are.is_none() && nb::cast<bool>(leaves.are(value)));
  if (is_leaf || !(add_plain(node, value, leaves) || add_registered(node, value, leaves))) leaves.found.push_back(nb::borrow(value));
  node.leaves = leaves.found.size() - before;
  node.size = nodes_.size() - at;
  nodes_[at] = std::move(node);
}

Tree Tree::flatten(nb::handle value, std::vector<nb::object>& leaves, nb::handle is_leaf) {
  Tree tree;
  tree.nodes_.reserve(8);
  tree.add(value, {leaves, is_leaf});
  return tree;
}

Tree Tree::tuple_of(const std::vector<Tree>& children) {
  Tree tree;
  Node top{.kind = Kind::tuple, .children = children.size(), .leaves = 0, .size = 1};
  tree.nodes_.emplace_back();
  for (const Tree& child : children) {
    top.leaves += child.leaf_count(), top.size += child.nodes_.size();
    tree.nodes_.insert(tree.nodes_.end(), child.nodes_.begin(), child.nodes_.end());
  }
  tree.nodes_.front() = std::move(top);
  return tree;
}

/// From the back: children stand on the stack, the first on top, when their container is made of them.
nb::object Tree::unflatten(const std::vector<nb::object>& leaves) const {
  if (leaves.size() < leaf_count()) fail("a tree of {} leaves is made of {}", leaf_count(), leaves.size());
  if (is_leaf()) return leaves.front();
  std::vector<nb::object> stack;
  std::size_t leaf = leaf_count();
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (node->kind == Kind::leaf) {
      stack.push_back(leaves[--leaf]);
      continue;
    }
    const std::size_t first = stack.size() - node->children;
    const std::vector<nb::object> children(stack.rbegin(), stack.rbegin() + static_cast<std::ptrdiff_t>(node->children));
    stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(first), stack.end());
    stack.push_back(made(*node, children.data()));
  }
  return stack.front();
}

std::vector<Tree> Tree::children() const {
  std::vector<Tree> all;
  for (std::size_t at = 1; at < nodes_.size(); at += nodes_[at].size) {
    const auto first = nodes_.begin() + static_cast<std::ptrdiff_t>(at);
    all.emplace_back().nodes_.assign(first, first + static_cast<std::ptrdiff_t>(nodes_[at].size));
  }
  return all;
}

std::size_t Tree::hash() const {
  std::size_t hash = nodes_.size();
  const auto mix = [&](std::size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15u; };
  for (const Node& node : nodes_) {
    mix(static_cast<std::size_t>(node.kind) + 8 * node.children);
    if (node.type.is_valid()) mix(reinterpret_cast<std::size_t>(node.type.ptr()));
    if (node.rest.is_valid()) mix(static_cast<std::size_t>(nb::hash(node.rest)));
  }
  return hash;
}

bool operator==(const Tree& a, const Tree& b) {
  if (a.nodes_.size() != b.nodes_.size()) return false;
  for (std::size_t i = 0; i < a.nodes_.size(); ++i) {
    const Tree::Node &one = a.nodes_[i], &other = b.nodes_[i];
    if (one.kind != other.kind || one.children != other.children || !one.type.is(other.type) || !same(one.rest, other.rest)) return false;
  }
  return true;
}

void Tree::write(std::size_t& at, std::string& text) const {
  const Node& node = nodes_[at++];
  if (node.kind == Kind::leaf) text += '*';
  if (node.kind == Kind::none) text += "None";
  if (node.kind == Kind::leaf || node.kind == Kind::none) return;
  if (node.type.is_valid()) text += nb::cast<std::string>(node.type.attr("__name__"));
  const std::string_view marks = node.kind == Kind::list ? "[]" : node.kind == Kind::dict ? "{}" : "()";
  text += marks[0];
  for (std::size_t i = 0; i < node.children; ++i) {
    if (i > 0) text += ", ";
    if (node.kind == Kind::dict) text += nb::cast<std::string>(nb::repr(node.rest[i])) + ": ";
    write(at, text);
  }
  if (node.kind == Kind::tuple && node.children == 1) text += ',';
  text += marks[1];
}

std::string Tree::to_string() const {
  std::string text;
  std::size_t at = 0;
  write(at, text);
  return text;
}

void bind_trees(nb::module_& m) {
  nb::class_<Tree>(m, "Tree", "The structure of nested containers, without their leaves.")
      .def_prop_ro("is_leaf", &Tree::is_leaf)
      .def_prop_ro("leaf_count", &Tree::leaf_count)
      .def_prop_ro("num_leaves", &Tree::leaf_count)
      .def(
          "unflatten",
          [](const Tree& tree, const nb::iterable& leaves) {
            std::vector<nb::object> all;
            for (nb::handle leaf : leaves) all.push_back(nb::borrow(leaf));
            return tree.unflatten(all);
          },
          nb::arg("leaves"), "The containers with these leaves.")
      .def_prop_ro("children", &Tree::children)
      .def("__repr__", &Tree::to_string)
      .def("__hash__", &Tree::hash)
      .def(
          "__eq__", [](const Tree& a, const Tree& b) { return a == b; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"));
  m.def("tuple_tree", &Tree::tuple_of);
  m.def(
      "flatten",
      [](nb::handle value, nb::handle is_leaf) {
        std::vector<nb::object> leaves;
        Tree tree = Tree::flatten(value, leaves, is_leaf);
        return nb::make_tuple(list_of(leaves.data(), leaves.size()), std::move(tree));
      },
      nb::arg("value").none(), nb::arg("is_leaf").none() = nb::none(),
      nb::sig(
          "def flatten(value: object, is_leaf: typing.Callable[[typing.Any], typing.Any] | None = None) -> tuple[list[typing.Any], Tree]"),
      "The leaves in order, and the structure. What `is_leaf` holds for is a leaf, None and containers too.");
  m.def(
      "unflatten", [](const Tree& tree, const std::vector<nb::object>& leaves) { return tree.unflatten(leaves); },
      nb::sig("def unflatten(tree: Tree, leaves: collections.abc.Sequence) -> typing.Any"));
  m.def("register_tree", &add_registered_class);
}

}  // namespace rlx::python
