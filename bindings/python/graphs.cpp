// Graphs, sessions and executables, as the C++ interface has them.
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "item.h"
#include "released.h"
#include "rlx/io.h"
#include "rlx/program_file.h"
#include "rlx/session.h"
#include "rlx/text.h"
#include "rlx/transform.h"
#include "words.h"

namespace rlx::python {
namespace {

using Named = std::map<std::string, nb::object>;

Array array_of(nb::handle object) {
  const nb::object array = is_array(object) ? nb::borrow(object) : as_array(object);
  return read(item_of(array));
}

NamedArrays arrays_of(const Named& objects) {
  NamedArrays arrays;
  for (const auto& [name, object] : objects) arrays.emplace(name, array_of(object));
  return arrays;
}

nb::object wrapped(Array array) { return wrap(Item(Tensor(std::move(array)))); }

nb::dict wrapped(const NamedArrays& arrays) {
  nb::dict items;
  for (const auto& [name, array] : arrays) items[name.c_str()] = wrapped(array);
  return items;
}

nb::dict run(const Executable& executable, const Named& inputs) {
  std::map<std::string, Feed> feeds;
  for (auto& [name, array] : arrays_of(inputs)) feeds.emplace(name, array);
  std::vector<std::pair<std::string, Array>> results;
  {
    const Released released;
    for (const auto& [name, array] : executable.run(feeds)) results.emplace_back(name, array);
    feeds.clear();
  }
  nb::dict items;
  for (auto& [name, array] : results) items[name.c_str()] = wrapped(std::move(array));
  return items;
}

nb::list reports(const Executable& executable) {
  nb::list rows;
  for (const NodeReport& report : executable.explain()) rows.append(nb::make_tuple(report.text, report.how, report.by));
  return rows;
}

/// A row for each launch, as a table of columns by name takes them.
nb::list profile(const Executable& executable, const Named& inputs, int repeats) {
  std::map<std::string, Feed> feeds;
  for (auto& [name, array] : arrays_of(inputs)) feeds.emplace(name, array);
  std::vector<LaunchReport> launches;
  {
    const Released released;
    launches = executable.profile(feeds, repeats);
  }
  nb::list rows;
  for (const LaunchReport& launch : launches) {
    nb::dict row;
    row["name"] = launch.name, row["kind"] = launch.kind, row["types"] = launch.types, row["layer"] = launch.layer;
    row["ops"] = launch.ops, row["pass"] = launch.pass, row["arithmetic"] = launch.arithmetic;
    row["flops"] = launch.flops, row["bytes"] = launch.bytes, row["seconds"] = launch.seconds;
    rows.append(row);
  }
  return rows;
}

void make_session(Session* self, int threads, const std::string& precision, bool claims, bool fuse, bool check_indices,
                  std::optional<std::filesystem::path> cache_folder, const std::string& cpu_level, const std::string& device) {
  SessionOptions options;
  options.threads = threads;
  options.precision = word<Precision>("Session", "precision", precision);
  options.claims = claims, options.fuse = fuse, options.check_indices = check_indices;
  options.cache_folder = std::move(cache_folder);
  options.cpu_level = cpu_level;
  new (self) Session(device.empty() ? Device::usual() : Device::named(device), options);
}

Executable compile(const Session& session, const Graph& graph) {
  const Released released;
  return session.compile(graph);
}

nb::list inputs_of(const Graph& graph) {
  nb::list rows;
  static constexpr const char* kinds[] = {"input", "param", "state"};
  for (const auto& [input, value] : graph.inputs())
    rows.append(nb::make_tuple(input.name, kinds[static_cast<std::size_t>(input.kind)], input.type.to_string()));
  return rows;
}

nb::list outputs_of(const Graph& graph) {
  nb::list rows;
  for (const auto& [name, value] : graph.outputs()) rows.append(nb::make_tuple(name, value.type().to_string()));
  return rows;
}

Dims sizes_of(nb::handle shape) {
  Dims dims;
  for (nb::handle size : shape) dims.push_back(nb::isinstance<Dim>(size) ? nb::cast<Dim>(size) : Dim(nb::cast<std::int64_t>(size)));
  return dims;
}

using Names = std::vector<std::string>;

/// Further graphs made of one: see rlx/transform.h.
void bind_graph_transforms(nb::module_& m) {
  m.def("grad_graph", &grad_graph, nb::arg("graph"), nb::arg("wrt"), nb::arg("with_value"));
  m.def("jvp_graph", &jvp_graph, nb::arg("graph"), nb::arg("wrt"));
  m.def("hvp_graph", &hvp_graph, nb::arg("graph"), nb::arg("wrt"));
  m.def("jacobian_graph", [](const Graph& graph, const Names& wrt, bool forward) {
    return jacobian_graph(graph, wrt, forward ? JacobianMode::forward : JacobianMode::reverse);
  });
  m.def("vmap_graph", [](const Graph& graph, const std::map<std::string, std::optional<std::int64_t>>& axes, std::int64_t out,
                         nb::handle size) { return vmap_graph(graph, axes, out, sizes_of(nb::make_tuple(size))[0]); });
}

nb::tuple load_program(const std::filesystem::path& path, const std::string& device, int threads) {
  std::optional<Executable> executable;
  {
    const Released released;
    executable = ProgramFile::load(path, device.empty() ? Device::usual() : Device::named(device), {.threads = threads});
  }
  return nb::make_tuple(*executable, ProgramFile::graph(*executable));
}

void bind_executables(nb::module_& m) {
  nb::class_<Executable>(m, "Executable", "A compiled graph. Any number of threads may run it.")
      .def(nb::init<const Executable&>())
      .def(
          "set_param", [](Executable& e, const std::string& name, nb::handle value) { e.set_param(name, array_of(value)); },
          nb::arg("name"), nb::arg("value"), "Binds a parameter, without a copy where the array owns its memory.")
      .def(
          "set_params", [](Executable& e, const Named& values) { e.set_params(arrays_of(values)); }, nb::arg("values"),
          "Binds parameters and replaces states by their names, all of them or none.")
      .def("missing_params", &Executable::missing_params, "Parameters that are not bound yet.")
      .def(
          "state", [](const Executable& e, const std::string& name) { return wrapped(e.state(name)); }, nb::arg("name"))
      .def(
          "set_state", [](Executable& e, const std::string& name, nb::handle value) { e.set_state(name, array_of(value)); },
          nb::arg("name"), nb::arg("value"))
      .def("run", &run, nb::arg("inputs"), "The outputs by name; `inputs` are arrays of rlx, NumPy or others by name.")
      .def(
          "dump", [](const Executable& e, const std::string& stage) { return e.dump(word<Stage>("dump", "stage", stage)); },
          nb::arg("stage"), "The program at a stage: hir, mir, lir or kernels.")
      .def("explain", &reports, "For each node its text, how it is computed, and by what.")
      .def("profile", &profile, nb::arg("inputs"), nb::arg("repeats") = 5, "For each launch its cost and the least time of several runs.")
      .def("save", &save_program, nb::arg("path"), nb::arg("weights") = false,
           "Writes it to a file for load_program: machine code, or what the driver of its device compiles; `weights`: with the values of "
           "parameters and states.")
      .def_prop_ro("arena_bytes", &Executable::arena_bytes);
  m.def("load_program", &load_program, nb::arg("path"), nb::arg("device") = "", nb::arg("threads") = 0,
        "What Executable.save, Compiled.save or `rlx compile` wrote, and its graph. Its code is run: open files of those whom you trust "
        "alone.");
}

void bind_graph(nb::module_& m) {
  nb::class_<Value>(m, "Value", "A value of a graph, for Trace.value.");
  nb::class_<Graph>(m, "Graph", "A tensor program with named inputs and outputs.")
      .def(nb::init<const Graph&>())
      .def(nb::init<std::string>(), nb::arg("name"))
      .def("_add_input",
           [](Graph& graph, const std::string& name, nb::handle shape, nb::handle dtype, const std::string& kind) {
             const Place place(&caller);
             const auto of_kind = kind == "param" ? InputKind::param : kind == "state" ? InputKind::state : InputKind::input;
             return graph.add_input({name, of_kind, {as_dtype(dtype), sizes_of(shape)}});
           })
      .def("_add_output",
           [](Graph& graph, const std::string& name, nb::handle array) {
             const Place place(&caller);
             graph.output(name, item_of(array).value);
           })
      .def_prop_ro("name", &Graph::name)
      .def_prop_ro("inputs", &inputs_of, "Name, kind and type of each input.")
      .def_prop_ro("outputs", &outputs_of, "Name and type of each output.")
      .def("__len__", &Graph::size)
      .def("__str__", &to_text)
      .def(
          "__eq__", [](const Graph& a, const Graph& b) { return structurally_equal(a, b); }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", &structural_hash);
  m.def(
      "parse_graph", [](const std::string& text, const std::string& what) { return parse_graph(text, what); }, nb::arg("text"),
      nb::arg("what") = "graph", "The graph that a text describes.");
}

/// Graphs and arrays in safetensors files.
void bind_files(nb::module_& m) {
  m.def(
      "load_graph",
      [](const std::filesystem::path& path) {
        const SavedGraph saved = load_graph(path);
        return nb::make_tuple(saved.graph, wrapped(saved.weights));
      },
      nb::arg("path"), "A graph and its weights by name, as save_graph wrote them.");
  m.def(
      "save_graph",
      [](const std::filesystem::path& path, const Graph& graph, const Named& weights) { save_graph(path, {graph, arrays_of(weights)}); },
      nb::arg("path"), nb::arg("graph"), nb::arg("weights") = Named(), "Writes a graph with weights to one safetensors file.");
  m.def(
      "load_safetensors", [](const std::filesystem::path& path) { return wrapped(load_safetensors(path).arrays); }, nb::arg("path"),
      "The arrays of a file by name, which stay mapped.");
  m.def(
      "save_safetensors", [](const std::filesystem::path& path, const Named& arrays) { save_safetensors(path, arrays_of(arrays)); },
      nb::arg("path"), nb::arg("arrays"), "Writes arrays by name to a file.");
}

void bind_sessions(nb::module_& m) {
  nb::class_<Session>(m, "Session", "A device with its threads and its compiler.")
      .def("__init__", &make_session, nb::arg("threads") = 0, nb::arg("precision") = "f32", nb::arg("claims") = true,
           nb::arg("fuse") = true, nb::arg("check_indices") = false, nb::arg("cache_folder") = nb::none(), nb::arg("cpu_level") = "",
           nb::arg("device") = "",
           "threads: 0 takes as many as the process may use. precision of matrix products: f32, bf16, f16 or int8. device: a name that "
           "rlx.devices() lists; empty: RLX_DEVICE, else the CPU.")
      .def("compile", &compile, nb::arg("graph"))
      .def_prop_ro("threads", &Session::threads)
      .def_prop_ro("device", [](const Session& session) { return session.device().description(); })
      .def_prop_ro("kernels_compiled", [](const Session& session) { return session.counters().kernels_compiled; });
  m.def(
      "devices",
      [] {
        nb::dict described;
        for (const Device& device : Device::all()) described[device.name().c_str()] = device.description();
        return described;
      },
      "The devices of this machine: what each is, by its name.");
}

}  // namespace

void save_program(const Executable& executable, const std::filesystem::path& path, bool weights) {
  const Released released;
  ProgramFile::save(path, std::span(&executable, 1), {}, weights ? ProgramFile::Weights::inside : ProgramFile::Weights::outside);
}

void bind_graphs(nb::module_& m) {
  bind_graph(m);
  bind_files(m);
  bind_sessions(m);
  bind_executables(m);
  bind_graph_transforms(m);
}

}  // namespace rlx::python
