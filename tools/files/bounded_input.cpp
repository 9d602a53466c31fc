#include "files/bounded_input.h"

#include <cerrno>
#include <cstring>
#include <istream>
#include <vector>

#include "rlx/error.h"

namespace rlx::command {

std::string read_bounded(std::istream& in, const std::string& name) {
  constexpr std::size_t most_bytes = std::size_t{1} << 30;
  std::vector<char> piece(std::size_t{1} << 16);
  std::string all;
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto count = static_cast<std::size_t>(in.gcount());
    if (count > most_bytes - all.size()) fail("{}: holds more than 1 GiB", name);
    all.append(piece.data(), count);
  }
  if (in.bad()) fail("{}: {}", name, std::strerror(errno));
  return all;
}

}  // namespace rlx::command
