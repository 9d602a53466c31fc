// What is told of a model that is loaded and run for the first time.
#include <gtest/gtest.h>

#include "backends/dummy_device.h"
#include "base/progress.h"
#include "fixture.h"
#include "rlx/model.h"
#include "rlx/session.h"

namespace rlx {
namespace {

struct Report {
  std::string work;
  std::size_t done, total;
};

/// All that is reported while `action` runs.
std::vector<Report> reports_of(const std::function<void()>& action) {
  std::vector<Report> reports;
  listen_to_progress(
      [&](std::string_view work, std::size_t done, std::size_t total) { reports.push_back({std::string(work), done, total}); });
  action();
  listen_to_progress({});
  return reports;
}

/// Each kind of work counts up to its end.
void expect_whole(const std::vector<Report>& reports, std::string_view work) {
  std::size_t last = 0, total = 0;
  for (const Report& report : reports) {
    if (report.work != work) continue;
    EXPECT_LE(last, report.done) << work;
    EXPECT_LE(report.done, report.total) << work;
    last = report.done, total = report.total;
  }
  EXPECT_GT(total, 10U) << work;
  EXPECT_EQ(last, total) << work;
}

TEST(LoadProgress, CountsWeightsThatAreLoadedAndPacked) {
  std::optional<Model> model;
  const std::vector<std::int32_t> ids{1, 2, 3};
  expect_whole(reports_of([&] { model = Model::open(test::fixture("hf/llama"), Session()); }), "loading");
  expect_whole(reports_of([&] { model->append(ids); }), "packing");
  EXPECT_TRUE(reports_of([&] { model->append(ids); }).empty());
}

TEST(LoadProgress, CountsWeightsThatAreBroughtToADevice) {
  Model model = Model::open(test::fixture("hf/llama"), Session(test::dummy_device()));
  const std::vector<std::int32_t> ids{1, 2, 3};
  expect_whole(reports_of([&] { model.append(ids); }), "uploading");
  EXPECT_TRUE(reports_of([&] { model.append(ids); }).empty());
}

TEST(LoadProgress, CountsTokensOfPromptsThatTakeSeveralRuns) {
  Model model = Model::open(test::fixture("hf/llama"), Session(), {.chunk = 4});
  const std::vector<std::int32_t> chunk{1, 2, 3, 4}, prompt{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  model.append(chunk);
  expect_whole(reports_of([&] { model.append(prompt); }), "reading");
  EXPECT_TRUE(reports_of([&] { model.append(chunk); }).empty());
}

}  // namespace
}  // namespace rlx
