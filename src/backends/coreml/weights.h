#pragma once
#include <cstdint>
#include <vector>

#include "base/files/file_writer.h"
#include "rlx/array.h"

namespace rlx::coreml {

/// The file of weights of a package: records that programs name by their offsets. What is added is not copied, and is written at the end.
class Weights {
 public:
  /// f32 or f16. The offset of its record.
  std::uint64_t add(const Array& array);
  bool empty() const { return arrays_.empty(); }
  void write(FileWriter& file) const;

 private:
  std::vector<Array> arrays_;
  std::vector<std::uint64_t> offsets_;
  std::uint64_t end_ = 64;
};

}  // namespace rlx::coreml
