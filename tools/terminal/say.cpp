#include "terminal/say.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iterator>

#include <fmt/format.h>

namespace rlx::command {

// The first free descriptor is what `open` gives; reading where only writing is allowed fails, and the other way round.
void keep_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) < 0) static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

void say_text(fmt::string_view text, fmt::format_args arguments) noexcept try {
  fmt::memory_buffer line;
  fmt::vformat_to(std::back_inserter(line), text, arguments);
  std::fwrite(line.data(), 1, line.size(), stderr);
} catch (const std::exception&) {  // no memory for the line
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace rlx::command
