#pragma once
#include "models/config/decoder_config.h"
#include "models/conversion/model_source.h"

namespace rlx {

/// Throws Error unless the file that `source` will be is read as the model `wanted`: where its metadata cannot say all that the model's
/// config says, other readers would compute something else. Only the values of the first tensors are read, up to `first_tensors`.
void check_source(const ModelSource& source, std::size_t first_tensors, const DecoderConfig& wanted);

}  // namespace rlx
