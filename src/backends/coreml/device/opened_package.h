#pragma once
#include <map>
#include <mutex>

#include "backends/coreml/device/driver.h"
#include "rlx/io.h"

namespace rlx::coreml {

/// A folder that goes with its owner.
struct OwnedFolder {
  explicit OwnedFolder(std::filesystem::path at) : path(std::move(at)) {}
  OwnedFolder(const OwnedFolder&) = delete;
  OwnedFolder& operator=(const OwnedFolder&) = delete;
  ~OwnedFolder();

  const std::filesystem::path path;
};

/// A package that the system has compiled, which goes with this.
class OpenedPackage {
 public:
  /// Throws Error where the system cannot, and for a package of a version that it does not open.
  OpenedPackage(Library& library, const std::filesystem::path& package, const std::string& units);

  /// Fills the outputs, one run after the other. Empty, or what failed.
  std::string run(std::span<const Given> inputs, std::span<const Wanted> outputs);
  std::vector<Placement> placements() const { return model_->placements(); }

 private:
  OwnedFolder compiled_;
  std::unique_ptr<Model> model_;
  std::mutex running_;
};

/// Graphs and their weights by way of a package, which goes again.
std::unique_ptr<OpenedPackage> compile(Library& library, const SavedGraph& saved, const Bindings& sizes, const std::string& units);

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
