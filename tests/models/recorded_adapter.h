#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "models/logits.h"
#include "rlx/io.h"
#include "rlx/model.h"

namespace rlx::test {

inline Model open_adapted(const std::filesystem::path& model, std::vector<Adapter> adapters = {}, bool claims = true) {
  SessionOptions options;
  options.threads = 1;  // the models are too small for two
  options.claims = claims;
  // What was recorded was computed from keys and values in f32.
  return Model::open(model, Session(Device::cpu(), options), {.context = 40, .adapters = std::move(adapters), .cache = CacheType::f32});
}
inline Model open_adapted(const std::filesystem::path& model, const std::filesystem::path& adapter) {
  return open_adapted(model, std::vector<Adapter>{{adapter}});
}

inline Ids ids_of(const Array& array, std::int64_t row = 0) {
  const std::int64_t length = array.shape().back();
  Ids ids;
  for (std::int64_t i = 0; i < length; ++i) ids.push_back(static_cast<std::int32_t>(array.get_int(row * length + i)));
  return ids;
}

inline std::vector<float> logits_of(Model model, const Ids& ids) {
  model.rewind(0);
  return model.append(ids, static_cast<std::int64_t>(ids.size()));
}

/// Compares a model with the recording in a folder below lora: logits may differ by ten times the recording's own distance between f32 and
/// f64, greedy tokens not at all.
inline void expect_recorded(Model model, const std::string& name) {
  const NamedArrays recorded = load_safetensors(fixture("lora/" + name) / "expected.safetensors").arrays;
  const Array &logits = recorded.at("logits"), &wide = recorded.at("logits_f64"), &ids = recorded.at("input_ids");
  double allowed = 0;
  for (std::int64_t i = 0; i < logits.size(); ++i) allowed = std::max(allowed, 10 * std::abs(logits.get_double(i) - wide.get_double(i)));
  std::vector<float> all;
  for (std::int64_t row = 0; row < ids.shape()[0]; ++row) {
    const std::vector<float> one = logits_of(model, ids_of(ids, row));
    all.insert(all.end(), one.begin(), one.end());
  }
  EXPECT_LE(largest_difference(all, logits.values<float>()), allowed) << name;
  const Ids prompt = ids_of(recorded.at("prompt_ids")), greedy = ids_of(recorded.at("greedy_ids"));
  Generation answer = model.generate(prompt, {.max_tokens = static_cast<std::int64_t>(greedy.size() - prompt.size())});
  while (answer.next_token()) {
  }
  EXPECT_TRUE(std::ranges::equal(answer.ids(), std::span(greedy).subspan(prompt.size()))) << name;
}

}  // namespace rlx::test
