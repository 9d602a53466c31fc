#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/json/json.h"
#include "formats/temporary_folder.h"
#include "ir/array_type.h"
#include "rlx/export.h"

namespace rlx::test {

/// Chromium, in which tests open pages; see browser.py.
inline const char* browser() { return std::getenv("RLX_BROWSER"); }

/// Opens a page of the folder, and waits until it is done.
inline void open_page(const std::filesystem::path& folder, const std::string& page) {
  const std::string command = fmt::format("python3 '{0}/browser.py' '{1}' '{2}' '{3}'", RLX_WEB_TESTS, browser(), folder.string(), page);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
}

/// Programs that a browser runs.
class BrowserTest : public testing::Test {
 public:
  using Arrays = std::map<std::string, Array>;

  void SetUp() override {
    if (!browser()) GTEST_SKIP() << "needs Chromium (Debian: apt-get install chromium)";
  }

  /// Exports a program, which `run_all` runs on these inputs, one after the other; its number.
  std::size_t add(const SavedGraph& saved, const std::vector<Arrays>& feeds) {
    const std::filesystem::path job = folder_of(graphs_.size());
    export_web(job, saved);
    json::Value description = json::Value::array();
    std::string bytes;
    for (const Arrays& arrays : feeds) {
      json::Value& mine = description.emplace_back(json::Value::object());
      for (const auto& [name, array] : arrays) {
        mine[name] = {{"shape", array.shape()}, {"from", bytes.size()}, {"length", array.bytes().size()}};
        bytes.append(reinterpret_cast<const char*>(array.bytes().data()), array.bytes().size());
      }
    }
    write_text(job / "feeds.json", json::line(description));
    write_text(job / "feeds.bin", bytes);
    graphs_.push_back(saved.graph);
    return graphs_.size() - 1;
  }

  void run_all() {
    json::Value jobs = json::Value::array();
    for (std::size_t i = 0; i < graphs_.size(); ++i) jobs.push_back(std::to_string(i));
    write_text(folder_ / "jobs.json", json::line(jobs));
    std::filesystem::copy_file(std::filesystem::path(RLX_WEB_TESTS) / "run.html", folder_ / "run.html");
    open_page(folder_.path(), "run.html");
  }

  /// What each run gave, states too; none, and a failure of the test, where the browser refused the program.
  std::vector<Arrays> results(std::size_t number) const {
    const std::string bytes = read_text(folder_of(number) / "results.bin");
    std::vector<Arrays> all;
    const json::Value results = json::read_file(folder_of(number) / "results.json");
    if (results.is_object()) ADD_FAILURE() << results["error"].get<std::string>();
    for (const json::Value& run : results.is_object() ? json::Value::array() : results) {
      Arrays& outputs = all.emplace_back();
      for (const auto& [name, value] : graphs_[number].outputs()) {
        const json::Value& mine = run.at(name);
        Array array(value.dtype(), mine["shape"].get<std::vector<std::int64_t>>());
        const std::span<std::byte> to = array.mutable_bytes();
        std::ranges::copy(std::as_bytes(std::span(bytes)).subspan(mine["from"].get<std::size_t>(), to.size()), to.begin());
        outputs.emplace(name, array);
      }
    }
    return all;
  }

  std::filesystem::path folder_of(std::size_t number) const { return folder_ / std::to_string(number); }

 protected:
  TemporaryFolder folder_;

 private:
  std::vector<Graph> graphs_;
};

}  // namespace rlx::test
