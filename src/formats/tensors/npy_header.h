#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// What an .npy header says, not interpreted yet.
struct NpyHeader {
  std::string descr;  ///< "<f4"
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

/// Parses the header's Python dict literal: exactly the keys descr, fortran_order and shape, in any order and either quotes.
/// Nothing is evaluated. Throws Error "{file}: header: ..." for anything else.
NpyHeader parse_npy_header(std::string_view text, std::string_view file);

}  // namespace rlx
