#include "options/warnings.h"

#include <string>
#include <string_view>

#include "base/names.h"
#include "formats/checkpoint.h"
#include "models/conversion/type_mix.h"
#include "terminal/say.h"

namespace rlx::command {
void warn_about_context(std::int64_t tokens, std::int64_t trained) {
  if (tokens > trained)
    say("rlx: a context of {} tokens is longer than the {} that the model was trained for: text behind those may make no sense\n", tokens,
        trained);
}

void warn_about_precision(const CompileChoices& choices, const std::filesystem::path& model) {
  if (!choices.precision) return;
  const Checkpoint checkpoint = Checkpoint::open(model);
  std::size_t bytes = 0, blocks = 0;
  for (const Checkpoint::File& file : checkpoint.files())
    for (const TensorView& tensor : file.tensors) bytes += tensor.data.size(), blocks += is_packed(tensor) ? tensor.data.size() : 0;
  if (blocks > bytes / 2)
    say("rlx: --precision does not reach matrices in blocks, as this model's are (--activations says how they multiply)\n");
}

void warn_about_importance(const ConvertOptions& options) {
  if (!options.importance.empty() || options.type.empty()) return;
  std::string_view type = find_type_mix(options.type).name;
  for (const auto& [pattern, other] : options.tensor_types)
    if (!needs_importance(type) && needs_importance(other)) type = other;
  if (needs_importance(type)) say("rlx: {} without --imatrix: an importance matrix would keep more of the model in so few bits\n", type);
}

void warn_about_losses(const QuantizeReport& report) {
  if (!report.losses.empty())
    say("rlx: GGUF files cannot say all of {} tokens, so texts may become other ones: {}\n", report.losses.size(),
        some_names(report.losses));
}

void warn_about_size(const QuantizeReport& report) {
  if (report.bytes > report.source_bytes + report.source_bytes / 100)
    say("rlx: the weights take {} bytes, more than the {} of the source, of which they have no more digits\n", report.bytes,
        report.source_bytes);
}

}  // namespace rlx::command
