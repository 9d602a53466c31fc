#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/coreml/tensors.h"
#include "base/files/file_writer.h"
#include "rlx/array.h"

namespace rlx::coreml {

/// The file of weights of a package: records that programs name by their offsets. What is added is not copied, and is made when the file is
/// written.
class Weights {
 public:
  using Sink = std::function<void(std::span<const std::byte>)>;
  /// Hands over all bytes of a record, in pieces.
  using Source = std::function<void(const Sink&)>;

  /// The offset of the record of that key, which is added where there is none: `count` elements.
  std::uint64_t add(const std::string& key, Element element, std::int64_t count, Source source);
  bool empty() const { return records_.empty(); }
  std::uint64_t bytes() const { return end_; }
  /// `progress`: bytes written so far.
  void write(FileWriter& file, const std::function<void(std::uint64_t)>& progress) const;

 private:
  struct Record {
    Element element;
    std::uint64_t offset, bytes;
    Source source;
  };
  std::vector<Record> records_;
  std::map<std::string, std::uint64_t> offset_of_;
  std::uint64_t end_ = 64;
};

/// The key of what is made of an array.
std::string key_of(const Array& array, std::string_view part, Element element);

/// The floats of an array as f32 or f16, for Weights::add. `watch` sees each that becomes f16, as given and as stored. Throws Error naming
/// `name` for NaN, and for what f16 cannot hold.
Weights::Source floats_of(Array array, Element element, std::string name, std::function<void(float given, float stored)> watch = {});

}  // namespace rlx::coreml
