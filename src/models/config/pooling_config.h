#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

namespace rlx {

class JsonField;

/// How the states of a text's tokens become one vector; the words of sentence-transformers' configs.
enum class Pooling : std::uint8_t { cls, max, mean, mean_sqrt_len, weighted_mean, last_token };

/// By its word: cls, max, mean, mean_sqrt_len_tokens, weightedmean, lasttoken. Throws Error that lists them for any other.
Pooling parse_pooling(std::string_view word);

/// Its word there.
std::string_view pooling_word(Pooling mode);

/// The modes that a 1_Pooling/config.json asks for, in the order in which their vectors are put side by side. Throws Error naming the
/// field when there is none, one is unknown, or the states it expects have another size than `width`.
std::vector<Pooling> read_pooling(const JsonField& config, std::int64_t width);

}  // namespace rlx
