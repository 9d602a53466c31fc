// Metal without a Mac: the functions that RLX's glue has, see backends/metal/driver.h. Texts are compiled as C++ (tests/metal/metal_stdlib)
// by Clang, with RLX_FAKE_GPU_FLAGS if that is set, and threads run one after the other in an order that is none. The queue is taken at its
// word: nothing is done before somebody waits. Addresses of kernels are none of the process. Each allocation has its bytes and no more.
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "backends/metal/driver.h"
#include "emit/metal_in_cpp.h"
#include "fake_gpu/files.h"

namespace {

using namespace rlx::metal;
namespace fs = std::filesystem;

constexpr std::int64_t total_memory = std::int64_t{4} << 30, largest = std::int64_t{1} << 30;
constexpr std::string_view archive_mark = "fake archive\n";

struct Room {
  std::byte* host;
  std::uint64_t device;
  std::int64_t bytes;
  bool is_wrapped;
};

struct Kernel {
  using Run = void (*)(void** arguments, unsigned blocks, unsigned threads, unsigned seed);
  std::shared_ptr<void> library;
  Run run;
};

struct FakeGpu : Gpu {
  FakeGpu() {
    title = "Fake GPU";
    version = "macOS 13.0";
    memory = total_memory;
    largest_buffer = largest;
  }

  Shared allocate(std::int64_t bytes) override {
    if (bytes <= 0 || bytes > largest) return {};
    void* host = nullptr;
    if (posix_memalign(&host, 256, static_cast<std::size_t>(bytes)) != 0) return {};
    constexpr int unset = 0xa5;
    constexpr std::int64_t touched = 1 << 20;  // more would take memory
    std::memset(host, unset, static_cast<std::size_t>(std::min(bytes, touched)));
    return room({static_cast<std::byte*>(host), 0, bytes, false});
  }
  Shared wrap(std::span<std::byte> pages) override {
    constexpr std::uintptr_t page = 4096;
    if (reinterpret_cast<std::uintptr_t>(pages.data()) % page != 0 || pages.size() % page != 0) return {};
    return room({pages.data(), 0, std::ssize(pages), true});
  }
  void let_go(void* memory) override {
    auto* const room = static_cast<Room*>(memory);
    if (!asked_.empty()) complain("memory is freed that the queue may use");
    if (!room->is_wrapped) std::free(room->host);
    rooms_.erase(room);
    delete room;
  }

  Pipelines compile(const std::string& text, std::span<const std::string> names, const std::string& archive) override {
    const rlx::test::Folder folder;
    const fs::path library = folder.path / "kernels.so";
    const bool is_taken = archive.starts_with(archive_mark);
    if (is_taken) rlx::test::write_file(library, archive.substr(archive_mark.size()));
    else if (std::string log = make_library(folder.path, text, names); !log.empty()) return {{}, {}, std::move(log)};
    void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!opened) return {{}, {}, dlerror()};
    const std::shared_ptr<void> shared(opened, dlclose);
    Pipelines made;
    for (const std::string& name : names) {
      const auto run = reinterpret_cast<Kernel::Run>(dlsym(opened, ("run_all_of_" + name).c_str()));
      if (!run) return {{}, {}, dlerror()};
      made.handles.push_back(new Kernel{shared, run});
    }
    if (!is_taken) made.archive = std::string(archive_mark) + rlx::test::contents(library);
    return made;
  }
  void let_go_kernel(void* kernel) override { delete static_cast<Kernel*>(kernel); }

  void launch(void* kernel, std::span<const std::uint64_t> words, std::span<void* const> memories, std::uint64_t groups,
              std::uint64_t threads) override {
    if (words.size_bytes() > 4096 || threads > 256 || groups == 0) return complain("a launch is refused");
    std::vector<std::uint64_t> given(words.begin(), words.end());
    for (std::size_t i = 0; i < memories.size(); ++i) {
      const auto* const room = static_cast<const Room*>(memories[i]);
      if (!rooms_.contains(room) || words[i] < room->device || words[i] > room->device + static_cast<std::uint64_t>(room->bytes))
        return complain("a kernel is given an address outside of its memory");
      given[i] = words[i] - room->device + reinterpret_cast<std::uintptr_t>(room->host);
    }
    asked_.emplace_back([run = *static_cast<const Kernel*>(kernel), given, groups, threads, seed = ++launches_]() mutable {
      void* first = given.data();
      void* arguments[] = {&first};
      run.run(arguments, static_cast<unsigned>(groups), static_cast<unsigned>(threads), seed);
    });
  }
  void copy(void* to, std::int64_t to_offset, void* from, std::int64_t from_offset, std::int64_t bytes) override {
    std::byte* const target = inside(to, to_offset, bytes);
    const std::byte* const source = inside(from, from_offset, bytes);
    if (!target || !source) return complain("a copy is refused");
    asked_.emplace_back([=] { std::memcpy(target, source, static_cast<std::size_t>(bytes)); });
  }
  void clear(void* memory, std::int64_t offset, std::int64_t bytes) override {
    std::byte* const target = inside(memory, offset, bytes);
    if (!target) return complain("a fill is refused");
    asked_.emplace_back([=] { std::memset(target, 0, static_cast<std::size_t>(bytes)); });
  }
  std::string finish() override {
    for (const auto& work : std::exchange(asked_, {})) work();
    return std::exchange(complaint_, {});
  }

 private:
  /// Each has addresses of its own, also where two are the same pages of the host.
  Shared room(Room made) {
    constexpr std::uint64_t apart = 4096;
    made.device = next_;
    next_ += static_cast<std::uint64_t>(made.bytes) / apart * apart + 2 * apart;
    auto* const kept = new Room(made);
    rooms_.insert(kept);
    return {kept, made.host, made.device};
  }
  std::byte* inside(void* memory, std::int64_t offset, std::int64_t bytes) const {
    const auto* const room = static_cast<const Room*>(memory);
    const bool is_fine = rooms_.contains(room) && (offset | bytes) % 4 == 0 && offset >= 0 && offset + bytes <= room->bytes;
    return is_fine ? room->host + offset : nullptr;
  }
  void complain(const std::string& what) {
    if (complaint_.empty()) complaint_ = what;
  }
  /// The compiler's log, where it refuses. With a function for each kernel that runs all of its threads.
  static std::string make_library(const fs::path& folder, const std::string& text, std::span<const std::string> names) {
    std::string all = std::string(rlx::test::threads_in_cpp) + "#line 1\n" + text;
    for (const std::string& name : names) all += rlx::test::metal_runner(name);
    rlx::test::write_file(folder / "kernels.cpp", all);
    return rlx::test::compile_library(folder, RLX_FAKE_COMPILER " -std=c++17 -I " RLX_FAKE_METAL);
  }

  std::uint64_t next_ = std::uint64_t{1} << 60;  // no program has memory there
  std::set<const void*> rooms_;
  std::vector<std::function<void()>> asked_;
  std::string complaint_;
  unsigned launches_ = 0;
};

}  // namespace

extern "C" [[gnu::visibility("default")]] Library* rlx_open_metal() {
  static Library& once = *new Library;
  if (once.gpus.empty())
    for (int i = 0; i < 2; ++i) once.gpus.push_back(std::make_unique<FakeGpu>());
  return &once;
}
