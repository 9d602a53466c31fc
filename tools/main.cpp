// The `rlx` command: exit status 0, 1 for an error of the user's, 2 for wrong usage, 70 for a fault of RLX itself.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <sstream>
#include <system_error>

#include <fmt/core.h>

#include "base/names.h"
#include "command.h"
#include "reports/version_text.h"
#include "rlx/error.h"
#include "terminal/interrupt.h"
#include "terminal/say.h"

namespace {

using rlx::command::say;

constexpr int user_error = 1, usage_error = 2, internal_error = 70;

void add_commands(CLI::App& app) {
  using namespace rlx::command;
  add_embed(app);
  add_rerank(app);
  add_classify(app);
  add_fill(app);
  add_tokenize(app);
  add_calibrate(app);
  add_eval(app);
  add_grad(app);
  add_compile(app);
  add_save(app);
  add_dump(app);
  add_explain(app);
  add_profile(app);
  add_run(app);
  add_chat(app);
  add_bench(app);
  add_perplexity(app);
  add_template(app);
  add_verify(app);
  add_inspect(app);
  add_quantize(app);
  add_convert(app);
  add_export(app);
  add_devices(app);
  add_ops(app);
  add_version(app);
}

/// A name of nothing is refused before it turns into a message without a name.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator not_empty([](std::string& value) { return std::string(value.empty() ? "must not be empty" : ""); }, "");
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    for (CLI::Option* option : command->get_options([](CLI::Option* any) { return any->get_type_size_max() > 0; }))
      option->check(not_empty);
}

/// The subcommand that was being parsed, or the command itself.
const CLI::App& parsed_command(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : *chosen.front();
}

/// What is wrong with a word that no command has, and which one may have been meant.
std::string unknown_word(const CLI::App& command, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  if (name.starts_with('-')) {
    for (const CLI::Option* option : command.get_options([](const CLI::Option*) { return true; }))
      for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
  } else {
    for (const CLI::App* each : command.get_subcommands([](const CLI::App*) { return true; })) known.push_back(each->get_name());
  }
  const std::string_view what = name.starts_with('-') ? "unknown option" : known.empty() ? "one argument too many:" : "unknown command";
  const std::vector<std::string_view> names(known.begin(), known.end());
  return fmt::format("{} {}{}", what, rlx::quote_name(name), rlx::near_hint(name, names));
}

/// Help and wrong usage both reach us as parse errors; help has status 0.
int end_of_parsing(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) {
    std::ostringstream text;
    app.exit(error, text, text);
    std::fputs(text.str().c_str(), stdout);
    return 0;
  }
  const CLI::App& command = parsed_command(app);
  // A word that was not understood is the cause of what is missing.
  const std::vector<std::string> unknown = app.remaining(true);
  say("rlx: {}; try 'rlx {}--help'.\n", unknown.empty() ? error.what() : unknown_word(command, unknown.front()),
      &command == &app ? "" : command.get_name() + " ");
  return usage_error;
}

/// `output_error` becomes the reason when standard output cannot be written.
int run(CLI::App& app, int argc, char** argv, int& output_error) {
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::RuntimeError& status) {
    return status.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return end_of_parsing(app, error);
  } catch (const rlx::InternalError& fault) {
    say("rlx: internal error: {}\nThis is a bug of RLX; please report it with the command and its files.\n", fault.what());
    return internal_error;
  } catch (const std::bad_alloc&) {
    say("rlx: there is not enough memory\n");
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) output_error = error.code().value();
    else say("rlx: {}\n", error.what());
  } catch (const std::exception& error) {
    say("rlx: {}\n", error.what());
  }
  return user_error;
}

/// A full disk may show only when the buffer is written.
int checked_output(int status, int output_error) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  const int reason = output_error != 0 ? output_error : errno != 0 ? errno : EIO;
  say("rlx: standard output: {}\n", std::strerror(reason));
  return status == 0 ? user_error : status;
}

}  // namespace

int main(int argc, char** argv) {
  rlx::command::keep_standard_streams();
  rlx::command::remove_temporary_files_on_signals();
  CLI::App app("RLX compiles and runs machine-learning models. Start with: rlx embed --help", "rlx");
  app.require_subcommand(1);
  app.set_version_flag("--version", rlx::command::version_text());
  app.get_formatter()->column_width(34);
  add_commands(app);
  app.footer(
      "Environment:\n"
      "  RLX_CACHE                       Folder for compiled kernels and timed choices; empty: none are kept\n"
      "                                  (default: rlx in XDG_CACHE_HOME, else ~/.cache/rlx)\n"
      "  RLX_DEVICE                      Where commands compute that are not told by --device (default: cpu)\n"
      "  RLX_CPU                         Instruction sets to use: portable, avx2, avx512 or amx, on ARM portable or neon\n"
      "                                  (default: the best of this CPU; 'rlx devices' shows it)");
  refuse_empty_values(app);
  int output_error = 0;
  const int status = run(app, argc, argv, output_error);
  return checked_output(status, output_error);
}
