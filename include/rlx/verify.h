#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "rlx/session.h"

namespace rlx {

/// How far one output of a model is from its recording.
struct VerifiedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t compared = 0;  // elements; those of padding do not count
  double difference = 0;      // the largest; NaN when any difference is
  double allowed = 0;

  bool passed() const { return difference <= allowed; }
};

/// Runs the model of `folder` on the inputs that another implementation recorded in the folder's expected.safetensors, and compares the
/// outputs that it recorded there: `X` in f32 and, for some, `X_f64`. What f32 may differ by is told by the recording itself: ten times its
/// own distance between f32 and f64 (for outputs without an f64 recording the largest of the file, each relative to the largest element
/// of its output). Language models may also have `prompt_ids` and `greedy_ids`, the prompt and how the likeliest tokens continue it:
/// generated token by token, none may differ. Throws Error when the model's type is not supported, or a recorded tensor is no input or
/// output of it or does not fit.
std::vector<VerifiedTensor> verify_folder(const std::filesystem::path& folder, const Session& session);
/// The same for the model `model`, a GGUF file or another folder, with the recording of `folder`.
std::vector<VerifiedTensor> verify_model(const std::filesystem::path& model, const std::filesystem::path& folder, const Session& session);

}  // namespace rlx
