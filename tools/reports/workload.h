#pragma once
#include <CLI/CLI.hpp>

#include <map>
#include <string>
#include <vector>

#include "backends/cpu/peaks/roofline.h"
#include "options/compile_choices.h"
#include "rlx/session.h"
#include "runtime/reports/memory_need.h"

/// What the commands that look at a program share: which program, with which values.
namespace rlx::command {

struct Workload {
  std::string graph, model;
  std::vector<std::string> inputs, sizes;
  std::int64_t default_size = 128;
  std::int64_t prompt = 0, tokens = 0;  // of a language model; 0: not given
};

/// GRAPH or --model, --prompt, --tokens, --in, --size, --default-size.
void add_workload(CLI::App& command, Workload& work);

struct LoadedWorkload {
  Session session;
  Executable executable;
  std::map<std::string, Feed> inputs;
  MemoryNeed memory;
};

/// The compiled program, with a value for every input and parameter; what is not given is made up.
/// Throws Error for a bad file, name or size; CLI::RequiredError without a graph or model.
LoadedWorkload load(const Workload& work, const CompileChoices& choices);

/// What the session's device reaches at best: see cpu::measure_roofline and Device::measure.
cpu::Roofline measure_roofline(const Session& session, const std::vector<LaunchReport>& launches);

}  // namespace rlx::command
