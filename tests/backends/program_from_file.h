#pragma once
#include "backends/registry_samples.h"
#include "formats/temporary_folder.h"
#include "rlx/program_file.h"

namespace rlx::test {

/// Samples as one program, compiled and read from its file: runs have the same bits.
inline void expect_same_from_file(const Session& session, std::span<const Case> cases) {
  const TemporaryFolder folder;
  Graph program("samples");
  std::map<std::string, Feed> fed;
  std::map<std::string, Array> params;
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const std::string prefix = fmt::format("s{}_", k);
    const auto operands = random_operands(cases[k].sample, 3);
    add_part(program, graph_of(cases[k], false), prefix);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const std::string name = fmt::format("{}x{}", prefix, i);
      if (is_param(cases[k], i)) params.emplace(name, operands[i]);
      else fed.emplace(name, operands[i]);
    }
  }
  Executable wanted = session.compile(program);
  ProgramFile::save(folder / "samples.rlxp", std::span(&wanted, 1));
  Executable seen = ProgramFile::load(folder / "samples.rlxp", session.device(), {.cache_folder = std::filesystem::path()});
  wanted.set_params(params), seen.set_params(params);
  const Outputs one = wanted.run(fed), other = seen.run(fed);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i] == other[i]) << program.outputs()[i].first;
}

/// The first sample of every op, in two programs.
inline void expect_first_samples_from_files(const Session& session) {
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [](const Case& c) { return c.number != 0; });
  EXPECT_GT(cases.size(), 100U);
  const std::span all(cases);
  expect_same_from_file(session, all.first(all.size() / 2));
  expect_same_from_file(session, all.subspan(all.size() / 2));
}

}  // namespace rlx::test
