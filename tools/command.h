#pragma once
#include <CLI/CLI.hpp>

/// The subcommands of `rlx`, one file each: tools/commands/<name>.cpp declares the options, calls the library and prints.
/// A command throws rlx::Error for what the user can mend. It ends by `throw CLI::RuntimeError(1)` when it has already said on stdout
/// why the exit status is not 0.
namespace rlx::command {

void add_embed(CLI::App& app);
void add_rerank(CLI::App& app);
void add_classify(CLI::App& app);
void add_fill(CLI::App& app);
void add_tokenize(CLI::App& app);
void add_calibrate(CLI::App& app);
void add_eval(CLI::App& app);
void add_grad(CLI::App& app);
void add_compile(CLI::App& app);
void add_save(CLI::App& app);
void add_dump(CLI::App& app);
void add_explain(CLI::App& app);
void add_profile(CLI::App& app);
void add_run(CLI::App& app);
void add_chat(CLI::App& app);
void add_bench(CLI::App& app);
void add_perplexity(CLI::App& app);
void add_template(CLI::App& app);
void add_verify(CLI::App& app);
void add_inspect(CLI::App& app);
void add_quantize(CLI::App& app);
void add_convert(CLI::App& app);
void add_export(CLI::App& app);
void add_ops(CLI::App& app);
void add_devices(CLI::App& app);
void add_version(CLI::App& app);

}  // namespace rlx::command
