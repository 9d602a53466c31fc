// Pages of models: tokenizers as recorded, vectors of sentences, and texts that go on as other implementations have them.
#include "fixture.h"
#include "models/conversion/folder_source.h"
#include "models/conversion/quantize_model.h"
#include "models/tiny_language_model.h"
#include "models/tiny_sentence_model.h"
#include "rlx/model.h"
#include "rlx/sentence_encoder.h"
#include "text/tokenizer/files/open_tokenizer.h"
#include "web/pages.h"

namespace rlx::test {
namespace {

TEST_F(PagesInBrowser, TokenizersGiveTheRecordedTokensAndTexts) {
  const char* const names[] = {"wordpiece-uncased", "bpe-gpt2", "bpe-llama2", "bpe-llama3", "unigram-t5"};
  json::Value given = json::Value::object();
  for (const char* name : names) {
    std::filesystem::copy(fixture("tokenizers") / name, folder_ / name);
    const json::Value file = json::read_file(folder_ / name / "tokenizer.json");
    write_text(folder_ / name / "words.js", web_words(file["model"]["type"].get<std::string>()));
    given[name] = json::read_file(fixture("tokenizers") / name / "cases.json");
  }
  const json::Value seen = result_of(R"(
    const all = {};
    for (const name in given) {
      const tokenizer = await rlx.Tokenizer.load(`/${name}/`), decodes = !name.startsWith("wordpiece");
      all[name] = given[name].map(({ text, ids }) => [tokenizer.encode(text), decodes ? tokenizer.decode(ids) : null]);
    }
    return all;)",
                                     given);
  for (const char* name : names)
    for (std::size_t i = 0; i < given[name].size(); ++i) {
      const json::Value& recorded = given[name][i];
      EXPECT_EQ(seen[name][i][0], recorded["ids_special"]) << name << ": " << recorded["text"];
      const json::Value wanted = seen[name][i][1].is_null() ? json::Value() : recorded["decoded_skip"];
      EXPECT_EQ(seen[name][i][1], wanted) << name << ": " << recorded["text"];
    }
}

/// A time that grew with the square of a word would be minutes.
TEST_F(PagesInBrowser, LongWordsHaveTheirTokensSoon) {
  const auto folder = fixture("tokenizers/bpe-gpt2");
  std::filesystem::copy(folder, folder_ / "bpe");
  write_text(folder_ / "bpe/words.js", web_words("BPE"));
  std::string word;
  for (int i = 0; i < 30000; ++i) word += "abcdefg"[i * i % 7];
  const json::Value seen = result_of("return (await rlx.Tokenizer.load('/bpe/')).encode(given);", word);
  EXPECT_EQ(seen, json::Value(open_tokenizer(folder).encode_ids(word)));
}

/// Of tokenizers of words, and of scores.
TEST_F(PagesInBrowser, SentencesAreCompared) {
  const std::vector<std::string> texts{"a cat", "dogs ran a cat sat", "unknown words"};
  const TinySentenceModel model;
  for (const std::string page : {"WordPiece", "Unigram"}) {
    if (page == "Unigram") {
      std::filesystem::remove(model / "tokenizer.json");
      std::filesystem::copy(fixture("hf_more/xlm-roberta-scores/tokenizer.json"), model / "tokenizer.json");
    }
    export_web_model(folder_ / page, model.path());
    const json::Value seen = result_of(R"(
      await rlx.showPage(document.body, `/${given.page}/`);
      document.querySelector("textarea").value = given.texts.join("\n");
      document.querySelector("button").click();
      const cells = () => Array.from(document.querySelectorAll("td"), ({ textContent }) => Number(textContent));
      while (cells().length < 9) await new Promise((done) => setTimeout(done, 10));
      return cells();)",
                                       {{"page", page}, {"texts", texts}});
    const auto wanted = SentenceEncoder::open(model.path(), Session()).encode(texts);
    for (std::size_t i = 0; i < 9; ++i) {
      double product = 0;
      for (std::size_t k = 0; k < TinySentenceModel::width; ++k) product += wanted[i / 3].values[k] * wanted[i % 3].values[k];
      EXPECT_NEAR(seen[i].get<double>(), product, 6e-4) << page;
    }
  }
}

TEST_F(PagesInBrowser, TokensAreThoseRecorded) {
  json::Value given = json::Value::object();
  for (const char* name : {"llama", "gpt2", "gemma3", "phi3-longrope", "mamba", "qwen3_next", "mixtral"}) {
    const std::filesystem::path model = folder_ / fmt::format("model-{}", name);
    std::filesystem::create_directory(model);
    for (const char* file : {"config.json", "model.safetensors"}) std::filesystem::copy(fixture("hf") / name / file, model / file);
    write_text(model / "tokenizer.json", tokenizer_of_bytes());
    export_web_model(folder_ / name, model);
    given[name] = recorded_ids("prompt_ids", fmt::format("hf/{}", name).c_str());
  }
  const json::Value seen = result_of(R"(
    const all = {};
    for (const name in given) {
      const model = await rlx.LanguageModel.load(`/${name}/`);
      all[name] = [...given[name]];
      for (let next = given[name]; all[name].length < 32; next = all[name].slice(-1)) {
        const logits = await model.append(next);
        all[name].push(logits.indexOf(logits.reduce((a, b) => Math.max(a, b))));
      }
    }
    return all;)",
                                     given);
  for (const auto& [name, prompt] : given.items())
    EXPECT_EQ(seen[name].get<std::vector<std::int32_t>>(), recorded_ids("greedy_ids", fmt::format("hf/{}", name).c_str())) << name;
}

TEST_F(PagesInBrowser, TextsGoOn) {
  const TinyLanguageModel model(tokenizer_of_bytes());
  export_web_model(folder_ / "page", model.path(), {.context = 40});
  const std::string prompt = "Once upon a time";
  const json::Value seen = result_of(R"(
    await rlx.showPage(document.body, "/page/");
    const text = document.querySelector("textarea"), button = document.querySelector("button");
    text.value = given;
    button.click();
    while (button.textContent !== "Continue") await new Promise((done) => setTimeout(done, 10));
    return [text.value, document.querySelector("p").textContent];)",
                                     prompt);
  Model here = Model::open(model.path(), Session(), {.context = 40});
  Generation answer = here.generate(prompt);
  while (answer.next_token()) continue;
  std::vector<std::int32_t> ids = here.tokenize(prompt);
  ids.insert(ids.end(), answer.ids().begin(), answer.ids().end());
  EXPECT_EQ(seen[1], "");
  EXPECT_EQ(seen[0].get<std::string>(), here.text_of(ids));
}

/// Encoders with decoders: prompts of unlike lengths, one after the other.
TEST_F(PagesInBrowser, AnswersAreThoseRecorded) {
  const json::Value recorded = json::read_file(fixture("t5/answers.json"));
  for (const char* name : {"t5", "t5-gated"}) {
    const std::filesystem::path model = folder_ / fmt::format("model-{}", name);
    std::filesystem::create_directory(model);
    for (const char* file : {"config.json", "model.safetensors"}) std::filesystem::copy(fixture("hf") / name / file, model / file);
    write_text(model / "tokenizer.json", tokenizer_of_bytes());
    export_web_model(folder_ / name, model);
  }
  const json::Value seen = result_of(R"(
    const all = {};
    for (const name in given) {
      const model = await rlx.AnsweringModel.load(`/${name}/`);
      all[name] = [];
      for (const { prompt, answer } of given[name]) {
        const ids = [model.page.start_token];
        await model.read(prompt);
        while (ids.length <= answer.length) {
          const logits = await model.append(ids[ids.length - 1]);
          ids.push(logits.indexOf(logits.reduce((a, b) => Math.max(a, b))));
        }
        all[name].push({ prompt, answer: ids.slice(1) });
      }
    }
    return all;)",
                                     recorded);
  EXPECT_EQ(seen, recorded);
}

/// By a tokenizer of scores, whose last token ends a text.
TEST_F(PagesInBrowser, TextsAreAnswered) {
  const std::filesystem::path model = folder_ / "model";
  std::filesystem::create_directory(model);
  json::Value config = json::read_file(fixture("hf/t5/config.json")),
              tokenizer = json::read_file(fixture("tokenizers/unigram-t5/tokenizer.json"));
  config["eos_token_id"] = 1;
  json::Value& words = tokenizer["model"]["vocab"];
  words.erase(words.begin() + config["vocab_size"].get<int>(), words.end());
  json::Value added = json::Value::array();
  for (const json::Value& token : tokenizer["added_tokens"])
    if (token["id"] < config["vocab_size"]) added.push_back(token);
  tokenizer["added_tokens"] = added;
  write_text(model / "config.json", config.dump());
  write_text(model / "tokenizer.json", tokenizer.dump());
  std::filesystem::copy(fixture("hf/t5/model.safetensors"), model / "model.safetensors");
  export_web_model(folder_ / "page", model, {.context = 20});
  const std::string prompt = "a house is good";
  const json::Value seen = result_of(R"(
    await rlx.showPage(document.body, "/page/");
    const [text, answer] = document.querySelectorAll("textarea"), button = document.querySelector("button");
    const status = () => document.querySelector("p").textContent, until = async (ends) => {
      button.click();
      while (!ends()) await new Promise((done) => setTimeout(done, 10));
      return [answer.value, status()];
    };
    text.value = given;
    const first = await until(() => button.textContent === "Answer");
    text.value = given.repeat(20);
    return [...first, ...await until(() => button.textContent === "Answer" && status())];)",
                                     prompt);
  Model here = Model::open(model, Session(), {.context = 20});
  Generation answer = here.generate(prompt, {.max_tokens = 20});
  while (answer.next_token()) continue;
  EXPECT_GT(answer.ids().size(), 1u);
  EXPECT_EQ(seen[0].get<std::string>(), here.text_of(std::vector<std::int32_t>(answer.ids().begin(), answer.ids().end())));
  EXPECT_EQ(seen[1], "");
  EXPECT_EQ(seen[2], seen[0]);
  std::string longer;
  for (int i = 0; i < 20; ++i) longer += prompt;
  const auto many = here.tokenize(longer);
  EXPECT_EQ(seen[3].get<std::string>(), fmt::format("the text has {} tokens (allowed: 1..20)", many.size()));
}

/// Files of blocks, which stay as they are, with the tokenizer of their metadata.
TEST_F(PagesInBrowser, GgufFilesGoOn) {
  const TinyLanguageModel original(tokenizer_of_bytes());
  const std::string prompt = "Once upon a time";
  json::Value given = json::Value::object();
  for (const char* mix : {"Q8_0", "Q4_0", "Q5_K_M"}) {
    const std::filesystem::path file = folder_ / fmt::format("{}.gguf", mix);
    quantize_model(source_of_folder(original.path()), file, &find_type_mix(mix), {});
    export_web_model(folder_ / mix, file, {.context = 40});
    given[mix] = std::filesystem::file_size(folder_ / mix / "weights.bin");
  }
  const json::Value seen = result_of(R"(
    const all = {};
    for (const name in given) {
      const model = await rlx.LanguageModel.load(`/${name}/`), ids = model.tokenizer.encode("Once upon a time");
      const answer = await model.generate("Once upon a time", { tokens: 12 });
      model.ids = [];
      all[name] = [ids, Array.from(await model.append(ids)), answer];
    }
    return all;)",
                                     given);
  for (const auto& [mix, bytes] : given.items()) {
    const std::filesystem::path file = folder_ / fmt::format("{}.gguf", mix);
    Model here =
        Model::open(file, Session(Device::cpu(), {.round_activations = false}), {.context = 40, .cache = CacheType::f32, .exact = true});
    const std::vector<std::int32_t> ids = here.tokenize(prompt);
    EXPECT_EQ(seen[mix][0].get<std::vector<std::int32_t>>(), ids) << mix;
    const std::vector<float> wanted = here.append(ids);
    for (std::size_t i = 0; i < wanted.size(); ++i) ASSERT_NEAR(seen[mix][1][i].get<double>(), wanted[i], 2e-5) << mix << " logit " << i;
    Generation answer = here.generate(prompt, {.max_tokens = 12});
    while (answer.next_token()) continue;
    EXPECT_EQ(seen[mix][2].get<std::vector<std::int32_t>>(), std::vector<std::int32_t>(answer.ids().begin(), answer.ids().end())) << mix;
    EXPECT_LT(bytes.get<double>(), 1.1 * static_cast<double>(std::filesystem::file_size(file))) << mix;
  }
}

/// Windows lie in rings of pages where the context is much longer.
TEST_F(PagesInBrowser, WindowsOfLongTexts) {
  const std::filesystem::path model = folder_ / "model";
  std::filesystem::create_directory(model);
  json::Value config = json::read_file(fixture("hf/gemma2/config.json"));
  config["max_position_embeddings"] = 1024;
  write_text(model / "config.json", config.dump());
  std::filesystem::copy(fixture("hf/gemma2/model.safetensors"), model / "model.safetensors");
  write_text(model / "tokenizer.json", tokenizer_of_bytes());
  export_web_model(folder_ / "page", model, {.context = 1024});
  std::vector<std::int32_t> ids;
  for (std::int32_t i = 0; i < 400; ++i) ids.push_back((i * 37 + i / 7) % 256);
  const json::Value seen = result_of(R"(
    const model = await rlx.LanguageModel.load("/page/");
    return [model.page.rings.length, Array.from(await model.append(given))];)",
                                     ids);
  EXPECT_EQ(seen[0], 1);
  const std::vector<float> wanted =
      Model::open(model, Session(Device::cpu(), {.round_activations = false}), {.context = 1024, .cache = CacheType::f32, .exact = true})
          .append(ids);
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(seen[1][i].get<double>(), wanted[i], 2e-5) << "logit " << i;
}

}  // namespace
}  // namespace rlx::test
