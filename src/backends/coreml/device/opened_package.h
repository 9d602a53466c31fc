#pragma once
#include <map>
#include <mutex>

#include "backends/coreml/device/driver.h"
#include "rlx/io.h"

namespace rlx::coreml {

/// A package that the system has compiled. Throws Error where it cannot, and for one of a version that it does not open.
std::unique_ptr<Model> open_package(Library& library, const std::filesystem::path& package, const std::string& units);

/// Graphs and their weights by way of a folder, which goes again.
std::unique_ptr<Model> compile(Library& library, const SavedGraph& saved, const Bindings& sizes, const std::string& units);

/// Which types of blocks a unit decodes as the CPU does: devices were wrong there.
class DecodedTypes {
 public:
  /// Once for each type: multiplies the first rows of a weight, and throws Error where the product is another than the reference's.
  void check(Library& library, const std::string& units, const std::string& type, const std::string& name, const Array& blocks);

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> known_;  // the error by type; empty: it is right
};

}  // namespace rlx::coreml
