#include "rlx/program_file.h"

#include <algorithm>

#include "formats/program/container.h"
#include "formats/program/weight_files.h"
#include "ir/graph_data.h"
#include "lowering/program_file/program_parts.h"
#include "ops/control/host_call.h"
#include "rlx/text.h"
#include "rlx/version.h"
#include "runtime/executable.h"
#include "runtime/host_node.h"

namespace rlx {

using NamedValues = std::map<std::string, Array>;

struct ProgramFile::Access {
  static const std::shared_ptr<Executable::State>& state_of(const Executable& executable) { return executable.state_; }
};

template <class Way>
void list_parts(Way& way, Of<Way, IndexCheck>& check) {
  way("checked op", check.op), way("checked inputs", check.inputs), way("checked size", check.size);
}

namespace {

/// Which program is for whom.
struct Entry {
  std::string device, level, fingerprint;  // level: of the CPU
  std::int64_t blob = 0;                   // of the program

  std::string name() const { return level.empty() ? device : device + " " + level; }
  std::string text() const { return fmt::format("{} ({})", name(), fingerprint); }
};

Entry entry_of(const Session::State& session) {
  return {session.target.name, session.code ? session.code->level : std::string(), session.target.fingerprint, 0};
}

template <class Way>
void list_entry(Way& way, Of<Way, Entry>& entry) {
  way("device", entry.device), way("level", entry.level), way("fingerprint", entry.fingerprint);
}

/// What the host computes of a program and its regions, by the text of its graph.
void collect_host(const Executable::State& state, std::map<std::string, std::shared_ptr<Executable::State>>& into) {
  for (const auto& [launch, executable] : state.on_the_host)
    into.emplace(to_text(*graph_of_node(state.program.graph, launch->node.node)), ProgramFile::Access::state_of(executable));
  for (const auto& [region, inner] : state.regions) collect_host(*inner, into);
}

/// The options of a session that the entry was written for; nothing where this device, as `options` want it, has none.
std::optional<SessionOptions> options_for(const Entry& entry, const Device& device, SessionOptions options) {
  const TargetDevice wanted = device.backend().target(options);
  if (entry.device != wanted.name) return std::nullopt;
  if (entry.level.empty()) return entry.fingerprint == wanted.fingerprint ? std::optional(options) : std::nullopt;
  options.cpu_level = entry.level;
  try {
    const TargetDevice its = device.backend().target(options);
    return its.fingerprint == entry.fingerprint && its.level <= wanted.level ? std::optional(options) : std::nullopt;
  } catch (const Error&) {  // a level that this CPU does not have
    return std::nullopt;
  }
}

/// The machine code of each text, once.
void write_objects(ProgramWriter& way, Executable::State& state) {
  std::map<std::string, const KernelText*> texts;
  if (state.session->code)
    for (const GeneratedKernel* kernel : state.program.kernels()) texts.emplace(kernel->text.name, &kernel->text);
  way("objects", std::ssize(texts));
  for (const auto& [name, text] : texts) way("kernel name", name), way.blob(state.session->code->object(*text));
}

KernelObjects read_objects(ProgramReader& way) {
  KernelObjects objects;
  for (std::int64_t left = way.count("objects"); left > 0; --left) {
    std::string name;
    way("kernel name", name);
    objects.emplace(name, way.blob("object").bytes);
  }
  return objects;
}

/// Parameters and states that have values.
NamedValues values_of(const Executable::State& state) {
  NamedValues values;
  const auto& inputs = state.source.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Array& param = state.parameters->arrays[i];
    if (state.is_param[i] && address(param)) values.emplace(inputs[i].first.name, param);
    if (inputs[i].first.kind == InputKind::state && state.has_value[i])
      values.emplace(inputs[i].first.name, state.session->storage.take(state.states[i]));
  }
  return values;
}

void write_state(ProgramWriter& way, Executable::State& state);

void write_host_programs(ProgramWriter& way, const Executable::State& state) {
  std::map<std::string, std::shared_ptr<Executable::State>> host;
  collect_host(state, host);
  way("host programs", std::ssize(host));
  for (const auto& [text, inner] : host) {
    way("host graph", text);
    list_entry(way, entry_of(*inner->session));
    write_state(way, *inner);
  }
}

void write_state(ProgramWriter& way, Executable::State& state) {
  write_program(way, state.program);
  write_objects(way, state);
  write_host_programs(way, state);
  const bool checks = state.index_checks.has_value();
  way("has checks", checks);
  if (checks) write_state(way, *ProgramFile::Access::state_of(state.index_checks->places)), way("checks", state.index_checks->checks);
}

std::shared_ptr<Executable::State> read_state(ProgramReader& way, const std::shared_ptr<Session::State>& session);

HostPrograms read_host_programs(ProgramReader& way, const SessionOptions& options) {
  HostPrograms host;
  std::shared_ptr<Session::State> session;
  for (std::int64_t left = way.count("host programs"); left > 0; --left) {
    std::string text;
    Entry entry;
    way("host graph", text);
    list_entry(way, entry);
    const auto its = options_for(entry, Device::cpu(), {.threads = options.threads, .cache_folder = options.cache_folder});
    if (!its) way.refuse("host program", entry.text(), "what this CPU runs");
    if (!session) session = std::make_shared<Session::State>(Device::cpu(), *its);
    host.emplace(text, read_state(way, session));
  }
  return host;
}

void read_checks(ProgramReader& way, const std::shared_ptr<Session::State>& session, Executable::State& state) {
  const auto places = read_state(way, session);
  std::vector<IndexCheck> checks;
  way("checks", checks);
  if (places->source.outputs().size() != 2 * checks.size())
    way.refuse("checks", std::to_string(checks.size()), fmt::format("half of {} places", places->source.outputs().size()));
  state.index_checks = CompiledIndexChecks{Executable(places), std::move(checks)};
}

std::shared_ptr<Executable::State> read_state(ProgramReader& way, const std::shared_ptr<Session::State>& session) {
  Program program = read_program(way);
  if (!session->storage.on_host() && !session->options.host) refuse_host(program, session->device, session->target.caps);
  const KernelObjects objects = read_objects(way);
  const HostPrograms host = read_host_programs(way, session->options);
  const Graph source = program.graph;
  auto kernels = load_kernels(*session, program, objects);
  auto state = std::make_shared<Executable::State>(session, source, std::move(program), std::move(kernels), host);
  bool checks = false;
  way("has checks", checks);
  if (checks) read_checks(way, session, *state);
  return state;
}

std::string program_bytes(Blobs& blobs, Executable::State& state, bool weights) {
  if (state.taken) fail("program file: {} takes graphs whole, and has no programs", state.session->device.name());
  ProgramWriter way(blobs);
  write_state(way, state);
  way("weights", weights ? values_of(state) : NamedValues());
  return way.bytes();
}

struct Directory {
  std::vector<Entry> programs;
  std::vector<WeightFile> weights;
};

Directory directory_of(const ProgramContainer& container) {
  ProgramReader way(container.name() + ": directory", container.directory(), container.blobs(),
                    [&](std::int64_t number) { return container.blob(number); });
  std::string written_by;
  way("version", written_by);
  if (written_by != version) fail("{}: it was written by RLX {} (allowed: {}): compile it again", container.name(), written_by, version);
  Directory directory;
  for (std::int64_t left = way.count("programs"); left > 0; --left) {
    Entry& entry = directory.programs.emplace_back();
    list_entry(way, entry);
    entry.blob = way.integer("program", 0, container.blobs() - 1);
  }
  way("weights", directory.weights);
  way.finish();
  return directory;
}

}  // namespace

void ProgramFile::save(const std::filesystem::path& file, std::span<const Executable> executables, std::span<const Source> sources,
                       Weights weights) {
  Blobs blobs;
  ProgramWriter directory(blobs);
  directory("version", std::string(version));
  directory("programs", std::ssize(executables));
  std::set<std::string> targets;
  for (const Executable& executable : executables) {
    Executable::State& state = *Access::state_of(executable);
    check_calls_no_host(state.source, file.string());
    const Entry entry = entry_of(*state.session);
    if (!targets.insert(entry.text()).second) fail("{}: two programs for {} (allowed: one for each)", file.string(), entry.text());
    list_entry(directory, entry);
    const std::string bytes = program_bytes(blobs, state, weights == Weights::inside);
    directory("program", blobs.add(bytes));
  }
  directory("weights", weight_files(file, sources));
  write_container(file, blobs, directory.bytes());
}

namespace {

ProgramContainer opened(const std::filesystem::path& file) {
  const auto mapped = std::make_shared<const MappedFile>(MappedFile::open(file));
  return {file.string(), mapped->bytes(), mapped};
}

void set_values(Executable& executable, const NamedValues& values) {
  for (const auto& [input, value] : ProgramFile::graph(executable).inputs())
    if (const auto found = values.find(input.name); found != values.end()) {
      if (input.kind == InputKind::state) executable.set_state(input.name, found->second);
      else executable.set_param(input.name, found->second);
    }
}

/// A program, and who runs it.
struct Chosen {
  const Entry* entry;
  Device device;
  SessionOptions options;
};

/// With the values that the file has.
Executable read_executable(const ProgramContainer& container, const Chosen& chosen) {
  const auto find = [&](std::int64_t number) { return container.blob(number); };
  ProgramReader way(fmt::format("{}: {}", container.name(), chosen.entry->name()), find(chosen.entry->blob).bytes, container.blobs(), find);
  const auto state = read_state(way, std::make_shared<Session::State>(chosen.device, chosen.options));
  if (chosen.options.check_indices && !state->index_checks && !index_checks(state->source).checks.empty())
    fail("{}: it was compiled without check_indices, which the session asks for", container.name());
  Executable executable(state);
  NamedValues values;
  way("weights", values);
  way.finish();
  set_values(executable, values);
  return executable;
}

/// The highest that runs there.
std::optional<Chosen> choose(const std::vector<Entry>& entries, const Device& device, const SessionOptions& options) {
  std::optional<Chosen> best;
  int level = 0;
  for (const Entry& entry : entries) {
    const auto its = options_for(entry, device, options);
    if (const int mine = its ? device.backend().target(*its).level : -1; mine >= level) best = {&entry, device, *its}, level = mine;
  }
  return best;
}

Chosen choose_or_refuse(const ProgramContainer& container, const std::vector<Entry>& entries, const Device& device,
                        const SessionOptions& options) {
  const bool any = device == Device::automatic();
  for (const Device& each : any ? Device::all() : std::vector{device})
    if (const auto chosen = choose(entries, each, options)) return *chosen;
  std::string seen;
  for (const Entry& entry : entries) seen += (seen.empty() ? "" : "; ") + entry.text();
  fail("{}: it has no program for {}; it has: {}", container.name(),
       any ? "the devices of this machine" : entry_of(Session::State(device, options)).text(), seen.empty() ? "none" : seen);
}

}  // namespace

std::string ProgramFile::hash(const std::filesystem::path& file) { return hash_text(opened(file).hash()); }

Executable ProgramFile::load(const std::filesystem::path& file, const Device& device, const SessionOptions& options) {
  const ProgramContainer container = opened(file);
  const Directory directory = directory_of(container);
  Executable executable = read_executable(container, choose_or_refuse(container, directory.programs, device, options));
  set_values(executable, load_weights(file, directory.weights));
  return executable;
}

const Graph& ProgramFile::graph(const Executable& executable) { return Access::state_of(executable)->source; }

}  // namespace rlx
