#include <csignal>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "formats/json/json.h"
#include "formats/tensors/npy.h"
#include "models/tiny_sentence_model.h"

namespace rlx::test {
namespace {

class EmbedCommand : public testing::Test {
 protected:
  CommandResult embed(const std::string& arguments, const std::string& text = "a cat\ndogs ran\n\na cat sat\n") {
    write_text(folder_ / "lines.txt", text);
    return run_rlx("embed --model " + model_.path().string() + " " + arguments + " < " + (folder_ / "lines.txt").string());
  }

  TinySentenceModel model_;
  TemporaryFolder folder_;
};

TEST_F(EmbedCommand, ATableShowsEachLine) {
  const CommandResult result = embed("");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(line_count(result.out), 5);
  EXPECT_EQ(result.out.substr(0, 4), "text");
  EXPECT_EQ(result.err, "");
}

TEST_F(EmbedCommand, SaysWhatItsChoicesDoForWeightsInBlocks) {
  const std::string blocks = (folder_ / "blocks.gguf").string();
  ASSERT_EQ(run_rlx(fmt::format("quantize {} {} --type Q8_0", model_.path().string(), blocks)).status, 0);
  write_text(folder_ / "line.txt", "a cat\n");
  const auto embed_blocks = [&](std::string_view choice) {
    return run_rlx(fmt::format("embed --model {} --pooling mean {} < {}", blocks, choice, (folder_ / "line.txt").string()));
  };
  const CommandResult rounded = embed_blocks(""), exact = embed_blocks("--activations f32"), narrow = embed_blocks("--precision bf16");
  EXPECT_EQ(rounded.err + exact.err, "");
  EXPECT_NE(rounded.out, exact.out);
  EXPECT_EQ(narrow.err, "rlx: --precision does not reach matrices in blocks, as this model's are (--activations says how they multiply)\n");
}

TEST_F(EmbedCommand, JsonLinesHoldTextIdsAndEmbedding) {
  const CommandResult result = embed("--json -", "a \"cat\"\r\nsat");
  ASSERT_EQ(line_count(result.out), 2) << result.err;
  const json::Value first = json::parse(result.out.substr(0, result.out.find('\n')), "line 1");
  EXPECT_EQ(first.at("text"), "a \"cat\"");
  EXPECT_EQ(first.at("ids"), json::parse("[2, 4, 1, 5, 1, 3]", "ids"));
  EXPECT_EQ(first.at("embedding").size(), TinySentenceModel::width);
}

TEST_F(EmbedCommand, NpyAndJsonHoldTheSameNumbers) {
  const std::filesystem::path npy = folder_ / "out.npy";
  const CommandResult result = embed("--json --npy " + npy.string());
  const Array array = load_npy(npy);
  EXPECT_EQ(array.shape(), (std::vector<std::int64_t>{4, 64}));
  const json::Value first = json::parse(result.out.substr(0, result.out.find('\n')), "line 1");
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(first.at("embedding").at(i).get<float>(), array.values<float>()[i]);
  EXPECT_EQ(embed("--npy " + npy.string()).out, "");
}

TEST_F(EmbedCommand, GeneratedKernelsGiveTheSameNumbers) {
  const std::filesystem::path npy = folder_ / "out.npy";
  ASSERT_EQ(embed("--npy " + npy.string()).status, 0);
  const Array claimed = load_npy(npy);
  ASSERT_EQ(embed("--no-claims --npy " + npy.string()).status, 0);
  const Array generated = load_npy(npy);
  ASSERT_EQ(generated.shape(), claimed.shape());
  // Vectors of length 1 behind sums of 64 terms, in another order.
  for (std::int64_t i = 0; i < claimed.size(); ++i) EXPECT_NEAR(generated.get_double(i), claimed.get_double(i), 1e-5);
}

TEST_F(EmbedCommand, SimilarityNamesTheNearestPairs) {
  const CommandResult table = embed("--similarity --timing", "a cat\nran\na cat\n");
  EXPECT_NE(table.out.find("nearest pairs\n  1.000  a cat"), std::string::npos) << table.out;
  EXPECT_NE(table.err.find("kernels compiled"), std::string::npos);
  const json::Value object = json::parse(embed("--similarity --json", "a cat\nran\na cat\n").out, "output");
  EXPECT_EQ(object.at("nearest").at(0).at("first"), 0);
  EXPECT_EQ(object.at("nearest").at(0).at("second"), 2);
  EXPECT_EQ(object.at("similarity").size(), 3u);
}

TEST_F(EmbedCommand, TimingTellsTheFirstBatchFromTheRest) {
  EXPECT_NE(embed("--timing --batch-size 2", "a cat\nran\na dog\n").err.find("first 2 texts after "), std::string::npos);
  EXPECT_EQ(embed("--timing", "").err.find("first "), std::string::npos);
}

TEST_F(EmbedCommand, NoLinesGiveNoEmbeddings) {
  EXPECT_EQ(embed("--json", "").out, "");
  EXPECT_EQ(embed("--npy " + (folder_ / "none.npy").string(), "").status, 0);
  EXPECT_EQ(load_npy(folder_ / "none.npy").shape(), (std::vector<std::int64_t>{0, 64}));
  const CommandResult nothing = embed("--similarity", "");
  EXPECT_EQ(nothing.status, 0);
  EXPECT_EQ(nothing.out, "");
}

TEST_F(EmbedCommand, ErrorsAreOneLineAndStatusOne) {
  const std::string binary("\xff\n", 2);
  for (const CommandResult& result :
       {run_rlx("embed --model /nowhere < /dev/null"), embed("/no/such/file"), embed((folder_.path()).string()), embed("--json", binary),
        embed("", binary), embed("--similarity", binary), embed("--npy " + (folder_ / "never.npy").string(), binary),
        embed("--npy /nowhere/out.npy"), run_rlx("embed --model " + folder_.path().string() + " < /dev/null")}) {
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err.substr(0, 5), "rlx: ");
    EXPECT_EQ(line_count(result.err), 1) << result.err;
  }
  EXPECT_NE(embed("", "a cat\n" + binary).err.find("line 2"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "never.npy"));
}

TEST_F(EmbedCommand, TheTextIsNotReplaced) {
  const std::string lines = (folder_ / "lines.txt").string();
  write_text(lines, "a cat\n");
  for (const char* command : {"embed --npy", "calibrate --out"}) {
    const CommandResult result = run_rlx(fmt::format("{} {} --model {} {}", command, lines, model_.path().string(), lines));
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.err, fmt::format("rlx: {}: is what is read; give what is written another name\n", lines));
  }
  EXPECT_EQ(read_text(lines), "a cat\n");
}

TEST_F(EmbedCommand, AClosedPipeEndsQuietly) {
  const std::string lines(4000, '\n');  // more output than a pipe holds
  write_text(folder_ / "lines.txt", lines);
  const CommandResult result =
      run_rlx("embed --json --model " + model_.path().string() + " " + (folder_ / "lines.txt").string() + " | head -n 1");
  EXPECT_EQ(line_count(result.out), 1);
  EXPECT_EQ(result.err, "");
}

TEST_F(EmbedCommand, ResultsAreWrittenAsTheyAreThereInTheOrderOfTheLines) {
  std::string lines;
  for (int i = 0; i < 200000; ++i) lines += i % 3 == 0 ? "a cat\n" : "a cat sat a dog ran a cat sat\n";
  write_text(folder_ / "lines.txt", lines);
  const std::string out = (folder_ / "out").string();
  // Ended as soon as something is there, which is long before the last line has its turn.
  const std::string command =
      fmt::format("{} embed --json --batch-size 2 --model {} {} > {} & while ! [ -s {} ] && kill -0 $!; do :; done; kill $!; wait $!",
                  RLX_COMMAND, model_.path().string(), (folder_ / "lines.txt").string(), out, out);
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 128 + SIGTERM);
  std::istringstream written(read_text(out));
  std::size_t count = 0;
  for (std::string line; std::getline(written, line) && line.ends_with('}'); ++count)
    EXPECT_EQ(json::parse(line, "line").at("text"), count % 3 == 0 ? "a cat" : "a cat sat a dog ran a cat sat");
  EXPECT_GT(count, 1U);
  EXPECT_LT(count, 200000U);
}

TEST_F(EmbedCommand, AnInterruptLeavesNoFile) {
  std::string lines;
  for (int i = 0; i < 200000; ++i) lines += "a cat sat a dog ran a cat sat\n";
  write_text(folder_ / "lines.txt", lines);
  const std::filesystem::path output = folder_ / "output";
  std::filesystem::create_directory(output);
  // `timeout` sends the signal while batches run: 200000 lines take far longer than the second that it waits.
  const std::string command = "timeout --preserve-status --signal=INT 1 " RLX_COMMAND " embed --batch-size 1 --model " +
                              model_.path().string() + " --npy " + (output / "out.npy").string() + " " + (folder_ / "lines.txt").string();
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_TRUE(std::filesystem::is_empty(output));
}

TEST_F(EmbedCommand, ACalibrationReplacesScalesFoundAtRunTime) {
  const std::string file = (folder_ / "ranges").string(), lines = (folder_ / "samples.txt").string();
  write_text(lines, "a cat\ndogs ran\n\na cat sat\n");
  EXPECT_EQ(run_rlx("calibrate --model " + model_.path().string() + " /dev/null --out " + file).err,
            "rlx: /dev/null: has no line of text (needed: a few hundred)\n");
  const CommandResult made = run_rlx("calibrate --model " + model_.path().string() + " " + lines + " --out " + file);
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(made.out, "");
  EXPECT_NE(made.err.find("products over 4 texts"), std::string::npos) << made.err;
  const std::filesystem::path wide = folder_ / "wide.npy", narrow = folder_ / "narrow.npy";
  ASSERT_EQ(embed("--npy " + wide.string()).status, 0);
  const CommandResult result = embed("--precision int8 --calibration " + file + " --npy " + narrow.string());
  ASSERT_EQ(result.status, 0) << result.err;
  const Array expected = load_npy(wide), seen = load_npy(narrow);
  for (std::int64_t row = 0; row < 4; ++row) {
    double cosine = 0;  // of vectors of length 1
    for (std::int64_t i = row * 64; i < row * 64 + 64; ++i) cosine += expected.get_double(i) * seen.get_double(i);
    EXPECT_GE(cosine, 0.995) << row;  // as for int8 in tests/models/embed_test.cpp
  }
  EXPECT_NE(embed("--precision bf16 --calibration " + file).err.find("rlx: session: a calibration is of int8"), std::string::npos);
  EXPECT_EQ(embed("--precision int8 --calibration " + lines).status, 1);
  EXPECT_EQ(embed("--calibration " + file).status, 2);
}

}  // namespace
}  // namespace rlx::test
