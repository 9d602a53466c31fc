#pragma once
#include <optional>
#include <string>

#include "backends/coreml/body.h"

namespace rlx::coreml {

/// Weights in blocks of a GGUF type, which the device decodes: x = scaled - minima, where a minimum is that of `group` neighbours on the
/// last axis.
struct DecodedBlocks {
  Tensor scaled;                 // (..., K)
  std::optional<Tensor> minima;  // (..., K / group)
  std::int64_t group;
  std::shared_ptr<StoredWeight> report;
};

/// What decodes a weight in blocks (..., bytes) of a type that find_block_parts knows: to f16 where products are that and it holds the
/// scales, or the weight is stored so; else to f32.
DecodedBlocks decode_on_device(Body& out, const Weight& weight);
/// With the minima taken from the elements, in f32: less is lost than in the scales.
Tensor whole(Body& out, const DecodedBlocks& blocks);
/// A weight in blocks with all its numbers in these elements; where they are f16, that is part of the error that is reported.
Tensor decoded(Body& out, const Weight& weight, Element element);

/// A table of the form of each type, for documents.
std::string block_forms();

}  // namespace rlx::coreml
