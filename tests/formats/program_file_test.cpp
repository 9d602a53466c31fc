// Executables in files: the same bits in another session; files that are not as they were written are refused.
#include "rlx/program_file.h"

#include <gtest/gtest.h>

#include "backends/cpu/machine/cpu_features.h"
#include "formats/program/container.h"
#include "formats/temporary_folder.h"
#include "lowering/program_file/parts.h"
#include "rlx/host_call.h"
#include "rlx/io.h"
#include "rlx/ops.h"
#include "rlx/transform.h"
#include "rlx/version.h"

namespace rlx {
namespace {

using test::error_of;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

const SessionOptions no_cache{.threads = 2, .cache_folder = std::filesystem::path()};

Executable compiled(const Graph& graph, SessionOptions options = no_cache) {
  return Session(Device::cpu(), std::move(options)).compile(graph);
}

/// Written, and read in a session of its own.
Executable reread(const Executable& executable, const std::filesystem::path& file) {
  ProgramFile::save(file, std::span(&executable, 1));
  return ProgramFile::load(file, Device::cpu(), no_cache);
}

Array numbers(const std::vector<std::int64_t>& shape, double scale = 0.3) {
  Array array(f32, shape);
  for (std::int64_t i = 0; i < array.size(); ++i) array.set_double(i, scale * std::sin(static_cast<double>(i) * 0.7));
  return array;
}

void expect_same(const Outputs& seen, const Outputs& wanted) {
  ASSERT_EQ(seen.size(), wanted.size());
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_TRUE(seen[i] == wanted[i]) << "output " << i;
}

/// An elementwise kernel, a row's statistics, a product with what is around it, and a constant.
Graph layer() {
  Graph graph("layer");
  const Dim rows = Dim::symbol("rows", 64);
  const Value x = graph.input("x", {rows, 48}, f32), w = graph.param("w", {48, 32}, f32), b = graph.param("b", {32}, f32);
  graph.output("y", gelu(matmul(softmax(x, 1), w) + b) * graph.constant(numbers({32})));
  graph.output("sum", sum(x, {0}));
  return graph;
}

void bind_layer(Executable& executable) {
  executable.set_param("w", numbers({48, 32}));
  executable.set_param("b", numbers({32}, 2));
}

TEST(ProgramFile, FunctionsOfTheProcessAreNotKept) {
  const TemporaryFolder folder;
  const auto same = [](std::span<const Array> operands) { return std::vector<Array>(operands.begin(), operands.end()); };
  Graph graph;
  const Value x = graph.input("x", {3}, f32);
  graph.output("y", host_call(same, {x}, {x.type()})[0]);
  const Executable executable = compiled(graph);
  EXPECT_NE(
      error_of([&] { ProgramFile::save(folder / "a.rlxp", std::span(&executable, 1)); }).find("the graph calls a function of this process"),
      std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.rlxp"));
}

TEST(ProgramFile, ATextEndsWhereTheBytesDo) {
  const std::array<std::byte, 2> bytes{std::byte{0}, std::byte{2}};  // a new text, of one letter
  ProgramReader way("a.rlxp", bytes, 0, {});
  std::string text;
  EXPECT_NE(error_of([&] { way("name", text); }).find("a.rlxp: name before byte 2 is 1 (allowed: 0..0)"), std::string::npos);
}

TEST(ProgramFile, GivesTheSameBitsForSizesOfRunTime) {
  const TemporaryFolder folder;
  Executable wanted = compiled(layer()), seen = reread(wanted, folder / "layer.rlxp");
  bind_layer(wanted), bind_layer(seen);
  for (const std::int64_t rows : {1, 7, 64}) expect_same(seen.run({{"x", numbers({rows, 48})}}), wanted.run({{"x", numbers({rows, 48})}}));
  EXPECT_EQ(seen.dump(Stage::lir), wanted.dump(Stage::lir));
  EXPECT_EQ(seen.dump(Stage::kernels), wanted.dump(Stage::kernels));
  EXPECT_NE(error_of([&] { seen.run({{"x", numbers({65, 48})}}); }), "");
}

TEST(ProgramFile, IsTheSameBytesEachTime) {
  const TemporaryFolder folder;
  const Executable executable = compiled(layer()), again = compiled(layer());
  ProgramFile::save(folder / "a", std::span(&executable, 1));
  ProgramFile::save(folder / "b", std::span(&again, 1));
  EXPECT_TRUE(read_text(folder / "a") == read_text(folder / "b"));
  const Executable loaded = ProgramFile::load(folder / "a", Device::cpu(), no_cache);
  ProgramFile::save(folder / "c", std::span(&loaded, 1));
  EXPECT_TRUE(read_text(folder / "a") == read_text(folder / "c"));
}

TEST(ProgramFile, HasLoopsAndBranches) {
  Graph graph("loops");
  const Dim steps = Dim::symbol("S", 32);
  const Value x = graph.input("x", {steps, 4, 16}, f32), w = graph.param("w", {16, 16}, f32);
  const auto step = [&](const Values& carry, const Values& slice) {
    const Value next = tanh(slice[0] + matmul(carry[0], w));
    return std::pair{Values{next}, Values{next}};
  };
  const Values states = scan(step, {sum(x, {0}) * 0.01}, {x});
  const Values doubled = while_loop([&](const Values& v) { return lt(v[0], sum(x * 0 + 1, {0, 1, 2})); },
                                    [](const Values& v) { return Values{v[0] * 2}; }, {scalar(x, 1, f32)});
  graph.output("all", states[1]);
  graph.output("doubled", doubled[0]);
  graph.output("chosen", cond(
                             gt(doubled[0], scalar(x, 500, f32)), {states[0]}, [](const Values& v) { return Values{exp(v[0])}; },
                             [](const Values& v) { return Values{v[0] - 1}; })[0]);
  const TemporaryFolder folder;
  Executable wanted = compiled(graph), seen = reread(wanted, folder / "loops.rlxp");
  wanted.set_param("w", numbers({16, 16})), seen.set_param("w", numbers({16, 16}));
  for (const std::int64_t rows : {3, 12})
    expect_same(seen.run({{"x", numbers({rows, 4, 16})}}), wanted.run({{"x", numbers({rows, 4, 16})}}));
}

TEST(ProgramFile, HasStatesThatChangeWhereTheyLie) {
  Graph graph("cache");
  const Value cache = graph.state("cache", {4, 3}, f32), row = graph.input("row", {1, 3}, f32), at = graph.input("at", {}, i32);
  graph.output("cache", dynamic_update(cache, row, {at, scalar(at, 0, i32)}));
  const TemporaryFolder folder;
  Executable wanted = compiled(graph), seen = reread(wanted, folder / "cache.rlxp");
  for (const std::int32_t place : {0, 2, 3}) {
    const std::vector<std::int32_t> places{place};
    for (Executable* executable : {&wanted, &seen})
      executable->run({{"row", numbers({1, 3})}, {"at", Array::of<std::int32_t>({}, places)}});
    EXPECT_TRUE(seen.state("cache") == wanted.state("cache"));
  }
}

TEST(ProgramFile, KeepsValuesOfParametersInside) {
  const TemporaryFolder folder;
  Executable wanted = compiled(layer());
  bind_layer(wanted);
  ProgramFile::save(folder / "layer.rlxp", std::span(&wanted, 1), {}, ProgramFile::Weights::inside);
  const Executable seen = ProgramFile::load(folder / "layer.rlxp", Device::cpu(), no_cache);
  EXPECT_TRUE(seen.missing_params().empty());
  expect_same(seen.run({{"x", numbers({9, 48})}}), wanted.run({{"x", numbers({9, 48})}}));
}

TEST(ProgramFile, SaysWhereValuesAreAndWhatTheyWere) {
  const TemporaryFolder folder;
  Executable wanted = compiled(layer());
  bind_layer(wanted);
  save_safetensors(folder / "w.safetensors", {{"weight", numbers({48, 32})}});
  save_npy(folder / "b.npy", numbers({32}, 2));
  const std::vector<ProgramFile::Source> sources{{"w", folder / "w.safetensors", "weight"}, {"b", folder / "b.npy"}};
  ProgramFile::save(folder / "layer.rlxp", std::span(&wanted, 1), sources);
  expect_same(ProgramFile::load(folder / "layer.rlxp", Device::cpu(), no_cache).run({{"x", numbers({9, 48})}}),
              wanted.run({{"x", numbers({9, 48})}}));
  save_npy(folder / "b.npy", numbers({32}, 3));
  const std::string error = error_of([&] { ProgramFile::load(folder / "layer.rlxp", Device::cpu(), no_cache); });
  EXPECT_NE(error.find("b.npy"), std::string::npos) << error;
  EXPECT_NE(error.find("as when"), std::string::npos) << error;
}

TEST(ProgramFile, NamesValuesThatAreGoneOrOfAnotherType) {
  const TemporaryFolder folder;
  const Executable executable = compiled(layer());
  const auto refusal = [&](const ProgramFile::Source& source) {
    ProgramFile::save(folder / "layer.rlxp", std::span(&executable, 1), {&source, 1});
    return error_of([&] { ProgramFile::load(folder / "layer.rlxp", Device::cpu(), no_cache); });
  };
  save_safetensors(folder / "w.safetensors", {{"weight", numbers({48, 32})}});
  EXPECT_NE(refusal({"w", folder / "w.safetensors", "bias"}).find("w.safetensors: there is no tensor 'bias'"), std::string::npos);
  EXPECT_NE(refusal({"b", folder / "w.safetensors", "weight"}).find("'b'"), std::string::npos);
  ProgramFile::save(folder / "layer.rlxp", std::span(&executable, 1),
                    std::vector<ProgramFile::Source>{{"w", folder / "w.safetensors", "weight"}});
  std::filesystem::remove(folder / "w.safetensors");
  const std::string error = error_of([&] { ProgramFile::load(folder / "layer.rlxp", Device::cpu(), no_cache); });
  EXPECT_NE(error.find("w.safetensors"), std::string::npos) << error;
  EXPECT_NE(error_of([&] { refusal({"w", folder / "w.safetensors", "weight"}); }).find("w.safetensors"), std::string::npos);
}

TEST(ProgramFile, HasAHashOfAllThatIsInIt) {
  const TemporaryFolder folder;
  Executable executable = compiled(layer());
  const auto hash = [&](ProgramFile::Weights weights) {
    ProgramFile::save(folder / "a.rlxp", std::span(&executable, 1), {}, weights);
    return ProgramFile::hash(folder / "a.rlxp");
  };
  const std::string outside = hash(ProgramFile::Weights::outside);
  EXPECT_EQ(outside.size(), 32U);
  EXPECT_EQ(outside.find_first_not_of("0123456789abcdef"), std::string::npos);
  bind_layer(executable);
  EXPECT_EQ(hash(ProgramFile::Weights::outside), outside);
  const std::string inside = hash(ProgramFile::Weights::inside);
  EXPECT_NE(inside, outside);
  executable.set_param("b", numbers({32}, 3));
  EXPECT_NE(hash(ProgramFile::Weights::inside), inside);
  EXPECT_NE(error_of([&] { ProgramFile::hash(folder / "none.rlxp"); }).find("none.rlxp"), std::string::npos);
}

TEST(ProgramFile, IsOpenedWithOptionsThatASessionTakes) {
  const TemporaryFolder folder;
  const auto save = [&](const Graph& graph, const SessionOptions& options) {
    const Executable executable = compiled(graph, options);
    ProgramFile::save(folder / "a.rlxp", std::span(&executable, 1));
  };
  const auto load = [&](const SessionOptions& options) { return ProgramFile::load(folder / "a.rlxp", Device::cpu(), options); };
  SessionOptions checks = no_cache;
  checks.check_indices = true;
  save(layer(), no_cache);
  EXPECT_NE(error_of([&] { load({.threads = -1}); }).find("session: -1 threads"), std::string::npos);
  load(checks);  // it has no indices
  Graph rows("rows");
  rows.output("y", take(rows.input("x", {4, 3}, f32), rows.input("ids", {2}, i32), 0));
  save(rows, no_cache);
  EXPECT_NE(error_of([&] { load(checks); }).find("compiled without check_indices"), std::string::npos);
  save(rows, checks);
  const std::vector<std::int32_t> ids{1, 4};
  const Executable checked = load(checks);
  EXPECT_NE(error_of([&] { checked.run({{"x", numbers({4, 3})}, {"ids", ids}}); }).find("4"), std::string::npos);
}

TEST(ProgramFile, HasAProgramForEachLevel) {
  const TemporaryFolder folder;
  std::vector<Executable> executables;
  for (const std::string level : {"portable", ""}) {
    SessionOptions options = no_cache;
    options.cpu_level = level;
    executables.push_back(compiled(layer(), options));
    bind_layer(executables.back());
  }
  if (cpu::cpu_level() == cpu::CpuLevel::portable) GTEST_SKIP() << "this CPU has one level";
  ProgramFile::save(folder / "layer.rlxp", executables, {}, ProgramFile::Weights::inside);
  SessionOptions portable = no_cache;
  portable.cpu_level = "portable";
  const std::map<std::string, Feed> inputs{{"x", numbers({9, 48})}};
  expect_same(ProgramFile::load(folder / "layer.rlxp", Device::cpu(), portable).run(inputs), executables[0].run(inputs));
  expect_same(ProgramFile::load(folder / "layer.rlxp", Device::cpu(), no_cache).run(inputs), executables[1].run(inputs));
  executables.push_back(executables[0]);
  EXPECT_NE(error_of([&] { ProgramFile::save(folder / "two", executables); }).find("two programs for cpu portable"), std::string::npos);
}

TEST(ProgramFile, IsRefusedWhereItIsCutShortOrAltered) {
  const TemporaryFolder folder;
  const Executable executable = compiled(layer());
  ProgramFile::save(folder / "whole", std::span(&executable, 1));
  const std::string whole = read_text(folder / "whole");
  const auto refusal = [&](const std::string& bytes) {
    write_text(folder / "bad.rlxp", bytes);
    return error_of([&] { ProgramFile::load(folder / "bad.rlxp", Device::cpu(), no_cache); });
  };
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 3)
    EXPECT_NE(refusal(whole.substr(0, bytes)).find("bad.rlxp: "), std::string::npos) << bytes;
  for (std::size_t at = 0; at < whole.size(); at += 1 + at / 8) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 0x20);
    write_text(folder / "bad.rlxp", altered);
    try {
      ProgramFile::load(folder / "bad.rlxp", Device::cpu(), no_cache);  // what lies between two blobs means nothing
      EXPECT_EQ(whole[at], '\0') << at;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("bad.rlxp: "), std::string::npos) << error.what();
    }
  }
  std::string later = whole;
  later[8] = static_cast<char>(program_file_version + 1);  // behind the magic
  EXPECT_NE(refusal(later).find(
                fmt::format("format version is {} (allowed: {}): compile it again", program_file_version + 1, program_file_version)),
            std::string::npos);
  EXPECT_NE(refusal("something else, of more bytes than the header of a program file has, and then some").find("not a program file"),
            std::string::npos);
}

TEST(ProgramFile, IsRefusedWhereItIsOfAnotherVersionOrMachine) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& by, const std::string& fingerprint) {
    Blobs blobs;
    ProgramWriter directory(blobs);
    directory("version", by), directory("programs", 1);
    directory("device", std::string("cpu")), directory("level", std::string("portable")), directory("fingerprint", fingerprint);
    directory("program", blobs.add("program"));
    directory("weights", std::vector<std::string>());
    write_container(folder / "other.rlxp", blobs, directory.bytes());
    return error_of([&] { ProgramFile::load(folder / "other.rlxp", Device::cpu(), no_cache); });
  };
  EXPECT_NE(refusal("0.0.1", "any").find("it was written by RLX 0.0.1 (allowed: "), std::string::npos);
  const std::string error = refusal(std::string(version), "llvm 3.1 of another machine");
  EXPECT_NE(error.find("other.rlxp: it has no program for cpu "), std::string::npos) << error;
  EXPECT_NE(error.find("it has: cpu portable (llvm 3.1 of another machine)"), std::string::npos) << error;
}

}  // namespace
}  // namespace rlx
