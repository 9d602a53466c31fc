// all-MiniLM-L6-v2 in a browser.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "fixture.h"
#include "models/minilm.h"
#include "web/pages.h"

namespace rlx::test {
namespace {

class MiniLmInBrowser : public PagesInBrowser {};

TEST_F(MiniLmInBrowser, EmbedsAsRecorded) {
  const char* const model = std::getenv("RLX_MINILM");
  if (model == nullptr) GTEST_SKIP() << without_minilm;
  export_web_model(folder_ / "page", model);
  const json::Value recorded = json::read_file(fixture("minilm/expected.json"));
  json::Value texts = json::Value::array();
  for (const json::Value& row : recorded.at("rows")) texts.push_back(row.at("text"));
  const json::Value seen = result_of(R"(
    const encoder = await rlx.SentenceEncoder.load("/page/");
    const vectors = await encoder.embed(given);
    return given.map((text, i) => [encoder.tokenizer.encode(text, 256), Array.from(vectors[i])]);)",
                                     texts);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(seen[i][0], recorded["rows"][i]["ids"]) << texts[i];
    const auto vector = seen[i][1].get<std::vector<double>>(), wanted = recorded["rows"][i]["embedding"].get<std::vector<double>>();
    double difference = 0;
    for (std::size_t k = 0; k < wanted.size(); ++k) difference = std::max(difference, std::abs(vector.at(k) - wanted[k]));
    EXPECT_LE(difference, 2e-6) << texts[i];
  }
}

}  // namespace
}  // namespace rlx::test
