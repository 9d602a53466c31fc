#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rlx/calibration.h"
#include "rlx/dim.h"
#include "rlx/io.h"
#include "rlx/precision.h"

namespace rlx {

/// One function of a package of several, which share the weights.
struct CoreMlFunction {
  std::string name;
  Bindings sizes = {};  // of symbols, beside CoreMlOptions::sizes
};

struct CoreMlOptions {
  Bindings sizes = {};  // of symbols; the others stay open, from 1 to their bounds
  /// All sizes that open symbols may have: the first ones together, the second ones, and so on. None: all within their bounds.
  std::map<std::string, std::vector<std::int64_t>, std::less<>> choices = {};
  std::vector<CoreMlFunction> functions = {};  // from iOS 18 on; the first is the default one. Empty: one, `main`
  int minimum_target = 0;                      // iOS 16, 17, 18 or 26; 0: 17, or 18 where something asks for it
  /// Types of blocks of weights (as "IQ3_S") and what is stored instead: F16, or another type. The type "" stands for all others.
  std::map<std::string, std::string> block_types = {};
  bool nested_scales = false;            // scales of blocks that are products of two numbers stay such: smaller, and as exact
  bool computes_random_bits = false;     // by Philox, as everywhere; else they are inputs random_bits_0 and so on, filled by the host
  Precision precision = Precision::f32;  // f16: products and convolutions in f16, and the numbers that decode blocks of weights
                                         // int8: those with weights in 8-bit integers; see rlx/precision.h
  std::optional<Calibration> calibration = {};                              // of int8
  std::string description = {}, version = {}, author = {}, license = {};    // shown by Xcode
  std::function<void(std::size_t bytes, std::size_t total)> progress = {};  // of the file of weights; what it throws ends the work
};

/// What a package has otherwise than its options say at first.
struct CoreMlReport {
  /// Ops of floats that are computed in f32 beside products in f16, and why.
  struct KeptF32 {
    std::string reason;
    std::map<std::string, std::int64_t> ops;  // how many of each, in all functions
  };
  std::vector<KeptF32> kept_f32;

  /// A weight that is stored otherwise than it was given, by names: in blocks, or as f16.
  struct Stored {
    std::string name, type, form;  // as given, and as stored
    std::int64_t values;
    double bits;            // of a weight
    double relative_error;  // root of the mean square of stored - given, relative to that of the given; 0: exact
  };
  std::vector<Stored> weights;
};

/// Writes a graph and its weights as a CoreML package (a folder OUT.mlpackage), whole or not at all: an ML Program for iOS 17 and macOS 14
/// on, for iOS 18 and macOS 15 where it has states, several functions, or weights in blocks, which the device then decodes. Inputs and
/// outputs keep their names, of letters, digits and _; numbers are f32, f16 and i32 there, bools and narrow integers i32, states f16.
/// Throws Error for a name that exists, sizes beyond a bound, a parameter without a value or with NaN, and naming the op and its type
/// for what CoreML lacks.
CoreMlReport export_coreml(const std::filesystem::path& out, const SavedGraph& saved, const CoreMlOptions& options = {});

/// Of a language model.
struct ModelGraphOptions {
  std::int64_t context = 2048;  // tokens that the caches hold
  std::int64_t chunk = 64;      // most tokens of a run
};

/// What a language model computes, with its weights, for other programs: input_ids (1, S), past (1), the tokens that the caches hold, and
/// rows (1, R), the places among S whose logits are wanted, all i32 -> logits, f32 (1, R, vocabulary). The caches are states of f16. What
/// stands in them behind `past` does not matter, so that a short prompt may be filled up on the right; past + S is at most the context.
/// Models with recurrent layers, windows or longrope read more. Of an encoder it is SentenceEncoder::saved. Throws Error as Model::open.
SavedGraph model_graph(const std::filesystem::path& path, const ModelGraphOptions& options = {});

/// Writes a graph and its weights for browsers with WebGPU, as a new folder, whole or not at all: program.json, kernels.wgsl, weights.bin,
/// rlx.js, which runs them, and a page. Any server of files will do. Symbols stay open, and states are kept on the GPU.
/// Throws Error for a name that exists, a parameter without a value, and naming the op and its type for what only the host could compute.
void export_web(const std::filesystem::path& out, const SavedGraph& saved);

/// Tokens of a page's cache where nobody says how many.
inline constexpr std::int64_t usual_web_context = 1024;

struct WebModelOptions {
  std::int64_t context = 0;  // tokens that a language model's cache holds; 0: usual_web_context, or as many as it was made for
};

/// The same for a GGUF file, or a model's folder with tokenizer.json: the page embeds sentences, continues texts token by token, or
/// answers them (T5). Blocks of weights stay packed. Throws Error also for a folder without that file, and a tokenizer of no such form.
void export_web_model(const std::filesystem::path& out, const std::filesystem::path& model, const WebModelOptions& options = {});

}  // namespace rlx
