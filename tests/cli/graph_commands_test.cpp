// eval, grad, dump, explain, inspect and ops as a user runs them.
#include <gtest/gtest.h>

#include "cli/run_command.h"
#include "fixture.h"
#include "formats/json/json.h"
#include "formats/tensors/safetensors.h"
#include "ir/op.h"
#include "rlx/io.h"
#include "rlx/text.h"

namespace rlx {
namespace {

using test::CommandResult;
using test::fixture;
using test::quoted;
using test::read_text;
using test::run_rlx;
using test::TemporaryFolder;
using test::write_text;

/// A user's error is one line on stderr that begins "rlx: ", with status 1, and nothing on stdout.
void expect_error(const std::string& arguments, const std::string& part) {
  const CommandResult ended = run_rlx(arguments);
  EXPECT_EQ(ended.status, 1) << arguments << "\n" << ended.err;
  EXPECT_TRUE(ended.err.starts_with("rlx: ")) << ended.err;
  EXPECT_EQ(test::line_count(ended.err), 1) << ended.err;
  EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
  EXPECT_EQ(ended.out, "");
}

void expect_usage(const std::string& arguments) {
  const CommandResult ended = run_rlx(arguments);
  EXPECT_EQ(ended.status, 2) << arguments << "\n" << ended.err;
  EXPECT_NE(ended.err.find("--help"), std::string::npos) << ended.err;
}

const std::string mlp = quoted(fixture("graphs/mlp.rlx"));

/// x (2, 3) and w (3, 2) of small integers, so that sums are exact in every order.
struct MlpFiles {
  TemporaryFolder folder;
  std::string arguments;

  MlpFiles() {
    const std::vector<float> x{1, 2, 3, 4, 5, 6}, w{1, 0, 0, 1, 1, 1};
    save_npy(folder / "x.npy", Array::of<float>({2, 3}, x));
    save_npy(folder / "w.npy", Array::of<float>({3, 2}, w));
    arguments = " --in x=" + quoted(folder / "x.npy") + " --param w=" + quoted(folder / "w.npy") + " --out " + quoted(folder / "out");
  }
  Array output(const std::string& name) const { return load_npy(folder / "out" / (name + ".npy")); }
};

// x w = [[4, 5], [10, 11]], whose squares sum to 262; the gradient by w is 2 x^T (x w).
constexpr float mlp_loss = 262;
const std::vector<float> mlp_gradient{88, 98, 116, 130, 144, 162};

TEST(Eval, WritesOneArrayForEachOutput) {
  for (const std::string flags : {"", " --reference", " --no-claims", " --no-fusion", " --threads 1"}) {
    const MlpFiles files;
    const CommandResult ended = run_rlx("eval " + mlp + files.arguments + flags);
    ASSERT_EQ(ended.status, 0) << flags << ended.err;
    EXPECT_EQ(files.output("loss"), Array::of<float>({}, std::span(&mlp_loss, 1))) << flags;
    EXPECT_NE(ended.out.find("loss"), std::string::npos);
  }
}

TEST(Eval, TakesTensorsOfASafetensorsFile) {
  const MlpFiles files;
  const Array w = load_npy(files.folder / "w.npy");
  const TensorView view{"w", w.dtype(), w.shape(), w.bytes()};
  write_safetensors(files.folder / "all.safetensors", std::span(&view, 1));
  const CommandResult ended = run_rlx("eval " + mlp + " --in x=" + quoted(files.folder / "x.npy") + " --param " +
                                      quoted(files.folder / "all.safetensors") + " --out " + quoted(files.folder / "out"));
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(files.output("loss").get_double(0), mlp_loss);
}

TEST(Eval, TakesOneTensorOfASafetensorsFile) {
  const MlpFiles files;
  const Array w = load_npy(files.folder / "w.npy"), x = load_npy(files.folder / "x.npy");
  const auto two = files.folder / "two.safetensors", one = files.folder / "one.safetensors";
  save_safetensors(two, {{"w", w}, {"layer.x", x}});
  save_safetensors(one, {{"weight", w}});
  const std::string out = " --out " + quoted(files.folder / "out");
  for (const std::string& weights : {"w=" + two.string(), "w=" + two.string() + ":w", "w=" + one.string()}) {
    const CommandResult ended = run_rlx("eval " + mlp + " --in 'x=" + two.string() + ":layer.x' --param '" + weights + "'" + out);
    ASSERT_EQ(ended.status, 0) << weights << ended.err;
    EXPECT_EQ(files.output("loss").get_double(0), mlp_loss) << weights;
  }
  expect_error("eval " + mlp + " --in 'x=" + two.string() + "'" + out, "two.safetensors: there is no tensor 'x' (near: 'layer.x'");
  expect_error("eval " + mlp + " --in 'x=" + one.string() + ":w'" + out, "one.safetensors: there is no tensor 'w'");
}

TEST(Eval, WritesTypesThatNumpyHasByMlDtypesAndSaysHowTheyAreRead) {
  const TemporaryFolder folder;
  write_text(
      folder / "g.rlx",
      "graph g {\n  %a = iota {shape=[5]}\n  %b = cast(%a) {to=bf16}\n  %c = cast(%a) {to=i4}\n  output b = %b\n  output c = %c\n}\n");
  const CommandResult ended = run_rlx("eval " + quoted(folder / "g.rlx") + " --out " + quoted(folder / "out"));
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(load_npy(folder / "out/b.npy").dtype(), bf16);
  EXPECT_EQ(load_npy(folder / "out/c.npy").get_int(4), 4);
  EXPECT_NE(ended.out.find("ml_dtypes"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("b.npy', \"u2\", offset=128)"), std::string::npos) << ended.out;
}

TEST(Eval, ReadsAGraphFileWithItsWeights) {
  const MlpFiles files;
  const Graph graph = parse_graph(read_text(fixture("graphs/mlp.rlx")), "mlp.rlx");
  save_graph(files.folder / "mlp.safetensors", {graph, {{"w", load_npy(files.folder / "w.npy")}}});
  const CommandResult ended = run_rlx("eval " + quoted(files.folder / "mlp.safetensors") + " --in x=" + quoted(files.folder / "x.npy") +
                                      " --out " + quoted(files.folder / "out"));
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(files.output("loss").get_double(0), mlp_loss);
}

TEST(Eval, ErrorsNameWhatIsWrong) {
  const MlpFiles files;
  const std::string out = " --out " + quoted(files.folder / "out");
  const std::string x = " --in x=" + quoted(files.folder / "x.npy"), w = " --param w=" + quoted(files.folder / "w.npy");
  expect_error("eval " + mlp + x + out, "'w'");
  expect_error("eval " + mlp + w + out, "'x'");
  expect_error("eval " + mlp + x + w + x + out, "twice");
  expect_error("eval " + mlp + x + w + " --in xx=" + quoted(files.folder / "x.npy") + out, "'xx'");
  expect_error("eval " + mlp + " --in x=" + quoted(files.folder / "w.npy") + w + out, "x");
  expect_error("eval " + mlp + " --in x=" + quoted(files.folder / "absent.npy") + w + out, "absent.npy");
  expect_error("eval " + quoted(files.folder / "absent.rlx") + out, "absent.rlx");
  write_text(files.folder / "broken.rlx", "graph g {\n  %0 = dott()\n}\n");
  expect_error("eval " + quoted(files.folder / "broken.rlx") + out, "broken.rlx:2:");
}

TEST(Eval, ADeviceIsNoFolderForResults) {  // said before the inputs, which are missing, are asked for
  expect_error("eval " + mlp + " --out /dev/full", "/dev/full: the folder cannot be made: a file or a device has this name");
}

TEST(Eval, OfAModelSaysWhatTakesModels) {
  for (const char* model : {"gguf_models/llama.gguf", "hf/llama"}) {
    const std::string path = fixture(model).string();
    for (const char* command : {"explain {}", "eval {} --out /dev/null/no", "dump --stage hir {}"})
      expect_error(fmt::format(fmt::runtime(command), path),
                   command[1] == 'v' ? "/dev/null: the folder" : path + ": it is a model (allowed: graphs; --model of 'rlx explain'");
  }
}

TEST(Eval, OutputNamesCannotLeaveTheFolder) {
  const MlpFiles files;
  std::string text = read_text(fixture("graphs/mlp.rlx"));
  const std::string name = "output loss";
  text.replace(text.find(name), name.size(), "output \"../loss\"");
  write_text(files.folder / "escape.rlx", text);
  expect_error("eval " + quoted(files.folder / "escape.rlx") + files.arguments, "../loss");
}

TEST(Eval, AnErrorLeavesNothingHalfWritten) {
  const TemporaryFolder folder;
  const std::string out = quoted(folder / "out");
  // Both orders: the output that cannot be written is the last by its name in one and the first in the other.
  for (const std::string& name : {std::string(300, 'z'), std::string(300, 'A')}) {
    write_text(folder / "long.rlx", "graph g {\n  %a = iota {shape=[2]}\n  output m = %a\n  output " + name + " = %a\n}\n");
    expect_error("eval " + quoted(folder / "long.rlx") + " --out " + out, "300 bytes");
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  }
  write_text(folder / "two.rlx", "graph g {\n  %a = iota {shape=[2]}\n  output a = %a\n  output b = %a\n}\n");
  std::filesystem::create_directories(folder / "out" / "b.npy");  // in the way of the second output
  expect_error("eval " + quoted(folder / "two.rlx") + " --out " + out, "b.npy");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "out"), {}), 1);
}

TEST(Eval, InputsAndParametersAreToldApart) {
  const MlpFiles files;
  const std::string out = " --out " + quoted(files.folder / "out");
  const std::string x = "x=" + quoted(files.folder / "x.npy"), w = "w=" + quoted(files.folder / "w.npy");
  expect_error("eval " + mlp + " --in " + x + " --in " + w + out, "'w' is not a value for --in but for --param");
  expect_error("eval " + mlp + " --param " + x + " --param " + w + out, "'x' is not a value for --param but for --in");
  expect_error("eval " + mlp + " --in " + x + " --param v=" + quoted(files.folder / "w.npy") + out, "parameter 'v' is unknown (near: 'w')");
}

TEST(Eval, AGraphWithoutOutputsIsAnError) {
  const TemporaryFolder folder;
  write_text(folder / "none.rlx", "graph none {\n  %a = iota {shape=[2]}\n}\n");
  for (const std::string flag : {"", " --reference"})
    expect_error("eval " + quoted(folder / "none.rlx") + " --out " + quoted(folder / "out") + flag, "no outputs");
  expect_error("dump --stage lir " + quoted(folder / "none.rlx"), "no outputs");
}

TEST(Eval, WrongUsageHasStatusTwo) {
  expect_usage("eval");
  expect_usage("eval " + mlp + " --in x --out somewhere");
  expect_usage("eval " + mlp + " --in =x.npy --out somewhere");
  expect_usage("explain");
  expect_usage("explain " + mlp + " --size B=many");
  expect_usage("dump " + mlp + " --stage nowhere");
  expect_usage("grad " + mlp);
}

TEST(Save, WritesAGraphFileThatOtherCommandsRead) {
  const MlpFiles files;
  const std::string saved = quoted(files.folder / "mlp.safetensors"), w = " --param w=" + quoted(files.folder / "w.npy");
  const CommandResult ended = run_rlx("save " + mlp + w + " --out " + saved);
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(test::line_count(ended.out), 1) << ended.out;
  EXPECT_TRUE(ended.out.starts_with("w ") && ended.out.ends_with("saved\n")) << ended.out;
  const std::string x_and_out = " --in x=" + quoted(files.folder / "x.npy") + " --out " + quoted(files.folder / "out");
  ASSERT_EQ(run_rlx("eval " + saved + x_and_out).status, 0);
  EXPECT_EQ(files.output("loss").get_double(0), mlp_loss);
  EXPECT_NE(run_rlx("inspect " + saved).out.find("weight"), std::string::npos);
}

TEST(Save, AGivenValueReplacesThatOfTheFile) {
  const MlpFiles files;
  const std::string saved = quoted(files.folder / "mlp.safetensors"), again = quoted(files.folder / "again.safetensors");
  save_npy(files.folder / "zero.npy", Array(f32, {3, 2}));
  const CommandResult without = run_rlx("save " + mlp + " -o " + saved);
  EXPECT_TRUE(without.out.ends_with("no value\n")) << without.out << without.err;
  EXPECT_TRUE(load_graph(files.folder / "mlp.safetensors").weights.empty());
  ASSERT_EQ(run_rlx("save " + mlp + " --param w=" + quoted(files.folder / "w.npy") + " -o " + saved).status, 0);
  ASSERT_EQ(run_rlx("save " + saved + " -o " + again).status, 0);
  EXPECT_EQ(load_graph(files.folder / "again.safetensors").weights.at("w"), load_npy(files.folder / "w.npy"));
  ASSERT_EQ(run_rlx("save " + saved + " --param w=" + quoted(files.folder / "zero.npy") + " -o " + saved).status, 0);
  EXPECT_EQ(load_graph(files.folder / "mlp.safetensors").weights.at("w"), Array(f32, {3, 2}));
}

TEST(Save, AnErrorLeavesNoFile) {
  const MlpFiles files;
  const std::string out = " --out " + quoted(files.folder / "out.safetensors");
  expect_error("save " + mlp + " --param v=" + quoted(files.folder / "w.npy") + out, "'v' is no parameter or state of graph");
  expect_error("save " + mlp + " --param w=" + quoted(files.folder / "x.npy") + out, "f32[2,3]");
  expect_error("save " + mlp + " --out " + quoted(files.folder / "none" / "out"), "none");
  EXPECT_FALSE(std::filesystem::exists(files.folder / "out.safetensors"));
  expect_usage("save " + mlp);
}

TEST(Grad, ItsGraphComputesTheGradient) {
  const MlpFiles files;
  const std::string gradient = quoted(files.folder / "gradient.rlx");
  ASSERT_EQ(run_rlx("grad " + mlp + " --wrt w,x --value -o " + gradient).status, 0);
  const CommandResult ended = run_rlx("eval " + gradient + files.arguments);
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(files.output("loss").get_double(0), mlp_loss);
  EXPECT_EQ(files.output("grad_w"), Array::of<float>({3, 2}, mlp_gradient));
  EXPECT_EQ(files.output("grad_x").shape(), (std::vector<std::int64_t>{2, 3}));
}

TEST(Grad, PrintsTextThatEvalReadsFromAPipe) {
  const MlpFiles files;
  const CommandResult ended = run_rlx("grad " + mlp + " --wrt w | " RLX_COMMAND " eval -" + files.arguments);
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(files.output("grad_w"), Array::of<float>({3, 2}, mlp_gradient));
}

TEST(Grad, AnUnknownNameIsAnError) { expect_error("grad " + mlp + " --wrt v", "v"); }

TEST(Dump, HirIsTheGraphItself) {
  const CommandResult ended = run_rlx("dump " + mlp + " --stage hir");
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(structurally_equal(parse_graph(ended.out, "dump"), parse_graph(read_text(fixture("graphs/mlp.rlx")), "mlp.rlx")));
}

TEST(Dump, LaterStagesShowTheMemoryPlanAndTheKernels) {
  EXPECT_NE(run_rlx("dump " + mlp + " --stage mir").out.find("reduce"), std::string::npos);
  EXPECT_NE(run_rlx("dump " + mlp + " --stage lir").out.find("arena"), std::string::npos);
  EXPECT_NE(run_rlx("dump " + mlp + " --stage kernels --no-claims").out.find("define"), std::string::npos);
}

TEST(Explain, CountsTheWorkOfEveryLaunch) {
  const CommandResult ended = run_rlx("explain " + mlp + " --size B=4 --json --repeats 1");
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json::Value report = json::parse(ended.out, "explain");
  double flops = 0;
  for (const json::Value& launch : report.at("launches")) {
    flops += launch.at("flops").get<double>();
    EXPECT_GT(launch.at("bytes").get<double>(), 0);
    EXPECT_GT(launch.at("seconds").get<double>(), 0);
    EXPECT_GT(launch.at("least_seconds").get<double>(), 0);
  }
  EXPECT_GE(flops, 2 * 4 * 3 * 2);  // of the product alone
  EXPECT_GE(report.at("nodes").size(), 3u);
  EXPECT_GT(report.at("machine").at("flops_per_second").at("f32").get<double>(), 1e8);
  EXPECT_GT(report.at("machine").at("bytes_per_second").get<double>(), 1e8);
  EXPECT_EQ(report.at("memory").at("arena_bytes").get<int>(), 0);  // its only launch writes the output
  EXPECT_EQ(report.at("memory").at("parameter_bytes").get<int>(), 3 * 2 * 4);
  EXPECT_EQ(report.at("memory").at("state_bytes").get<int>(), 0);
}

TEST(Explain, TellsWhatActivationsTake) {
  const CommandResult ended = run_rlx("explain --model " + quoted(fixture("hf/bert")) + " --size S=7 --json --repeats 1");
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json::Value memory = json::parse(ended.out, "explain").at("memory");
  EXPECT_GT(memory.at("live_bytes").get<double>(), 0);
  EXPECT_LE(memory.at("live_bytes").get<double>(), memory.at("arena_bytes").get<double>());
  EXPECT_GT(memory.at("scratch_bytes").get<double>(), 0);  // of products
}

TEST(Explain, LaunchesAreMeasuredAgainstThePeakOfTheirOperands) {
  const CommandResult ended = run_rlx("explain --model " + quoted(fixture("hf/bert")) + " --precision bf16 --size S=7 --json --repeats 1");
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json::Value report = json::parse(ended.out, "explain");
  const double memory = report.at("machine").at("bytes_per_second").get<double>();
  for (const json::Value& launch : report.at("launches")) {
    if (launch.at("kind") == "prepared") continue;
    const double peak = report.at("machine").at("flops_per_second").at(launch.at("arithmetic").get<std::string>()).get<double>();
    const double least = std::max(launch.at("flops").get<double>() / peak, launch.at("bytes").get<double>() / memory);
    EXPECT_NEAR(launch.at("least_seconds").get<double>(), least, 1e-9 * least) << launch.at("name");  // printed numbers are rounded
  }
}

TEST(Explain, SaysThatNothingIsKeptAndWhatMayHelp) {
  const TemporaryFolder folder;
  write_text(folder / "file", "no folder");
  setenv("RLX_CACHE", (folder / "file").c_str(), 1);
  const CommandResult ended = run_rlx("explain --no-time " + mlp);
  unsetenv("RLX_CACHE");
  EXPECT_EQ(ended.status, 0);
  EXPECT_TRUE(ended.err.starts_with("rlx: nothing that was compiled or timed is kept: " + (folder / "file").string())) << ended.err;
  EXPECT_TRUE(ended.err.ends_with(": cannot create: Not a directory (RLX_CACHE may name another folder)\n")) << ended.err;
  EXPECT_NE(ended.out.find("1 launches"), std::string::npos) << ended.out;
}

TEST(Explain, SaysHowTunedProductsAreCut) {
  const std::string command = "explain --model " + quoted(fixture("hf/bert")) + " --precision f16 --size S=7 --repeats 1";
  const CommandResult tuned = run_rlx(command + " --tune"), usual = run_rlx(command);
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("tuned: "), std::string::npos);
  EXPECT_NE(tuned.out.find(" blocks, "), std::string::npos);
  EXPECT_EQ(usual.out.find("tuned: "), std::string::npos);
  EXPECT_NE(usual.out.find("precision   f16"), std::string::npos);
}

TEST(Explain, TakesModelFoldersAndPrintsTables) {
  const CommandResult ended = run_rlx("explain --model " + quoted(fixture("hf/bert")) + " --size S=7 --no-time");
  ASSERT_EQ(ended.status, 0) << ended.err;
  EXPECT_NE(ended.out.find("decomposed"), std::string::npos);
  EXPECT_NE(ended.out.find("launches, "), std::string::npos);
}

TEST(Explain, SizesAreChecked) {
  expect_error("explain " + mlp + " --size B=33", "1..32");
  expect_error("explain " + mlp + " --size C=1", "'C'");
  const MlpFiles files;  // x has two rows
  expect_error("explain " + mlp + " --size B=3 --in x=" + quoted(files.folder / "x.npy"),
               "size B=3 contradicts the given values, by which B is 2");
  EXPECT_EQ(run_rlx("explain --no-time " + mlp + " --size B=2 --in x=" + quoted(files.folder / "x.npy")).status, 0);
}

TEST(Inspect, ListsTensorsOfAValidatedFile) {
  const CommandResult ended = run_rlx("inspect --json " + quoted(fixture("hf/bert/model.safetensors")));
  ASSERT_EQ(ended.status, 0) << ended.err;
  const json::Value report = json::parse(ended.out, "inspect");
  const SafetensorsFile file = SafetensorsFile::open(fixture("hf/bert/model.safetensors"));
  ASSERT_EQ(report.at("tensors").size(), file.tensors().size());
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    const TensorView& tensor = file.tensors()[i];
    EXPECT_EQ(report.at("tensors")[i].at("name"), tensor.name);
    EXPECT_EQ(report.at("tensors")[i].at("shape").get<std::vector<std::int64_t>>(), tensor.shape);
    EXPECT_EQ(report.at("tensors")[i].at("bytes"), tensor.data.size());
  }
}

TEST(Inspect, KnowsNpyAndGraphsByTheirFirstBytes) {
  const MlpFiles files;
  std::filesystem::copy_file(files.folder / "x.npy", files.folder / "nameless");
  EXPECT_NE(run_rlx("inspect " + quoted(files.folder / "nameless")).out.find("f32[2,3]"), std::string::npos);
  const CommandResult graph = run_rlx("inspect " + mlp);
  EXPECT_EQ(graph.status, 0) << graph.err;
  EXPECT_NE(graph.out.find("f32[B,3]"), std::string::npos);
  EXPECT_NE(graph.out.find("param"), std::string::npos);
}

TEST(Inspect, ReadsStandardInputAndNamesWhatItCannotKnow) {
  const MlpFiles files;
  EXPECT_NE(run_rlx("inspect - < " + quoted(files.folder / "x.npy")).out.find("f32[2,3]"), std::string::npos);
  EXPECT_NE(run_rlx("inspect - < " + mlp).out.find("f32[B,3]"), std::string::npos);
  EXPECT_NE(run_rlx("inspect - < " + quoted(fixture("hf/bert/model.safetensors"))).out.find("valid"), std::string::npos);
  expect_error("inspect " + quoted(fixture("hf/bert/config.json")), "neither");
  write_text(files.folder / "note", "just some words\n");
  expect_error("inspect " + quoted(files.folder / "note"), "neither");
}

TEST(Inspect, MalformedFilesAreOneLineAndStatusOne) {
  int count = 0;
  for (const std::string kind : {"safetensors", "npy"}) {
    for (const auto& entry : std::filesystem::directory_iterator(fixture(kind + "/malformed"))) {
      const std::string name = entry.path().filename().string();
      if (entry.path().extension() != "." + kind) continue;
      if (name.starts_with("valid")) {
        EXPECT_EQ(run_rlx("inspect " + quoted(entry.path())).status, 0) << name;
        continue;
      }
      expect_error("inspect " + quoted(entry.path()), name);
      ++count;
    }
  }
  EXPECT_GT(count, 20);
}

TEST(Ops, DescribesEachOpOfTheRegistry) {
  const CommandResult list = run_rlx("ops");
  ASSERT_EQ(list.status, 0) << list.err;
  for (const auto& [name, op] : op_registry()) EXPECT_NE(list.out.find("\n  " + std::string(name) + " "), std::string::npos) << name;
  EXPECT_NE(run_rlx("ops softmax").out.find("axis"), std::string::npos);
  EXPECT_NE(run_rlx("ops softmax").out.find("Value softmax(Operand x, Axis axis = -1"), std::string::npos);
  expect_error("ops sofmax", "softmax");
}

TEST(Ops, DescribesFunctionsThatAreBuiltFromOps) {
  const CommandResult triu = run_rlx("ops triu");
  ASSERT_EQ(triu.status, 0) << triu.err;
  EXPECT_NE(triu.out.find("Value triu(Operand x, std::int64_t diagonal = 0);"), std::string::npos) << triu.out;
  EXPECT_NE(triu.out.find("upper triangle"), std::string::npos) << triu.out;
  EXPECT_NE(run_rlx("ops cumulative").out.find("built by cumsum, cumprod, cummax, cummin"), std::string::npos);
  expect_error("ops cumprods", "cumprod");
}

}  // namespace
}  // namespace rlx
