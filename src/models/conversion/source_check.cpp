#include "models/conversion/source_check.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "formats/gguf/gguf_writer.h"
#include "models/families/export/same_model.h"
#include "models/families/gguf/gguf_decoder.h"
#include "quant/block_format.h"
#include "rlx/error.h"

namespace rlx {
namespace {

/// Addresses for a file that is not there, the first bytes of which can be used. They take no memory.
class ReservedBytes {
 public:
  ReservedBytes(std::size_t size, std::string_view first) : size_(size) {
    bytes_ = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes_ == MAP_FAILED || ::mprotect(bytes_, first.size(), PROT_READ | PROT_WRITE) != 0)
      fail("{} bytes of addresses for checking what is to be written cannot be had: {}", size, std::strerror(errno));
    std::memcpy(bytes_, first.data(), first.size());
  }
  ~ReservedBytes() {
    if (bytes_ != MAP_FAILED) ::munmap(bytes_, size_);
  }
  ReservedBytes(const ReservedBytes&) = delete;
  ReservedBytes& operator=(const ReservedBytes&) = delete;

  std::span<const std::byte> all() const { return {static_cast<const std::byte*>(bytes_), size_}; }

 private:
  void* bytes_;
  std::size_t size_;
};

std::size_t padded(std::size_t bytes, std::size_t alignment) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

void check_source(const ModelSource& source, std::size_t first_tensors, const DecoderConfig& wanted) {
  const std::size_t alignment = source.metadata.alignment();
  std::string first = gguf_header(source.metadata, source.views(), source.name);
  std::size_t size = first.size();
  for (std::size_t i = 0; i < source.tensors.size(); ++i) {
    const SourceTensor& tensor = source.tensors[i];
    size += padded(block_bytes(*tensor.view.format, tensor.view.shape, tensor.view.name), alignment);
    if (i >= first_tensors) continue;
    std::vector<float> values(static_cast<std::size_t>(tensor.view.shape[0]));  // vectors of f32
    tensor.read_rows(0, 1, values.data());
    first.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    first.resize(size, '\0');
  }
  const ReservedBytes bytes(size, first);
  if (!same_model(wanted, read_gguf_decoder(GgufFile::parse(bytes.all(), source.name))))
    fail("{}: config.json says of the model what metadata of GGUF files cannot say", source.name);
}

}  // namespace rlx
