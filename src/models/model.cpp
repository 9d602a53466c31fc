#include "rlx/model.h"

#include <algorithm>
#include <ctime>

#include "models/cached_decoder.h"
#include "models/chat_template.h"
#include "models/decoder_files.h"
#include "models/stoppable_text.h"
#include "models/tokenizer/gguf_tokenizer.h"
#include "models/tokenizer/open_tokenizer.h"

namespace rlx {

struct Model::State {
  CachedDecoder decoder;
  std::optional<Tokenizer> tokenizer;
  std::vector<std::int32_t> end_tokens;
  std::filesystem::path path;
  std::optional<ChatTemplate> chat;

  const Tokenizer& text() const {
    if (!tokenizer) fail("the model has no tokenizer: it takes and gives tokens only");
    return *tokenizer;
  }
};

namespace {

constexpr std::int64_t usual_context = 8192;

CachedDecoder::Options decoder_options(const DecoderFiles& files, const ModelOptions& options) {
  if (options.chunk < 1) fail("model: chunks of {} tokens (allowed: at least 1)", options.chunk);
  const std::int64_t most = files.config.max_positions;
  if (options.context < 0 || (files.config.position_embedding && options.context > most))
    fail("model: a context of {} tokens (allowed: 1..{}; 0: the model's own)", options.context, most);
  return {.context = options.context > 0 ? options.context : std::min(most, usual_context), .chunk = options.chunk};
}

std::optional<Tokenizer> tokenizer_of(const std::filesystem::path& path, const DecoderFiles& files) {
  if (const GgufFile* file = files.checkpoint.gguf()) {
    if (file->find_value("tokenizer.ggml.model") == nullptr) return std::nullopt;
    return read_gguf_tokenizer(*file);
  }
  std::error_code error;
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tekken.json"})
    if (std::filesystem::exists(path / name, error)) return open_tokenizer(path / name);
  return std::nullopt;
}

/// bos_token and eos_token of a GGUF file, as templates ask for them.
json::Value gguf_special_tokens(const GgufFile& file, const Tokenizer& tokenizer) {
  json::Value tokens = json::Value::object();
  for (const char* name : {"bos", "eos"})
    if (const GgufValue* id = file.find_value(fmt::format("tokenizer.ggml.{}_token_id", name)))
      tokens[fmt::format("{}_token", name)] = std::string(tokenizer.id_to_token(static_cast<std::int32_t>(id->integer(0, 1 << 30))));
  return tokens;
}

/// Of a GGUF file the template in its metadata; folders are asked when a chat begins.
std::optional<ChatTemplate> chat_template_of(const DecoderFiles& files, const std::optional<Tokenizer>& tokenizer) {
  const GgufFile* file = files.checkpoint.gguf();
  const GgufValue* source = file != nullptr ? file->find_value("tokenizer.chat_template") : nullptr;
  if (source == nullptr || !tokenizer) return std::nullopt;
  const std::string name = fmt::format("{}: tokenizer.chat_template", file->name());
  return ChatTemplate(jinja::Template::parse(source->string(), name), gguf_special_tokens(*file, *tokenizer));
}

}  // namespace

Model Model::open(const std::filesystem::path& path, const Session& session, ModelOptions options) {
  const DecoderFiles files = DecoderFiles::open(path);
  std::optional<Tokenizer> tokenizer = tokenizer_of(path, files);
  std::optional<ChatTemplate> chat = chat_template_of(files, tokenizer);
  return Model(std::make_shared<State>(State{CachedDecoder(session, files, decoder_options(files, options)), std::move(tokenizer),
                                             files.end_tokens, path, std::move(chat)}));
}

Model load(const std::filesystem::path& path, ModelOptions options) { return Model::open(path, Session(), options); }

std::int64_t Model::vocab_size() const { return state_->decoder.config().vocab_size; }
std::int64_t Model::context() const { return state_->decoder.context(); }
std::span<const std::int32_t> Model::end_tokens() const { return state_->end_tokens; }
std::span<const std::int32_t> Model::ids() const { return state_->decoder.ids(); }
std::vector<float> Model::append(std::span<const std::int32_t> ids) { return state_->decoder.append(ids); }

void Model::rewind(std::int64_t length) {
  const auto held = static_cast<std::int64_t>(ids().size());
  if (length < 0 || length > held) fail("model: rewound to {} tokens (allowed: 0..{})", length, held);
  state_->decoder.rewind(length);
}

std::vector<std::int32_t> Model::tokenize(std::string_view text, bool add_special_tokens) const {
  return state_->text().encode_ids(text, add_special_tokens);
}

std::string Model::text_of(std::span<const std::int32_t> ids) const { return state_->text().decode(ids); }

std::string Model::chat_prompt(std::span<const ChatMessage> messages) const {
  std::error_code error;
  if (!state_->chat) {
    if (!std::filesystem::is_directory(state_->path, error))
      fail("{}: it has no chat template; continue texts instead", state_->path.string());
    state_->chat = ChatTemplate::open(state_->path);
  }
  Chat chat{.messages = json::Value::array(), .tools = nullptr, .add_generation_prompt = true};
  for (const ChatMessage& message : messages) chat.messages.push_back({{"role", message.role}, {"content", message.content}});
  const std::time_t now = std::time(nullptr);
  jinja::RenderOptions options;
  localtime_r(&now, &options.now);
  return state_->chat->render(chat, options);
}

struct Generation::State {
  std::shared_ptr<Model::State> model;
  GenerateOptions options;
  std::vector<float> logits = {};
  std::vector<std::int32_t> ids = {};
  std::optional<StoppableText> text = std::nullopt;
  FinishReason reason = FinishReason::unfinished;

  std::int32_t choose() {
    if (!options.choose) return greedy_choice(logits);
    const std::int32_t id = options.choose(logits, model->decoder.ids());
    if (id < 0 || id >= static_cast<std::int32_t>(logits.size()))
      fail("generate: token {} was chosen (allowed: 0..{})", id, logits.size() - 1);
    return id;
  }

  std::optional<std::int32_t> step() {
    if (reason != FinishReason::unfinished) return std::nullopt;
    CachedDecoder& decoder = model->decoder;
    if (!ids.empty()) {  // the last token is computed only when another is wanted
      if (static_cast<std::int64_t>(decoder.ids().size()) >= decoder.context()) return end(FinishReason::context_full);
      logits = decoder.append(std::span(ids).last(1));
    }
    const std::int32_t id = choose();
    if (std::find(model->end_tokens.begin(), model->end_tokens.end(), id) != model->end_tokens.end()) return end(FinishReason::end_of_text);
    ids.push_back(id);
    return id;
  }

  std::optional<std::int32_t> end(FinishReason why) {
    reason = why;
    return std::nullopt;
  }

  std::optional<std::int32_t> step_below_limit() {
    if (options.max_tokens > 0 && static_cast<std::int64_t>(ids.size()) >= options.max_tokens) {
      if (reason == FinishReason::unfinished) reason = FinishReason::max_tokens;
      return std::nullopt;
    }
    return step();
  }
};

std::optional<std::int32_t> Generation::next_token() { return state_->step_below_limit(); }

std::optional<std::string> Generation::next() {
  State& s = *state_;
  if (!s.text) s.text.emplace(s.model->text(), s.options.stop);
  while (s.reason == FinishReason::unfinished) {
    const auto id = s.step_below_limit();
    std::string piece = id ? s.text->push(*id) : s.text->finish();
    if (s.text->stopped()) s.reason = FinishReason::stop;
    if (!piece.empty()) return piece;
  }
  return std::nullopt;
}

std::span<const std::int32_t> Generation::ids() const { return state_->ids; }
FinishReason Generation::finish_reason() const { return state_->reason; }

Generation Model::generate(std::string_view prompt, GenerateOptions options) { return generate(tokenize(prompt), std::move(options)); }

Generation Model::generate(std::span<const std::int32_t> prompt, GenerateOptions options) {
  if (options.max_tokens < 0) fail("generate: max_tokens {} (allowed: 0 and more)", options.max_tokens);
  CachedDecoder& decoder = state_->decoder;
  const auto held = decoder.ids();
  const auto common = std::mismatch(held.begin(), held.end(), prompt.begin(), prompt.end()).first - held.begin();
  // The last token runs in any case: its logits are wanted.
  const std::int64_t kept = std::min<std::int64_t>(common, std::max<std::int64_t>(static_cast<std::int64_t>(prompt.size()) - 1, 0));
  decoder.rewind(kept);
  auto state = std::make_shared<Generation::State>(Generation::State{state_, std::move(options)});
  state->logits = decoder.append(prompt.subspan(static_cast<std::size_t>(kept)));
  return Generation(state);
}

}  // namespace rlx
