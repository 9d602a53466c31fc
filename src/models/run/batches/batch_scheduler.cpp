#include "models/run/batches/batch_scheduler.h"

#include <algorithm>
#include <span>

namespace rlx {
namespace {

/// Takes the first tokens out of a piece.
BatchPiece first_of(BatchPiece& piece, std::int64_t tokens) {
  BatchPiece first = piece;
  first.end = piece.begin += tokens;
  first.last = first.end == piece.end;
  return first;
}

void drop_empty(std::vector<BatchPiece>& waiting) {
  std::erase_if(waiting, [](const BatchPiece& piece) { return piece.begin == piece.end; });
}

}  // namespace

std::vector<BatchPiece> next_run(std::vector<BatchPiece>& waiting, std::int64_t chunk) {
  std::vector<BatchPiece> run;
  for (auto piece = waiting.begin(); piece != waiting.end() && chunk > 0; ++piece) {
    run.push_back(first_of(*piece, std::min(chunk, piece->end - piece->begin)));
    chunk -= run.back().end - run.back().begin;
  }
  drop_empty(waiting);
  return run;
}

std::vector<BatchPiece> next_even_run(std::vector<BatchPiece>& waiting, std::int64_t chunk, std::int64_t most, std::int64_t most_each) {
  const auto count = std::min({static_cast<std::int64_t>(waiting.size()), chunk, most});
  const std::span<BatchPiece> those = std::span(waiting).first(static_cast<std::size_t>(count));
  std::int64_t tokens = std::min(chunk / count, most_each);
  for (const BatchPiece& piece : those) tokens = std::min(tokens, piece.end - piece.begin);
  std::vector<BatchPiece> run;
  for (BatchPiece& piece : those) run.push_back(first_of(piece, tokens));
  drop_empty(waiting);
  return run;
}

}  // namespace rlx
