// What cannot be a program for browsers is refused with a reason, and leaves nothing.
#include "fixture.h"
#include "formats/temporary_folder.h"
#include "formats/web/web_folder.h"
#include "rlx/export.h"
#include "rlx/ops.h"

namespace rlx::test {
namespace {

class WebErrors : public testing::Test {
 protected:
  std::string refused(const SavedGraph& saved) const {
    const std::string message = error_of([&] { export_web(folder_ / "web", saved); });
    EXPECT_FALSE(std::filesystem::exists(folder_ / "web"));
    return message;
  }
  TemporaryFolder folder_;
};

TEST_F(WebErrors, Types) {
  Graph graph;
  graph.output("y", -graph.input("x", {3}, f64));
  EXPECT_EQ(refused({graph, {}}), "web: neg with a result of f64[3] cannot be exported: no kernel of WebGPU computes it");
}

TEST_F(WebErrors, Parameters) {
  Graph graph;
  graph.output("y", graph.input("x", {2}, f32) * graph.param("w", {2}, f32));
  EXPECT_EQ(refused({graph, {}}), "web: parameter 'w' has no value");
  EXPECT_EQ(refused({graph, {{"w", Array(f32, {3})}}}), "web: parameter 'w' is f32[2], its value f32[3]");
}

TEST_F(WebErrors, Folders) {
  Graph graph;
  graph.output("y", -graph.input("x", {2}, f32));
  std::filesystem::create_directory(folder_ / "there");
  EXPECT_EQ(error_of([&] { export_web(folder_ / "there", {graph, {}}); }),
            (folder_ / "there").string() + ": exists already (a program for browsers is written to a new folder)");
}

TEST_F(WebErrors, Models) {
  const auto refused = [&](const char* model) { return error_of([&] { export_web_model(folder_ / "web", fixture(model)); }); };
  EXPECT_EQ(refused("hf/llama"), fixture("hf/llama/tokenizer.json").string() + ": it is missing, and a page reads texts by it");
  EXPECT_EQ(refused("hf/t5"), fixture("hf/t5/tokenizer.json").string() + ": it is missing, and a page reads texts by it");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "web"));
}

TEST_F(WebErrors, Tokenizers) {
  for (const char* file : {"config.json", "model.safetensors"}) std::filesystem::copy(fixture("hf/llama") / file, folder_ / file);
  json::Value tokenizer = json::read_file(fixture("tokenizers/unigram-t5/tokenizer.json"));
  tokenizer["model"]["type"] = "WordLevel";
  write_text(folder_ / "tokenizer.json", tokenizer.dump());
  EXPECT_EQ(error_of([&] { export_web_model(folder_ / "web", folder_.path()); }),
            (folder_ / "tokenizer.json").string() + ": model.type: WordLevel (a page has BPE, Unigram and WordPiece)");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "web"));
}

/// With what reads the words of any one tokenizer.
TEST(WebScript, IsSmall) {
  Graph graph;
  graph.output("y", -graph.input("x", {2}, f32));
  const TemporaryFolder folder;
  export_web(folder / "web", {graph, {}});
  for (const char* model : {"BPE", "Unigram", "WordPiece"})
    EXPECT_LE(std::filesystem::file_size(folder / "web" / "rlx.js") + web_words(model).size(), 40'000U) << model;
}

}  // namespace
}  // namespace rlx::test
