#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "backends/registry_samples.h"
#include "formats/web/web_program.h"
#include "lowering/target.h"
#include "runtime/coverage.h"
#include "web/browser.h"

namespace rlx::test {

/// Whether the sample can be exported. What cannot be has a part that the device leaves to the host.
inline bool is_exported(const Case& c) {
  const SampleProgram program(std::span(&c, 1));
  try {
    make_web_program({program.graph, {program.params.begin(), program.params.end()}});
    return true;
  } catch (const Error& error) {
    if (kind_by_kernels(web_target()).refusals(program.graph).empty()) ADD_FAILURE() << c.name() << ": " << error.what();
    return false;
  }
}

/// One of so many parts of the samples of every op in a browser, some as one program; twice: what runs leave behind changes nothing.
inline void expect_part(BrowserTest& test, std::size_t part, std::size_t parts) {
  constexpr std::size_t together = 24;
  const std::vector<Case> all = all_cases();
  std::vector<Case> mine;
  for (std::size_t i = part; i < all.size(); i += parts)
    if (is_exported(all[i])) mine.push_back(all[i]);
  EXPECT_GT(mine.size(), all.size() / parts * 8 / 10);
  std::vector<SampleProgram> programs;
  for (std::size_t first = 0; first < mine.size(); first += together) {
    programs.emplace_back(std::span(mine).subspan(first, std::min(together, mine.size() - first)));
    const SampleProgram& program = programs.back();
    test.add({program.graph, {program.params.begin(), program.params.end()}}, {program.fed, program.fed});
  }
  test.run_all();
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const auto runs = test.results(i);
    if (runs.size() != 2) continue;
    programs[i].expect([&](const std::string& name) {
      EXPECT_EQ(difference(runs[0].at(name), runs[1].at(name)), 0) << name << " in the second run";
      return runs[0].at(name);
    });
  }
}

}  // namespace rlx::test
