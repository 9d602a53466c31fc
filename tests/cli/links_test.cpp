// scripts/check_links.py, which `make lint` runs: links and names of files in documents.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/temporary_folder.h"

namespace rlx {
namespace {

using test::write_text;

/// What the script prints of a project in which README.md and src/base/README.md have these texts.
std::string offenders(std::string_view readme, std::string_view of_base) {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "docs");
  std::filesystem::create_directories(folder / "src/base");
  for (const std::string name : {"CONTRIBUTING.md", "docs/guide.md", "src/base/hash.h"}) write_text(folder / name, "");
  write_text(folder / "README.md", readme);
  write_text(folder / "src/base/README.md", of_base);
  const std::filesystem::path script = test::fixture("../../scripts/check_links.py");
  const std::string line = fmt::format("python3 '{}' '{}' >'{}'", script.string(), folder.path().string(), (folder / "out").string());
  const bool found = std::system(line.c_str()) != 0;
  const std::string text = test::read_text(folder / "out");
  EXPECT_EQ(found, text != "check_links: every link leads somewhere\n") << text;
  return found ? text : "";
}

TEST(Links, ThatLeadSomewherePass) {
  EXPECT_EQ(offenders("[a](docs/guide.md#part) [b](https://example.com/x) [c](#here) [d](src/base)\n```\n[e](nowhere)\n```\n",
                      "`hash.h`, `base/hash.h`, `src/base/hash.h`, `rlx/ops.h`, `NAME_test.cpp`, `config.json`\n"),
            "");
}

TEST(Links, ThatLeadNowhereAreNamedWithTheirLine) {
  EXPECT_EQ(offenders("Read\n[this](docs/guid.md).\n", ""), "README.md:2: the link to docs/guid.md leads nowhere\n");
}

TEST(Links, AFolderNamesFilesThatItHas) {
  EXPECT_EQ(offenders("`gone.h` may be named here.\n`src/gone.h`\n", ""), "README.md:2: there is no src/gone.h\n");
  EXPECT_EQ(offenders("`gone.h` may be named here.\n", "1. `hash.h`\n2. `gone.h`: moved.\n"), "src/base/README.md:2: there is no gone.h\n");
}

}  // namespace
}  // namespace rlx
