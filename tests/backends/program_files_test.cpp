// Every registered op on its first sample, from a program file: the bits of the executable that it was written of.
#include "rlx/program_file.h"

#include <gtest/gtest.h>

#include "backends/registry_samples.h"
#include "formats/temporary_folder.h"

namespace rlx::test {
namespace {

/// Runs of the executable and of what its file holds are the same.
void expect_same_from_file(const Session& session, std::span<const Case> cases, const std::filesystem::path& file) {
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
  ProgramFile::save(file, std::span(&wanted, 1));
  Executable seen = ProgramFile::load(file, session.device(), {.cache_folder = std::filesystem::path()});
  wanted.set_params(params), seen.set_params(params);
  const Outputs one = wanted.run(fed), other = seen.run(fed);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(one[i] == other[i]) << program.outputs()[i].first;
}

TEST(ProgramFiles, HaveTheFirstSampleOfEveryOp) {
  const TemporaryFolder folder;
  const Session session(Device::cpu(), {.cache_folder = folder / "cache"});
  std::vector<Case> cases = all_cases();
  std::erase_if(cases, [](const Case& c) { return c.number != 0; });
  EXPECT_GT(cases.size(), 100U);
  const std::span all(cases);
  expect_same_from_file(session, all.first(all.size() / 2), folder / "first.rlxp");
  expect_same_from_file(session, all.subspan(all.size() / 2), folder / "others.rlxp");
}

}  // namespace
}  // namespace rlx::test
