#include <memory>
#include <optional>

#include "adapter_choices.h"
#include "command.h"
#include "compile_choices.h"
#include "embed_output.h"
#include "progress_bar.h"
#include "rlx/io.h"
#include "rlx/session.h"
#include "say.h"
#include "stopwatch.h"
#include "text_lines.h"
#include "writable.h"

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

void print_results(const EmbedOptions& options, std::span<const std::string> texts, std::span<const Embedding> embeddings,
                   std::int64_t width) {
  if (!options.npy.empty()) save_npy(options.npy, embedding_matrix(embeddings, width));
  if (options.similarity) {
    (options.json ? print_similarity_json : print_similarity)(texts, embeddings);
  } else if (options.json) {
    print_json(texts, embeddings);
  } else if (options.npy.empty()) {
    print_table(texts, embeddings);
  }
}

/// Milliseconds of an embedding. The first batch also has the weights prepared and packed, so `first` says what a user waits for.
struct Timing {
  double open = 0, first = 0, encode = 0;  // opening the model; from there to the results of the first batch, and of all
  std::size_t first_texts = 0;             // of that batch
};

void print_timing(const Session& session, const Timing& timing, std::span<const Embedding> embeddings) {
  const CompileCounters counters = session.counters();
  std::size_t tokens = 0;
  for (const Embedding& embedding : embeddings) tokens += embedding.ids.size();
  say("model opened in {:.0f} ms: {} kernels compiled, {} from the disk cache, {} shared with an equal one\n", timing.open,
      counters.kernels_compiled, counters.kernels_from_disk, counters.kernels_shared);
  if (timing.first_texts > 0) say("first {} texts after {:.0f} ms more, in which weights were packed\n", timing.first_texts, timing.first);
  const double count = embeddings.empty() ? 1 : static_cast<double>(embeddings.size());
  say("{} texts of {} tokens embedded in {:.1f} ms on {} threads: {:.2f} ms each\n", embeddings.size(), tokens, timing.encode,
      session.threads(), timing.encode / count);
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
  const Stopwatch encode_time;
  std::vector<Embedding> embeddings;
  {
    ProgressBar bar("embedding");
    embeddings = encoder.encode(texts, [&](std::size_t done, std::size_t total) {
      if (timing.first_texts == 0) timing.first = encode_time.milliseconds(), timing.first_texts = done;
      bar.update(done, total);
    });
  }
  timing.encode = encode_time.milliseconds();
  print_results(options, texts, embeddings, encoder.width());
  warn_about_cache(session);
  if (options.timing) print_timing(session, timing, embeddings);
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
  add_threads(*command, options->compile);
  command->footer("Example:\n  echo 'Hello, world' | rlx embed --model all-MiniLM-L6-v2 --json");
  command->callback([options] { embed(*options); });
}

}  // namespace rlx::command
