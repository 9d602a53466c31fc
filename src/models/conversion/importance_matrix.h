#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rlx {

/// How much each column of a matrix of weights matters: the mean square of what it is multiplied with, over some text.
class ImportanceMatrix {
 public:
  /// A GGUF file of the kind "imatrix" or the older .dat. Throws Error naming the file, the entry and what is wrong.
  static ImportanceMatrix open(const std::filesystem::path& path);

  const std::string& name() const { return name_; }
  std::size_t size() const { return entries_.size(); }
  /// One weight a column, for each of `matrices` (the experts of a layer) one after the other; empty where the file has no such tensor.
  /// Throws Error when the sizes differ.
  std::span<const float> columns(std::string_view tensor, std::int64_t row, std::int64_t matrices) const;

 private:
  void read_gguf(const std::filesystem::path& path);
  void read_legacy(const std::filesystem::path& path);
  void add(std::string tensor, std::vector<float> weights);

  std::string name_;
  std::map<std::string, std::vector<float>, std::less<>> entries_;
};

}  // namespace rlx
