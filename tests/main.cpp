// The main function of the tests, many sources in one executable. `ops_tests --source=ops/nn` runs the tests of ops/nn_test.cpp, as ctest
// does for each source; `--gtest_filter` chooses among those. A source without tests fails, so that none is left out unseen.
#include <cstdlib>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace {

/// The source of each test: "Nn.SoftmaxSumsToOne" -> "/.../ops/nn_test.cpp". Two tests of one name could not be told apart.
std::map<std::string, std::string> sources_of_tests() {
  std::map<std::string, std::string> sources;
  const auto& all = *testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const auto& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const auto& test = *suite.GetTestInfo(t);
      const std::string name = std::string(suite.name()) + "." + test.name();
      const auto [at, is_new] = sources.emplace(name, test.file());
      if (is_new && at->second.ends_with("_test.cpp")) continue;
      std::cerr << "tests: " << name << " stands in " << test.file() << " and " << at->second << " (allowed: one *_test.cpp)\n";
      std::exit(1);
    }
  }
  return sources;
}

/// Takes all tests out of gtest's filter but those of `source`; returns how many there are.
int keep_source(std::string_view source) {
  const std::string file = "/" + std::string(source) + "_test.cpp";
  std::string filter = GTEST_FLAG_GET(filter);
  bool has_negative = filter.find('-') != std::string::npos;
  int kept = 0;
  for (const auto& [name, path] : sources_of_tests()) {
    if (path.ends_with(file)) {
      ++kept;
      continue;
    }
    filter += (has_negative ? ":" : "-") + name;
    has_negative = true;
  }
  GTEST_FLAG_SET(filter, filter);
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view option = "--source=";
  for (const std::string_view argument : std::span(argv, argc).subspan(1)) {
    if (argument.starts_with(option) && keep_source(argument.substr(option.size())) > 0) continue;
    std::cerr << "tests: no test stands in what " << argument << " names (allowed: --source=<area>/<name>, the flags of gtest)\n";
    return 1;
  }
  return RUN_ALL_TESTS();
}
