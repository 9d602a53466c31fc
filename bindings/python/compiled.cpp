// Compiled functions: a call with arguments like those of an earlier one is taken apart, looked up and run without Python.
#include "compiled.h"

#include <chrono>
#include <mutex>
#include <unordered_map>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include "released.h"
#include "rlx/program_file.h"
#include "rlx/result_memory.h"
#include "trees.h"
#include "words.h"

namespace rlx::python {
namespace {

constexpr std::chrono::microseconds least_unlocked(5);  // threads that hand the lock to each other more often only wait for it

thread_local std::string thread_device;  // see device_of_thread

/// Makes it the device of this thread; gives the one before. Throws Error for a name that no device has.
std::string set_device_of_thread(const std::string& name) {
  std::string now = name.empty() ? name : Device::named(name).name();
  if (now == Device::usual().name()) now.clear();
  std::swap(now, thread_device);
  return now;
}

/// A leaf of the arguments of a call.
struct Leaf {
  DType dtype = f32;
  bool weak = false;
  nb::object array = {};               // of rlx; not valid where the elements are given below
  std::optional<Array> elements = {};  // a number of Python, or a view of NumPy's memory

  const Item* item() const { return array.is_valid() ? &item_of(array) : nullptr; }
  bool is_traced() const { return array.is_valid() && item_of(array).is_traced(); }
  Array read() const { return elements ? *elements : rlx::python::read(item_of(array)); }
};

template <class T>
Leaf number(T value) {
  return {.dtype = dtype_of<T>, .weak = true, .elements = Array::of<T>({}, std::span<const T>(&value, 1))};
}

Leaf leaf_of(const nb::object& value) {
  if (!is_array(value)) {
    if (PyFloat_Check(value.ptr())) return number(static_cast<float>(PyFloat_AsDouble(value.ptr())));
    if (std::optional<Array> view = view_of_numpy(value)) {
      const DType dtype = view->dtype();
      return {.dtype = dtype, .elements = std::move(view)};
    }
  }
  nb::object array = is_array(value) ? value : as_leaf(value);
  const Item& item = item_of(array);
  return {.dtype = item.type().dtype, .weak = item.weak, .array = std::move(array)};
}

bool fits(const TracedInput& input, const Leaf& leaf) {
  if (input.type.dtype != leaf.dtype || input.weak != leaf.weak) return false;
  const Dims& wanted = input.type.shape;
  const auto every = [&](const auto& sizes) {
    if (sizes.size() != wanted.size()) return false;
    for (std::size_t axis = 0; axis < wanted.size(); ++axis)
      if (wanted[axis].is_static() && !(wanted[axis] == Dim(sizes[axis]))) return false;
    return true;
  };
  return leaf.elements ? every(leaf.elements->shape()) : every(leaf.item()->type().shape);
}

/// The results of a run.
std::vector<nb::object> wrap_results(const Compiled& compiled, std::vector<Array> arrays) {
  std::vector<nb::object> results;
  for (Array& array : arrays) {
    Item item(Tensor(std::move(array)));
    item.weak = compiled.is_weak(results.size());
    results.push_back(wrap(std::move(item)));
  }
  return results;
}

/// The programs of one function by what it was called with: structure, element types and shapes, values of static arguments.
class Programs {
 public:
  void add(nb::object statics, Tree arguments, std::shared_ptr<Compiled> program, Tree results) {
    const std::size_t hash = hash_of(statics, arguments);
    auto entry = std::make_shared<const Entry>(Entry{std::move(statics), std::move(arguments), std::move(program), std::move(results)});
    const auto like = near(hash);
    if (std::any_of(like.begin(), like.end(), [&](const auto& other) { return other->takes_same(*entry); }))
      return;  // another thread was faster
    const std::scoped_lock lock(mutex_);
    entries_.emplace(hash, std::move(entry));
  }

  /// The results; NotImplemented where there is no such program, or where a leaf is being traced.
  nb::object operator()(nb::handle statics, nb::handle arguments) const {
    std::vector<nb::object> values;
    const Tree tree = Tree::flatten(arguments, values);
    std::vector<Leaf> leaves;
    leaves.reserve(values.size());
    for (const nb::object& value : values) {
      leaves.push_back(leaf_of(value));
      if (leaves.back().is_traced()) return nb::borrow(Py_NotImplemented);
    }
    const std::shared_ptr<const Entry> entry = find(statics, tree, leaves);
    if (!entry) return nb::borrow(Py_NotImplemented);
    std::vector<Array> arrays;
    arrays.reserve(leaves.size());
    for (const Leaf& leaf : leaves) arrays.push_back(leaf.read());
    if (entry->program->has_donated()) {
      for (std::size_t i = 0; i < leaves.size(); ++i) values[i] = leaves[i].array, leaves[i] = {};
      entry->program->take_donated(values);
    }
    return entry->results.unflatten(wrap_results(*entry->program, (*entry->program)(std::move(arrays))));
  }

  std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return entries_.size();
  }

 private:
  struct Entry {
    nb::object statics;
    Tree arguments;
    std::shared_ptr<Compiled> program;
    Tree results;
    std::string device = device_of_thread();

    bool is_like(nb::handle others, const Tree& tree) const {
      return device == device_of_thread() && !program->is_outdated() && arguments == tree &&
             (nb::len(others) == 0 || statics.equal(others));
    }
    bool takes(nb::handle others, const Tree& tree, const std::vector<Leaf>& leaves) const {
      const auto& inputs = program->inputs();
      return is_like(others, tree) && std::equal(inputs.begin(), inputs.end(), leaves.begin(), leaves.end(), fits);
    }
    bool takes_same(const Entry& other) const {
      return is_like(other.statics, other.arguments) && program->inputs() == other.program->inputs();
    }
  };

  static std::size_t hash_of(nb::handle statics, const Tree& tree) {
    return tree.hash() ^ (nb::len(statics) == 0 ? 0 : static_cast<std::size_t>(nb::hash(statics)));
  }

  /// Those that may be meant. Comparing them may run anybody's Python, which may call this one again: without the lock.
  std::vector<std::shared_ptr<const Entry>> near(std::size_t hash) const {
    std::vector<std::shared_ptr<const Entry>> all;
    const std::scoped_lock lock(mutex_);
    for (auto [it, end] = entries_.equal_range(hash); it != end; ++it) all.push_back(it->second);
    return all;
  }

  std::shared_ptr<const Entry> find(nb::handle statics, const Tree& tree, const std::vector<Leaf>& leaves) const {
    const auto all = near(hash_of(statics, tree));
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry->takes(statics, tree, leaves); });
    return found == all.end() ? nullptr : *found;
  }

  mutable std::mutex mutex_;
  std::unordered_multimap<std::size_t, std::shared_ptr<const Entry>> entries_;  // by hash of structure and static values
};

}  // namespace

const std::string& device_of_thread() { return thread_device; }

GraphCache& graph_cache() {
  static std::mutex mutex;
  static auto* all = new std::map<std::string, GraphCache>;  // not freed: runs may be in flight when the interpreter ends
  const std::scoped_lock lock(mutex);
  if (const auto found = all->find(thread_device); found != all->end()) return found->second;
  const Device device = thread_device.empty() ? Device::usual() : Device::named(thread_device);
  return all->emplace(thread_device, GraphCache(Session(device))).first->second;
}

Compiled::Compiled(Trace& trace, nb::handle outputs) : cache_(graph_cache()), inputs_(trace.inputs()) {
  std::size_t count = 0;
  for (nb::handle output : outputs) weak_.push_back(item_of(output).weak);
  for (const Value& value : values_of(outputs, trace)) {
    const std::size_t donor = donor_of(value.type());
    if (donor < inputs_.size()) donors_.push_back({donor, count, nullptr});
    else add_result(count, value.type());
    trace.graph().output(donor < inputs_.size() ? inputs_[donor].name : std::to_string(count), value);
    ++count;
  }
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].donated && std::ranges::find(donors_, i, &Donor::input) == donors_.end())
      fail("jit of {}: of a donated argument {} is the type of no result that is left for it", trace.graph().name(),
           inputs_[i].type.to_string());
  trace.finish();
  for (nb::handle array : trace.captured()) captured_.push_back(item_of(array).known());
  if (count == 0) return;  // there is nothing to run
  const Released released;
  executable_ = donors_.empty() ? cache_.compile(trace.graph()) : cache_.session().compile(trace.graph());
}

/// The first donated input of that type whose memory no result has yet; the number of inputs: there is none.
std::size_t Compiled::donor_of(const Type& type) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].donated && inputs_[i].type == type && std::ranges::find(donors_, i, &Donor::input) == donors_.end()) return i;
  return inputs_.size();
}

void Compiled::take_donated(std::span<const nb::object> arrays) const {
  for (const Donor& donor : donors_) {
    const nb::object& array = arrays[donor.input];
    if (!array.is_valid()) continue;  // a view of NumPy's memory
    auto& item = nb::cast<Item&>(array);
    item.donated = item.type();
    item.tensor.reset();
  }
}

void Compiled::add_result(std::size_t place, const Type& type) {
  if (!type.is_static()) return;
  const auto bytes = static_cast<std::size_t>(type.size().value()) * static_cast<std::size_t>(info(type.dtype).bits) / 8;
  if (bytes < least_result_bytes) return;
  large_.push_back({place, type.dtype, {}, bytes});
  for (const Dim& size : type.shape) large_.back().shape.push_back(size.value());
}

/// Whether all are there. `waits`: computes them, which another thread may be doing that needs the lock.
bool Compiled::read_captured(std::map<std::string, Feed>& feeds, bool waits) const {
  for (std::size_t i = 0; i < captured_.size(); ++i) {
    std::optional<Array> value = captured_[i].known();
    if (!value && waits) value = captured_[i].read(graph_cache());
    if (!value) return false;
    feeds.insert_or_assign(fmt::format("captured.{}", i), std::move(*value));
  }
  return true;
}

std::vector<Array> Compiled::run(const std::map<std::string, Feed>& feeds) const {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<Array> large;
  std::map<std::string, Target> into;
  for (const Large& result : large_) {
    const std::shared_ptr<std::byte> memory = result_memory(result.bytes);
    into.emplace(std::to_string(result.place), Target(result.dtype, {memory.get(), result.bytes}));
    large.emplace_back(result.dtype, result.shape, std::span<const std::byte>(memory.get(), result.bytes), memory);
  }
  std::vector<Array> results;
  for (const auto& [name, array] : into.empty() ? executable_->run(feeds) : executable_->run(feeds, into)) results.push_back(array);
  for (std::size_t i = 0; i < large.size(); ++i)
    results.insert(results.begin() + static_cast<std::ptrdiff_t>(large_[i].place), std::move(large[i]));
  is_short_ = std::chrono::steady_clock::now() - begin < least_unlocked;
  return results;
}

/// A run whose donated inputs are states. That which the last run left lies there already.
std::vector<Array> Compiled::run_donated(std::vector<Array> inputs, std::map<std::string, Feed> feeds) const {
  const std::scoped_lock lock(turn_);
  Executable executable = *executable_;  // copies share their states
  for (Donor& donor : donors_) {
    Array& given = inputs[donor.input];
    if (given.bytes().data() != donor.last || donor.last == nullptr) executable.set_state(inputs_[donor.input].name, Feed(given));
    given = {};
    donor.last = nullptr;
  }
  std::vector<Array> results = run(feeds);
  for (Donor& donor : donors_) donor.last = results[donor.result].bytes().data();
  return results;
}

std::vector<Array> Compiled::operator()(std::vector<Array> inputs) const {
  if (inputs.size() != inputs_.size()) fail("a compiled function takes {} arrays (given: {})", inputs_.size(), inputs.size());
  if (!executable_) return {};
  std::map<std::string, Feed> feeds;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!inputs_[i].donated) feeds.emplace(inputs_[i].name, std::move(inputs[i]));
  if (has_donated()) {
    const Released released;
    read_captured(feeds, true);
    return run_donated(std::move(inputs), std::move(feeds));
  }
  if (is_short_ && read_captured(feeds, false)) return run(feeds);
  const Released released;
  read_captured(feeds, true);
  std::vector<Array> results = run(feeds);
  feeds.clear();
  return results;
}

std::string Compiled::dump(const std::string& stage) const {
  if (!executable_) fail("a function without results was not compiled");
  return executable_->dump(word<Stage>("dump", "stage", stage));
}

namespace {

/// The graph with what was captured as parameters.
Graph with_parameters(const Graph& graph) {
  Graph made(graph.name());
  std::map<ValueId, Value> known;
  for (const auto& [input, value] : graph.inputs()) {
    const InputKind kind = input.name.starts_with("captured.") ? InputKind::param : input.kind;
    known.emplace(value.id(), made.add_input({input.name, kind, input.type}));
  }
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(graph.size()); ++id) {
    if (known.contains({id, 0})) continue;
    const Node& node = graph.node(id);
    Values operands;
    for (const ValueId& operand : node.operands) operands.push_back(known.at(operand));
    const Values results = operands.empty() ? apply(made.data(), *node.op, node.attrs) : apply(*node.op, node.attrs, operands);
    for (std::size_t i = 0; i < results.size(); ++i) known.emplace(ValueId{id, static_cast<std::int32_t>(i)}, results[i]);
  }
  for (const auto& [name, value] : graph.outputs()) made.output(name, known.at(value.id()));
  return made;
}

}  // namespace

void Compiled::save(const std::filesystem::path& path) const {
  if (!executable_) fail("a function without results was not compiled");
  if (has_donated()) fail("{}: a function with donated arguments is not saved: their memory is that of callers", path.string());
  std::map<std::string, Feed> captured;
  Executable executable = *executable_;
  if (!captured_.empty()) {
    const Released released;
    read_captured(captured, true);
    executable = cache_.session().compile(with_parameters(ProgramFile::graph(executable)));
    for (const auto& [name, value] : captured) executable.set_param(name, value);
  }
  save_program(executable, path, true);
}

void bind_compiled(nb::module_& m) {
  m.def("set_device_of_thread", &set_device_of_thread);
  nb::class_<Compiled>(m, "Compiled", "A compiled function of arrays.")
      .def(nb::new_([](Trace& trace, nb::handle outputs) { return std::make_shared<Compiled>(trace, outputs); }))
      .def("__call__",
           [](const Compiled& compiled, nb::handle arrays) {
             std::vector<Array> inputs;
             std::vector<nb::object> given;
             for (nb::handle array : arrays) inputs.push_back(read(item_of(array))), given.push_back(nb::borrow(array));
             compiled.take_donated(given);
             given.clear();
             nb::list results;
             for (nb::object& result : wrap_results(compiled, compiled(std::move(inputs)))) results.append(std::move(result));
             return results;
           })
      .def("dump", &Compiled::dump, nb::arg("stage"), "The program at a stage: hir, mir, lir or kernels.")
      .def("save", &Compiled::save, nb::arg("path"),
           "Writes it to a file, for load_program: inputs are the leaves of the arguments, outputs those of the results.");
  nb::class_<Programs>(m, "Programs", "The programs of one function by what it was called with.")
      .def(nb::init<>())
      .def("add", &Programs::add)
      .def("__call__", &Programs::operator())
      .def("__len__", &Programs::size);
}

}  // namespace rlx::python
