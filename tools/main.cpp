// The `rlx` command: exit status 0, 1 for an error of the user's, 2 for wrong usage, 70 for a fault of RLX itself.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include <fmt/core.h>

#include "command.h"
#include "interrupt.h"
#include "rlx/error.h"

namespace {

constexpr int user_error = 1, usage_error = 2, internal_error = 70;

void add_commands(CLI::App& app) {
  using namespace rlx::command;
  add_embed(app);
  add_eval(app);
  add_grad(app);
  add_dump(app);
  add_explain(app);
  add_verify(app);
  add_inspect(app);
  add_devices(app);
  add_ops(app);
  add_version(app);
}

/// The subcommand that was being parsed, for the hint: "rlx embed".
std::string command_name(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? "rlx" : fmt::format("rlx {}", chosen.front()->get_name());
}

/// Help and wrong usage both reach us as parse errors; help has status 0.
int end_of_parsing(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return app.exit(error);
  fmt::print(stderr, "rlx: {}\nTry '{} --help'.\n", error.what(), command_name(app));
  return usage_error;
}

int run(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::RuntimeError& status) {
    return status.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return end_of_parsing(app, error);
  } catch (const rlx::command::Interrupted& signal) {
    return 128 + signal.number;
  } catch (const rlx::InternalError& fault) {
    fmt::print(stderr, "rlx: internal error: {}\nThis is a bug of RLX; please report it with the command and its files.\n", fault.what());
    return internal_error;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "rlx: there is not enough memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "rlx: {}\n", error.what());
  }
  return user_error;
}

/// A full disk shows only when the buffer is written.
int checked_output(int status) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  fmt::print(stderr, "rlx: standard output: {}\n", std::strerror(errno == 0 ? EIO : errno));
  return status == 0 ? user_error : status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("RLX compiles and runs machine-learning models. Start with: rlx embed --help", "rlx");
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  add_commands(app);
  return checked_output(run(app, argc, argv));
}
