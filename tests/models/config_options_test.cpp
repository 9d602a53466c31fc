// Options of configs that few models have, against what transformers computes (scripts/hf_models.py, hf_encoders.py, hf_activations.py).
#include <gtest/gtest.h>

#include "fixture.h"
#include "formats/json/json.h"
#include "formats/json/json_field.h"
#include "formats/temporary_folder.h"
#include "ir/reference.h"
#include "models/config/hidden_activation.h"
#include "models/layers/activation.h"
#include "models/run/recorded_run.h"
#include "rlx/convert.h"

namespace rlx {
namespace {

using test::error_of;
using test::fixture;

HiddenActivation activation_of(const std::string& name) {
  const json::Value field = name;
  return read_activation(JsonField(field, "config.json", "hidden_act"));
}

TEST(HiddenActivations, AreTransformersOfTheSameNames) {
  const json::Value recorded = json::read_file(fixture("hf_options/activations.json"));
  const auto numbers = recorded.at("x").get<std::vector<double>>();
  const auto count = static_cast<std::int64_t>(numbers.size());
  for (const auto& [name, values] : recorded.items()) {
    if (name == "x") continue;
    Graph graph;
    graph.output("y", activate(activation_of(name), graph.input("x", {count}, f64)));
    const Array y = evaluate(graph, {{"x", Array::of<double>({count}, numbers)}})[0];
    for (std::int64_t i = 0; i < count; ++i)  // gelu_fast has a constant of ten digits
      EXPECT_NEAR(y.get_double(i), values.at(static_cast<std::size_t>(i)).get<double>(), name == "gelu_fast" ? 1e-10 : 1e-13)
          << name << " " << i;
    EXPECT_EQ(activation_of(activation_name(activation_of(name))), activation_of(name));
  }
}

TEST(HiddenActivations, WithWeightsAndUnknownOnesAreRefused) {
  for (const char* name : {"prelu", "xielu", "gelu_ne"})
    EXPECT_NE(
        error_of([&] { activation_of(name); }).find("config.json: hidden_act: '" + std::string(name) + "' is not known (allowed: gelu, "),
        std::string::npos);
}

class ConfigOptions : public testing::TestWithParam<std::string> {};

TEST_P(ConfigOptions, ResultsAreTheRecordedOnes) {
  for (const VerifiedTensor& t : verify_folder(fixture("hf_options/" + GetParam()), Session()))
    EXPECT_TRUE(t.passed()) << t.name << ": " << t.difference << " > " << t.allowed;
}

INSTANTIATE_TEST_SUITE_P(Fixtures, ConfigOptions,
                         testing::Values("gpt2-scaled", "llama-mish"),
                         [](const auto& each) { return std::string(each.param).replace(each.param.find('-'), 1, "_"); });

TEST(ConfigOptions, WhatGgufFilesCannotSayIsRefused) {
  const test::TemporaryFolder folder;
  for (const char* name : {"gpt2-scaled", "llama-mish"})
    EXPECT_NE(error_of([&] { convert(fixture("hf_options") / name, folder / "m.gguf"); }).find("what metadata of GGUF files cannot say"),
              std::string::npos);
}

}  // namespace
}  // namespace rlx
