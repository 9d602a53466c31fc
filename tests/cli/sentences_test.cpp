// scripts/check_sentences.py, which `make lint` runs: what it counts, and that it names each offender.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/temporary_folder.h"

namespace rlx {
namespace {

using test::read_text;
using test::write_text;

std::string words(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += i + 1 < count ? "word " : "end.\n";
  return text;
}

constexpr std::string_view readme =
    "# A folder\n\n## Read in this order\n1. It is short.\n\n## May include\nAll.\n\n## To add a file\nDo it.\n";

/// A project of short pages, for the script to read.
class Sentences : public testing::Test {
 protected:
  Sentences() {
    std::filesystem::create_directories(folder_ / "docs");
    std::filesystem::create_directories(folder_ / "src/base");
    for (const std::string name : {"README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/guide.md"})
      write_text(folder_ / name, "# A page\n\nIt is short.\n");
    write_text(folder_ / "src/base/README.md", readme);
  }

  void write(std::string_view name, std::string_view text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_text(folder_ / name, text);
  }

  /// What the script prints. Expects it to find something exactly where it prints more than that all is well.
  std::string offenders() const {
    const std::filesystem::path script = test::fixture("../../scripts/check_sentences.py");
    const std::string line = fmt::format("python3 '{}' '{}' >'{}'", script.string(), folder_.path().string(), (folder_ / "out").string());
    const bool found = std::system(line.c_str()) != 0;
    const std::string text = read_text(folder_ / "out");
    EXPECT_EQ(found, text != "check_sentences: every page is short enough\n") << text;
    return found ? text : "";
  }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(Sentences, ShortPagesPass) { EXPECT_EQ(offenders(), ""); }

TEST_F(Sentences, LongSentencesAreNamedWithTheirLineAndCount) {
  write("README.md", "A. B. C. D.\n\n- " + words(40) + "- Short. It is\n  " + words(39));
  EXPECT_EQ(offenders(), "README.md:4: a sentence of 41 words (at most 40)\n");
}

TEST_F(Sentences, TheTourHasShorterOnes) {
  write("docs/architecture.md", "Short. Short.\n\n" + words(26));
  EXPECT_EQ(offenders(), "docs/architecture.md:3: a sentence of 26 words (at most 25)\n");
}

TEST_F(Sentences, LongPagesOfEvenSentencesAreNamedByTheirMean) {
  write("docs/guide.md", words(20) + "\n" + words(21));
  EXPECT_EQ(offenders(), "docs/guide.md:1: sentences of 20.5 words in the mean (at most 20)\n");
}

TEST_F(Sentences, CodeTablesPicturesAndTargetsAreNoSentences) {
  const std::string many = words(60);
  write("CONTRIBUTING.md", "Read [this](" + std::string(200, 'x') + ").\n\n```\n" + many + "```\n\n| a |\n|---|\n| " + many + "\n![" +
                               many.substr(0, many.size() - 1) + "](x.svg)\n\nThe end, e.g. of `a. B` here.\n");
  EXPECT_EQ(offenders(), "");
}

TEST_F(Sentences, FoldersOfSourcesHaveReadmes) {
  write("src/base/files/page.h", "#pragma once\n");
  EXPECT_EQ(offenders(), "src/base/files/README.md:1: there is none\n");
}

TEST_F(Sentences, FoldersHaveShortReadmes) {
  std::string text(readme);
  for (int i = 0; i < 31; ++i) text += "Line.\n";
  write("src/base/README.md", text);
  EXPECT_EQ(offenders(), "src/base/README.md:41: 41 lines (at most 40)\n");
}

TEST_F(Sentences, FoldersSayHowToAddToThem) {
  write("src/base/README.md", readme.substr(0, readme.find("## To add")));
  EXPECT_EQ(offenders(), "src/base/README.md:1: there is no section '## To add'\n");
}

TEST_F(Sentences, PagesThatPeopleWriteAreNotLongTogether) {
  write("docs/ops.md", std::string(200'000, 'x'));  // generated
  write("docs/notes.md", std::string(150'000, 'x'));
  EXPECT_EQ(offenders(), "docs/notes.md:1: docs has 150046 bytes that are not generated (at most 150000); this page is the largest\n");
}

}  // namespace
}  // namespace rlx
