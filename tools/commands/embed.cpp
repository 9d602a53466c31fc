#include <algorithm>
#include <memory>
#include <optional>

#include "command.h"
#include "files/text_lines.h"
#include "files/text_parts.h"
#include "files/writable.h"
#include "options/adapter_choices.h"
#include "options/compile_choices.h"
#include "options/warnings.h"
#include "reports/embed_output.h"
#include "rlx/io.h"
#include "rlx/session.h"
#include "terminal/progress_bar.h"
#include "terminal/say.h"
#include "terminal/stopwatch.h"

namespace rlx::command {
namespace {

struct EmbedOptions {
  std::string model, file = "-", npy, pooling;
  std::optional<bool> normalize;
  bool json = false, similarity = false, timing = false;
  std::int64_t batch_size = 32;
  std::vector<Adapter> adapters;
  CompileChoices compile;
};

/// Results that only all texts together give; the others are printed as they are there.
bool needs_all(const EmbedOptions& options) { return options.similarity || !options.npy.empty(); }

void print_part(const EmbedOptions& options, std::span<const std::string> texts, std::span<const Embedding> embeddings) {
  if (options.similarity) return;
  if (options.json) print_json(texts, embeddings);
  else if (options.npy.empty()) print_table(texts, embeddings);
  flush_output();
}

void write_all(const EmbedOptions& options, std::span<const std::string> texts, std::span<const Embedding> embeddings, std::int64_t width) {
  if (!options.npy.empty()) save_npy(options.npy, embedding_matrix(embeddings, width));
  if (options.similarity) (options.json ? print_similarity_json : print_similarity)(texts, embeddings);
}

/// Milliseconds of an embedding. The first batch also has the weights prepared and packed, so `first` says what a user waits for.
struct Timing {
  double open = 0, first = 0, encode = 0;  // opening the model; from there to the results of the first batch, and of all
  std::size_t first_texts = 0;             // of that batch
  std::size_t texts = 0, tokens = 0;
};

void print_timing(const Session& session, const Timing& timing) {
  const CompileCounters counters = session.counters();
  say("model opened in {:.0f} ms: {} kernels compiled, {} from the disk cache, {} shared with an equal one\n", timing.open,
      counters.kernels_compiled, counters.kernels_from_disk, counters.kernels_shared);
  if (timing.first_texts > 0) say("first {} texts after {:.0f} ms more, in which weights were packed\n", timing.first_texts, timing.first);
  say("{} texts of {} tokens embedded in {:.1f} ms on {} threads: {:.2f} ms each\n", timing.texts, timing.tokens, timing.encode,
      session.threads(), timing.encode / static_cast<double>(std::max<std::size_t>(timing.texts, 1)));
}

/// All texts; those of each part are printed when it is done.
std::vector<Embedding> embed_texts(const EmbedOptions& options, const SentenceEncoder& encoder, std::span<const std::string> texts,
                                   Timing& timing) {
  std::vector<Embedding> all;
  ProgressBar bar("embedding");
  const Stopwatch time;
  for (const std::span<const std::string> part : parts_of(texts, options.batch_size)) {
    const auto embeddings = encoder.encode(part, [&](std::size_t done, std::size_t) {
      if (timing.first_texts == 0) timing.first = time.milliseconds(), timing.first_texts = done;
      bar.update(timing.texts + done, texts.size());
    });
    for (const Embedding& embedding : embeddings) timing.tokens += embedding.ids.size();
    timing.texts += part.size();
    bar.clear();
    print_part(options, part, embeddings);
    if (needs_all(options)) all.insert(all.end(), embeddings.begin(), embeddings.end());
  }
  timing.encode = time.milliseconds();
  return all;
}

void embed(const EmbedOptions& options) {
  if (!options.npy.empty()) check_writable(options.npy, options.file);
  const std::vector<std::string> texts = read_text_lines(options.file);
  const Session session = open_session(options.compile);
  Timing timing;
  const Stopwatch open_time;
  const auto encoder = SentenceEncoder::open(
      options.model, session,
      {.batch_size = options.batch_size, .pooling = options.pooling, .normalize = options.normalize, .adapters = options.adapters});
  timing.open = open_time.milliseconds();
  warn_about_precision(options.compile, options.model);
  if (!options.json && !needs_all(options) && !texts.empty()) print_table_head(encoder.width());
  const std::vector<Embedding> embeddings = embed_texts(options, encoder, texts, timing);
  write_all(options, texts, embeddings, encoder.width());
  warn_about_cache(session);
  if (options.timing) print_timing(session, timing);
}

}  // namespace

void add_embed(CLI::App& app) {
  auto options = std::make_shared<EmbedOptions>();
  CLI::App* command = app.add_subcommand("embed", "Turn lines of text into vectors with an encoder, such as a sentence-transformers model");
  command->add_option("--model", options->model, "Folder with config.json, safetensors files and a tokenizer, or a GGUF file")
      ->required()
      ->type_name("PATH");
  command->add_option("file", options->file, "File of text lines; - reads standard input (the default)")->type_name("FILE");
  command->add_flag(
      "--json", options->json,
      "One object a line: {\"text\", \"ids\", \"embedding\"}; with --similarity one object: {\"texts\", \"similarity\", \"nearest\"}");
  command->add_option("--npy", options->npy, "Write all embeddings to this file, as a NumPy array of f32 (lines, width)")->type_name("OUT");
  command->add_flag("--similarity", options->similarity, "Print the cosines of all pairs, and the nearest pairs");
  command->add_flag("--timing", options->timing, "Say on stderr what was compiled and how long a text took");
  command->add_option("--batch-size", options->batch_size, "Most texts that run together, 1..4096; memory grows with it")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 4096).description(""));
  add_pooling(*command, options->pooling);
  CLI::Option* normalize = command->add_flag_callback(
      "--normalize", [options] { options->normalize = true; },
      "Vectors of length 1, whatever modules.json says (the default where there is none)");
  command->add_flag_callback("--raw", [options] { options->normalize = false; }, "Vectors as the pooling gives them")->excludes(normalize);
  add_adapters(*command, options->adapters);
  add_kernel_choices(*command, options->compile);
  add_tune(*command, options->compile);
  add_calibrated_precision(*command, options->compile);
  add_activations(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer("Example:\n  echo 'Hello, world' | rlx embed --model all-MiniLM-L6-v2 --json");
  command->callback([options] { embed(*options); });
}

}  // namespace rlx::command
