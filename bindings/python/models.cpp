// Models: answers piece by piece, embeddings, scores. Work without Python runs without the lock.
#include "rlx/model.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "item.h"
#include "progress.h"
#include "released.h"
#include "rlx/batch.h"
#include "rlx/classifier.h"
#include "rlx/perplexity.h"
#include "rlx/reranker.h"
#include "rlx/sentence_encoder.h"
#include "rlx/text_tokenizer.h"
#include "words.h"

namespace rlx::python {
namespace {

using Path = std::filesystem::path;
using Texts = std::vector<std::string>;

Session session_or_own(const std::optional<Session>& session, const Path& path) {
  return session ? *session : Session(Device::usual(), {.precision = usual_precision(path)});
}

using Adapters = std::vector<std::pair<Path, double>>;

std::vector<Adapter> adapters_of(const Adapters& given) {
  std::vector<Adapter> adapters;
  for (const auto& [path, scale] : given) adapters.push_back({path, scale});
  return adapters;
}

Model open_model(const Path& path, const std::optional<Session>& session, std::int64_t context, std::int64_t chunk,
                 const Adapters& adapters, const std::string& cache, bool exact) {
  const auto type = word<CacheType>("Model.open", "cache", cache);
  const Released released;
  return Model::open(path, session_or_own(session, path),
                     {.context = context, .chunk = chunk, .adapters = adapters_of(adapters), .cache = type, .exact = exact});
}

Batch open_batch(const Path& path, const std::optional<Session>& session, std::int64_t context, std::int64_t sequences,
                 const Adapters& adapters, const std::string& cache, bool exact) {
  const auto type = word<CacheType>("Batch.open", "cache", cache);
  const Released released;
  return Batch::open(path, session_or_own(session, path),
                     {.context = context, .sequences = sequences, .adapters = adapters_of(adapters), .cache = type, .exact = exact});
}

GenerateOptions generate_options(std::int64_t max_tokens, Texts stop, double temperature, std::int64_t top_k, double top_p, double min_p,
                                 double repetition_penalty, std::uint64_t seed, const std::string& grammar, const std::string& schema) {
  GenerateOptions options{.max_tokens = max_tokens, .stop = std::move(stop)};
  options.sampling = {
      .seed = seed, .temperature = temperature, .top_k = top_k, .top_p = top_p, .min_p = min_p, .repetition_penalty = repetition_penalty};
  if (!grammar.empty() && !schema.empty()) fail("generate: both a grammar and a schema (allowed: one of them)");
  if (!grammar.empty()) options.grammar = parse_grammar(grammar);
  if (!schema.empty()) options.grammar = parse_json_schema(schema);
  options.cancelled = is_interrupted;
  return options;
}

nb::object next_piece(Generation& generation) {
  std::optional<std::string> piece;
  {
    const Released released;
    piece = generation.next();
  }
  if (!piece) throw nb::stop_iteration();
  return nb::cast(*piece);
}

std::vector<std::int32_t> to_vector(std::span<const std::int32_t> ids) { return {ids.begin(), ids.end()}; }

nb::object logits(Model& model, const std::vector<std::int32_t>& ids, std::int64_t wanted) {
  std::vector<float> values;
  {
    const Released released;
    values = model.append(ids, wanted);
  }
  return wrap(Item(Tensor(Array::of<float>({wanted, model.vocab_size()}, values))));
}

nb::object embed(const SentenceEncoder& encoder, const Texts& texts, const nb::object& progress) {
  Array matrix;
  {
    const Released released;
    matrix = embedding_matrix(encoder.encode(texts, progress_of(progress)), encoder.width());
  }
  return wrap(Item(Tensor(matrix)));
}

/// exp of the mean of -log(probability), its standard error, and how many tokens were judged.
nb::dict judged(Model& model, const std::string& text, std::int64_t context, std::int64_t stride, const nb::object& progress) {
  Perplexity result;
  {
    const Released released;
    result = perplexity(model, std::string_view(text), {.context = context, .stride = stride, .progress = progress_of(progress)});
  }
  nb::dict row;
  row["perplexity"] = result.value(), row["error"] = result.error(), row["nll"] = result.nll;
  row["tokens"] = result.tokens, row["windows"] = result.windows;
  return row;
}

void bind_language_models(nb::module_& m) {
  nb::class_<Generation>(m, "Generation", "An answer in the making: an iterator of pieces of text.")
      .def(
          "__iter__", [](nb::object self) { return self; }, nb::sig("def __iter__(self) -> Generation"))
      .def("__next__", &next_piece, nb::sig("def __next__(self) -> str"))
      .def_prop_ro(
          "ids", [](const Generation& generation) { return to_vector(generation.ids()); }, "Tokens of the answer so far.")
      .def_prop_ro("finish_reason", [](const Generation& generation) { return std::string(name_of(generation.finish_reason())); });
  nb::class_<Model>(m, "Model", "A language model with one cache of tokens, the conversation so far.")
      .def_static("_open", &open_model, nb::arg("path"), nb::arg("session") = nb::none(), nb::arg("context") = 0, nb::arg("chunk") = 512,
                  nb::arg("adapters") = Adapters(), nb::arg("cache") = "usual", nb::arg("exact") = false)
      .def_prop_ro("vocab_size", &Model::vocab_size)
      .def_prop_ro("context", &Model::context, "Tokens that fit into the cache.")
      .def_prop_ro(
          "ids", [](const Model& model) { return to_vector(model.ids()); }, "The tokens in the cache.")
      .def("tokenize", &Model::tokenize, nb::arg("text"), nb::arg("add_special_tokens") = true, "The ids of a text.")
      .def(
          "text_of", [](const Model& model, const std::vector<std::int32_t>& ids) { return model.text_of(ids); }, nb::arg("ids"))
      .def(
          "chat_prompt",
          [](const Model& model, const std::string& messages, std::optional<std::string> tools) {
            return model.chat_prompt(std::string_view(messages), ChatOptions{.tools = std::move(tools)});
          },
          nb::arg("messages"), nb::arg("tools") = nb::none(), "The prompt for messages, as JSON.")
      .def("rewind", &Model::rewind, nb::arg("length"), "Forgets all but the first tokens of the cache.")
      .def("logits", &logits, nb::arg("ids"), nb::arg("wanted") = 1,
           "Appends tokens and gives the logits behind the last `wanted` of them.")
      .def(
          "save_cache", [](const Model& model, const Path& file) { model.save_cache(file); }, nb::arg("file"))
      .def(
          "load_cache", [](Model& model, const Path& file) { return model.load_cache(file); }, nb::arg("file"))
      .def("perplexity", &judged, nb::arg("text"), nb::arg("context") = 512, nb::arg("stride") = 0, nb::arg("progress") = nb::none(),
           "How well the model predicts a text: perplexity, its error, nll in nats, tokens and windows.")
      .def(
          "_generate",
          [](Model& model, const std::string& prompt, const GenerateOptions& options) {
            const Released released;
            return model.generate(std::string_view(prompt), options);
          },
          nb::keep_alive<0, 1>())
      .def(
          "_generate",
          [](Model& model, const std::vector<std::int32_t>& prompt, const GenerateOptions& options) {
            const Released released;
            return model.generate(std::span<const std::int32_t>(prompt), options);
          },
          nb::keep_alive<0, 1>());
  nb::class_<GenerateOptions>(m, "GenerateOptions", "How an answer is made.")
      .def(nb::new_(&generate_options), nb::kw_only(), nb::arg("max_tokens") = 0, nb::arg("stop") = Texts(), nb::arg("temperature") = 0.0,
           nb::arg("top_k") = 0, nb::arg("top_p") = 1.0, nb::arg("min_p") = 0.0, nb::arg("repetition_penalty") = 1.0, nb::arg("seed") = 0,
           nb::arg("grammar") = "", nb::arg("schema") = "");
}

void bind_batches(nb::module_& m) {
  nb::class_<Answer>(m, "Answer", "An answer of a batch.")
      .def_ro("text", &Answer::text)
      .def_ro("ids", &Answer::ids)
      .def_prop_ro("finish_reason", [](const Answer& answer) { return std::string(name_of(answer.finish_reason)); });
  nb::class_<Batch>(m, "Batch", "A language model that answers many prompts at a time.")
      .def_static("_open", &open_batch, nb::arg("path"), nb::arg("session") = nb::none(), nb::arg("context") = 0, nb::arg("sequences") = 8,
                  nb::arg("adapters") = Adapters(), nb::arg("cache") = "usual", nb::arg("exact") = false)
      .def("_generate",
           [](Batch& batch, const Texts& prompts, const GenerateOptions& options) {
             const Released released;
             return batch.generate(prompts, options);
           })
      .def("_generate", [](Batch& batch, const std::vector<std::vector<std::int32_t>>& prompts, const GenerateOptions& options) {
        const Released released;
        return batch.generate(prompts, options);
      });
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

std::vector<std::vector<std::pair<std::string, float>>> classify(const Classifier& classifier, const std::variant<Texts, Pairs>& texts,
                                                                 const nb::object& progress) {
  const Released released;
  std::vector<std::vector<std::pair<std::string, float>>> all;
  std::vector<TextPair> pairs;
  if (const auto* given = std::get_if<Pairs>(&texts))
    for (const auto& [first, second] : *given) pairs.push_back({first, second});
  const auto* single = std::get_if<Texts>(&texts);
  for (const auto& labels :
       single ? classifier.classify(*single, progress_of(progress)) : classifier.classify(pairs, progress_of(progress))) {
    auto& mine = all.emplace_back();
    for (const auto& [label, score] : labels) mine.emplace_back(classifier.labels()[label], score);
  }
  return all;
}

using Part = std::tuple<std::string, float, std::size_t, std::size_t>;

std::vector<std::vector<Part>> labelled_parts(const Classifier& classifier, const Texts& texts, const nb::object& progress) {
  const Released released;
  std::vector<std::vector<Part>> all;
  for (const auto& parts : classifier.parts(texts, progress_of(progress))) {
    auto& mine = all.emplace_back();
    for (const LabelledPart& part : parts) mine.emplace_back(part.label, part.score, part.begin, part.end);
  }
  return all;
}

void bind_classifier(nb::module_& m) {
  nb::class_<Classifier>(m, "Classifier", "Labels texts, or parts of them.")
      .def_static(
          "_open",
          [](const Path& path, const std::optional<Session>& session, std::int64_t batch_size, const Adapters& adapters) {
            const Released released;
            return Classifier::open(path, session ? *session : Session(), {.batch_size = batch_size, .adapters = adapters_of(adapters)});
          },
          nb::arg("path"), nb::arg("session") = nb::none(), nb::arg("batch_size") = 32, nb::arg("adapters") = Adapters())
      .def_prop_ro("labels", &Classifier::labels)
      .def_prop_ro("labels_parts", &Classifier::labels_parts)
      .def("classify", &classify, nb::arg("texts"), nb::arg("progress") = nb::none())
      .def("parts", &labelled_parts, nb::arg("texts"), nb::arg("progress") = nb::none());
}

}  // namespace

void bind_models(nb::module_& m) {
  bind_language_models(m);
  bind_batches(m);
  nb::class_<SentenceEncoder>(m, "SentenceEncoder", "Embeds texts with an encoder.")
      .def_static(
          "_open",
          [](const Path& path, const std::optional<Session>& session, std::int64_t batch_size, const Adapters& adapters) {
            const Released released;
            return SentenceEncoder::open(path, session ? *session : Session(),
                                         {.batch_size = batch_size, .adapters = adapters_of(adapters)});
          },
          nb::arg("path"), nb::arg("session") = nb::none(), nb::arg("batch_size") = 32, nb::arg("adapters") = Adapters())
      .def_prop_ro("width", &SentenceEncoder::width, "The size of an embedding.")
      .def("embed", &embed, nb::arg("texts"), nb::arg("progress") = nb::none());
  nb::class_<Reranker>(m, "Reranker", "Scores texts for a query with a cross-encoder.")
      .def_static(
          "_open",
          [](const Path& path, const std::optional<Session>& session, const Adapters& adapters) {
            const Released released;
            return Reranker::open(path, session ? *session : Session(), {.adapters = adapters_of(adapters)});
          },
          nb::arg("path"), nb::arg("session") = nb::none(), nb::arg("adapters") = Adapters())
      .def(
          "score",
          [](const Reranker& reranker, const std::string& query, const Texts& texts, const nb::object& progress) {
            const Released released;
            return reranker.score(query, texts, progress_of(progress));
          },
          nb::arg("query"), nb::arg("texts"), nb::arg("progress") = nb::none());
  bind_classifier(m);
  nb::class_<TextTokenizer>(m, "Tokenizer", "The tokenizer of a model, without the model.")
      .def_static("open", &TextTokenizer::open, nb::arg("path"))
      .def("encode", &TextTokenizer::encode, nb::arg("text"), nb::arg("add_special_tokens") = true)
      .def(
          "decode", [](const TextTokenizer& t, const std::vector<std::int32_t>& ids, bool skip) { return t.decode(ids, skip); },
          nb::arg("ids"), nb::arg("skip_special_tokens") = true)
      .def_prop_ro("vocab_size", &TextTokenizer::vocab_size);
}

}  // namespace rlx::python
