#include <algorithm>
#include <limits>

#include "models/run/caches/cache_file.h"
#include "models/run/caches/cached_t5.h"
#include "models/run/model_state.h"
#include "models/weights/decoder_files.h"
#include "text/tokenizer/files/gguf_tokenizer.h"
#include "text/tokenizer/files/open_tokenizer.h"

namespace rlx {

const Tokenizer& Model::State::text() const {
  if (!tokenizer) fail("{}: the model has no tokenizer: it takes and gives tokens only", path.string());
  return *tokenizer;
}

CachedDecoder& Model::State::decoder_for(std::string_view what) const {
  if (!decoder()) refuse_encoder_decoder(path, what);
  return *decoder();
}

const std::shared_ptr<const grammar::TokenBytes>& Model::State::bytes_of_tokens() {
  if (token_bytes) return token_bytes;
  std::vector<std::string> bytes;
  for (std::int32_t id = 0; id < predictor->vocab_size(); ++id) bytes.push_back(text().bytes_of(id));
  token_bytes = std::make_shared<const grammar::TokenBytes>(bytes, end_tokens);
  return token_bytes;
}

bool Model::State::ends_answer(std::int32_t id) const { return std::find(end_tokens.begin(), end_tokens.end(), id) != end_tokens.end(); }

namespace {

constexpr std::int64_t longest_context = std::numeric_limits<std::int32_t>::max();  // positions are numbers of i32

void check_context(const ModelOptions& options, std::int64_t most) {
  if (options.context < 0 || options.context > most)
    fail("model: a context of {} tokens (allowed: 1..{}; 0: the model's own)", options.context, most);
}

std::unique_ptr<TokenPredictor> predictor_of(const DecoderFiles& files, const Session& session, const ModelOptions& options) {
  files.check_makes_text();
  if (options.chunk < 1) fail("model: chunks of {} tokens (allowed: at least 1)", options.chunk);
  const std::int64_t most = files.config.max_positions;
  check_context(options, files.config.position_embedding ? most : longest_context);
  const CachedDecoder::Options its{.context = options.context > 0 ? options.context : std::min(most, usual_context),
                                   .chunk = options.chunk,
                                   .cache = resolved(options.cache, session.precision()),
                                   .exact = options.exact,
                                   .layers_on = options.layers_on};
  return std::make_unique<CachedDecoder>(session, files, its);
}

std::unique_ptr<TokenPredictor> predictor_of(const T5Files& files, const Session& session, const ModelOptions& options) {
  check_context(options, longest_context);
  if (!options.layers_on.empty()) refuse_encoder_decoder(files.checkpoint.name(), "layers on several devices");
  if (options.cache != CacheType::usual && options.cache != CacheType::f32)
    fail("model: a cache of {} (allowed for an encoder with a decoder: {})", name_of(options.cache), name_of(CacheType::f32));
  return std::make_unique<CachedT5>(session, files,
                                    options.context > 0 ? options.context : std::min(files.config.n_positions, usual_context));
}

std::string fingerprint_of(const DecoderFiles& files, Precision precision) { return cache_fingerprint(files, precision); }
std::string fingerprint_of(const T5Files&, Precision) { return {}; }  // its caches are not kept

/// The one that gives the logits.
Session last_session(const DecoderFiles& files, const Session& session, const ModelOptions& options) {
  return all_layers_on(options.layers_on, session, files.config).back().session;
}
Session last_session(const T5Files& /*files*/, const Session& session, const ModelOptions& /*options*/) { return session; }

/// Of a GGUF file the template in its metadata; folders are asked when a chat begins.
std::optional<ChatTemplate> chat_template_of(const Checkpoint& checkpoint) {
  const GgufFile* file = checkpoint.gguf();
  if (file == nullptr || file->find_value("tokenizer.chat_template") == nullptr) return std::nullopt;
  return ChatTemplate::of(*file);
}

}  // namespace

std::optional<Tokenizer> tokenizer_of(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  if (const GgufFile* file = checkpoint.gguf()) {
    if (file->find_value("tokenizer.ggml.model") == nullptr) return std::nullopt;
    return read_gguf_tokenizer(*file);
  }
  std::error_code error;
  for (const char* name : tokenizer_file_names)
    if (std::filesystem::exists(path / name, error)) return open_tokenizer(path / name);
  return std::nullopt;
}

Model Model::open(const std::filesystem::path& path, const Session& session, ModelOptions options) {
  const auto opened = [&](const auto& files) {
    std::optional<Tokenizer> tokenizer = tokenizer_of(path, files.checkpoint);
    std::optional<ChatTemplate> chat = chat_template_of(files.checkpoint);
    const std::string rounding = session.rounds_activations() ? "" : " f32 activations";
    auto predictor = predictor_of(files, session, options);
    sampling::DeviceSampler sampler(last_session(files, session, options), predictor->vocab_size());
    return std::make_shared<State>(State{.predictor = std::move(predictor),
                                         .sampler = std::move(sampler),
                                         .tokenizer = std::move(tokenizer),
                                         .end_tokens = files.end_tokens,
                                         .path = path,
                                         .fingerprint = fingerprint_of(files, session.precision()) + rounding,
                                         .sampling = rlx::recommended_sampling(path, files.checkpoint),
                                         .chat = std::move(chat),
                                         .trained_context = files.trained_context()});
  };
  return Model(std::visit(opened, open_language_model(path, options.adapters)));
}

Precision usual_precision(const std::filesystem::path& model, const Device& device) {
  const Checkpoint checkpoint = Checkpoint::open(model);
  std::size_t bytes = 0, narrow = 0;
  for (const Checkpoint::File& file : checkpoint.files())
    for (const TensorView& tensor : file.tensors) {
      bytes += tensor.data.size();
      if (tensor.dtype == bf16) narrow += tensor.data.size();
    }
  return narrow > bytes / 2 && device.multiplies(bf16) ? Precision::bf16 : Precision::f32;
}

Model load(const std::filesystem::path& path, ModelOptions options) {
  return Model::open(path, Session(Device::usual(), {.precision = usual_precision(path)}), options);
}

std::int64_t Model::vocab_size() const { return state_->predictor->vocab_size(); }
std::int64_t Model::context() const { return state_->predictor->context(); }
std::int64_t Model::trained_context() const { return state_->trained_context; }
bool Model::continues_texts() const { return state_->decoder() != nullptr; }
std::span<const std::int32_t> Model::end_tokens() const { return state_->end_tokens; }

SamplingOptions Model::recommended_sampling(SamplingOptions otherwise) const {
  for (const RecommendedNumber& number : state_->sampling) number.set(otherwise, number.value);
  return otherwise;
}

std::span<const std::int32_t> Model::ids() const { return state_->predictor->ids(); }

std::vector<float> Model::append(std::span<const std::int32_t> ids, std::int64_t wanted) {
  ++state_->writers;
  return state_->decoder_for("append").append(ids, wanted);
}

void Model::rewind(std::int64_t length) {
  CachedDecoder& decoder = state_->decoder_for("rewind");
  const auto held = static_cast<std::int64_t>(ids().size());
  if (length < 0 || length > held) fail("model: rewound to {} tokens (allowed: 0..{})", length, held);
  ++state_->writers;
  decoder.rewind(length);
}

void Model::save_cache(const std::filesystem::path& file, const std::map<std::string, std::string>& notes) const {
  write_cache(file, state_->decoder_for("a file of the cache"), state_->fingerprint, notes);
}

std::map<std::string, std::string> Model::load_cache(const std::filesystem::path& file) {
  ++state_->writers;
  return read_cache(file, state_->decoder_for("a file of the cache"), state_->fingerprint);
}

std::vector<std::int32_t> Model::tokenize(std::string_view text, bool add_special_tokens) const {
  return state_->text().encode_ids(text, add_special_tokens);
}

std::string Model::text_of(std::span<const std::int32_t> ids) const { return state_->text().decode(ids); }

std::string Model::bytes_of(std::int32_t id) const { return state_->text().bytes_of(id); }

const ChatTemplate& Model::State::chat_template() {
  if (chat) return *chat;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) fail("{}: it has no chat template; continue texts instead", path.string());
  return chat.emplace(ChatTemplate::open(path));
}

namespace {

std::string answered(const ChatTemplate& chat_template, Chat chat, ChatOptions options) {
  options.add_generation_prompt = options.add_generation_prompt.value_or(true);
  return chat_template.prompt(std::move(chat), options);
}

}  // namespace

std::string Model::chat_prompt(std::span<const ChatMessage> messages, const ChatOptions& options) const {
  Chat chat{.messages = json::Value::array(), .tools = nullptr};
  for (const ChatMessage& message : messages) chat.messages.push_back({{"role", message.role}, {"content", message.content}});
  return answered(state_->chat_template(), std::move(chat), options);
}

std::string Model::chat_prompt(std::string_view messages, const ChatOptions& options) const {
  return answered(state_->chat_template(), Chat::from_text(messages, options.messages_file), options);
}

}  // namespace rlx
