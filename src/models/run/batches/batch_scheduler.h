#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace rlx {

/// Tokens begin..end of a sequence, which run together with those of others.
struct BatchPiece {
  std::int64_t sequence, begin, end;
  std::size_t result;  // which of those asked for it is
  bool last = true;    // nothing of it is left
};

/// Takes the pieces of a run out of those that wait: in their order, up to `chunk` tokens.
std::vector<BatchPiece> next_run(std::vector<BatchPiece>& waiting, std::int64_t chunk);
/// The same with as many tokens of each sequence, of up to `most` sequences: those of the shortest, or as many as there is room for, at
/// most `most_each`.
std::vector<BatchPiece> next_even_run(std::vector<BatchPiece>& waiting, std::int64_t chunk, std::int64_t most, std::int64_t most_each);

}  // namespace rlx
