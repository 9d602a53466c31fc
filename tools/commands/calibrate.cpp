#include <memory>

#include <fmt/core.h>

#include "command.h"
#include "files/text_lines.h"
#include "files/writable.h"
#include "options/compile_choices.h"
#include "rlx/error.h"
#include "rlx/sentence_encoder.h"
#include "terminal/progress_bar.h"
#include "terminal/say.h"

namespace rlx::command {
namespace {

struct CalibrateOptions {
  std::string model, file = "-", out, pooling;
  CompileChoices compile;
};

void calibrate(const CalibrateOptions& options) {
  check_writable(options.out, options.file);
  const std::vector<std::string> texts = read_text_lines(options.file);
  if (texts.empty()) fail("{}: has no line of text (needed: a few hundred)", input_name(options.file));
  const Session session = open_session(options.compile);
  Calibration calibration;
  {
    ProgressBar bar("calibrating");
    calibration = SentenceEncoder::calibrate(options.model, session, texts, {.pooling = options.pooling},
                                             [&](std::size_t done, std::size_t total) { bar.update(done, total); });
  }
  save_calibration(options.out, calibration);
  warn_about_cache(session);
  say("{}: ranges of {} products over {} texts\n", options.out, calibration.ranges.size(), texts.size());
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand("calibrate", "Find the ranges with which int8 needs no scales at run time");
  command->add_option("--model", options->model, "Model of `rlx embed`: a folder with config.json, tokenizer.json and safetensors files")
      ->required()
      ->type_name("DIR");
  command->add_option("file", options->file, "File of text lines like those to come, a few hundred; - reads standard input (the default)")
      ->type_name("FILE");
  command->add_option("--out", options->out, "Write the ranges to this file")->required()->type_name("OUT");
  add_pooling(*command, options->pooling);
  add_device(*command, options->compile);
  add_threads(*command, options->compile);
  command->footer(
      "Example:\n  rlx calibrate --model all-MiniLM-L6-v2 texts.txt --out minilm.calibration\n"
      "  rlx embed --model all-MiniLM-L6-v2 --precision int8 --calibration minilm.calibration texts.txt");
  command->callback([options] { calibrate(*options); });
}

}  // namespace rlx::command
