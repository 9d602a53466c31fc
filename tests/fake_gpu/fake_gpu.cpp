// A driver of GPUs without a GPU: the functions of CUDA's driver and NVRTC that RLX opens, or with RLX_FAKE_HIP those of HIP and hipRTC.
// Texts are compiled as C++ (emit/cuda_in_cpp.h) by the compiler of the build, with RLX_FAKE_GPU_FLAGS if that is set, and threads run one
// after the other in an order that is none, as fibers where a text lets them wait for each other (lanes.h). Memory on chip is of bytes 0xff
// when a block begins, and a launch whose threads wait for ever fails. Streams are taken at their word: nothing is done before somebody
// waits. Addresses are none of the process. Each allocation has its bytes and no more, so that AddressSanitizer names a kernel's line that
// reads or writes behind them.
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "emit/cuda_attention_in_cpp.h"
#include "emit/cuda_in_cpp.h"
#include "emit/cuda_products_in_cpp.h"
#include "fake_gpu/entries.h"
#include "fake_gpu/files.h"
#include "fake_gpu/lanes.h"

namespace {

namespace fs = std::filesystem;

enum Code : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  invalid_context = 201,
  invalid_image = 200,
  not_found = 500,
  launch_timeout = 702
};
constexpr std::pair<Code, const char*> names[]{{success, "FAKE_SUCCESS"},
                                               {invalid_value, "FAKE_ERROR_INVALID_VALUE"},
                                               {out_of_memory, "FAKE_ERROR_OUT_OF_MEMORY"},
                                               {not_initialized, "FAKE_ERROR_NOT_INITIALIZED"},
                                               {invalid_context, "FAKE_ERROR_INVALID_CONTEXT"},
                                               {invalid_image, "FAKE_ERROR_INVALID_IMAGE"},
                                               {not_found, "FAKE_ERROR_NOT_FOUND"},
                                               {launch_timeout, "FAKE_ERROR_LAUNCH_TIMEOUT"}};

constexpr std::uintptr_t away = std::uintptr_t{1} << 60;  // no program has memory there
constexpr int most_on_chip = 227 << 10;                   // bytes of a block
constexpr unsigned warp = NAMED(32, 64);
constexpr std::size_t total_memory = std::size_t{4} << 30;

struct Stream {
  const void* context;
  std::deque<std::function<Code()>> asked;
};
/// As the text has it.
struct Launched {
  void** arguments;
  unsigned blocks, threads, warp, seed;
  unsigned char* on_chip;
  unsigned long on_chip_bytes;
  const FakeLanes* lanes;
};
struct Function {
  bool (*run)(const Launched&);
  int arguments;
  const int* bytes;  // of each
  bool in_groups;    // threads wait for each other
};
struct Module {
  void* library;
  std::map<std::string, Function> functions;
};

/// What the devices share.
struct Device {
  std::mutex mutex;
  bool is_open = false;
  std::map<std::uintptr_t, std::size_t> taken;
  std::map<const std::byte*, std::size_t> pinned;  // of the host
  std::size_t taken_bytes = 0;
  unsigned launches = 0;
} device;
constexpr int devices = 2;
char contexts[devices];  // of which the addresses count
thread_local const void* context = nullptr;

void* real(std::uintptr_t address) { return reinterpret_cast<void*>(address - away); }

bool is_inside(std::uintptr_t address, std::size_t bytes) {
  auto after = device.taken.upper_bound(address);
  if (after == device.taken.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return address - begin <= size && bytes <= size - (address - begin);
}

/// What a device reads later, and drivers do not copy.
bool is_pinned(const std::byte* memory) {
  auto after = device.pinned.upper_bound(memory);
  if (after == device.pinned.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return memory < begin + size;
}

/// Puts it behind what the stream was asked for; `valid`: of the arguments.
template <class Work>
Code later(Stream* stream, bool valid, Work work) {
  if (!stream || !valid) return invalid_value;
  if (stream->context != context) return invalid_context;
  stream->asked.emplace_back([work = std::move(work)]() mutable {
    if constexpr (std::is_void_v<decltype(work())>) return work(), success;
    else return work();
  });
  return success;
}
/// What fails takes with it what was asked for behind it.
Code do_next(Stream* stream) {
  if (stream->asked.empty()) return invalid_value;
  const auto work = std::move(stream->asked.front());
  stream->asked.pop_front();
  const Code code = work();
  if (code != success) stream->asked.clear();
  return code;
}

}  // namespace

// -- the driver

ENTRY(Code, cuInit, hipInit)(unsigned) {
  device.is_open = true;
  return success;
}
ENTRY(Code, cuDriverGetVersion, hipDriverGetVersion)(int* version) {
  *version = NAMED(12040, 60000000);
  return success;
}
ENTRY(Code, cuDeviceGetCount, hipGetDeviceCount)(int* count) {
  *count = devices;
  return device.is_open ? success : not_initialized;
}
ENTRY(Code, cuDeviceGet, hipDeviceGet)(int* found, int number) {
  *found = number;
  return number >= 0 && number < devices ? success : invalid_value;
}
ENTRY(Code, cuDeviceGetName, hipDeviceGetName)(char* name, int bytes, int) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "Fake GPU");
  return success;
}
ENTRY(Code, cuDeviceTotalMem_v2, hipDeviceTotalMem)(std::size_t* bytes, int) {
  *bytes = total_memory;
  return success;
}
ENTRY(Code, cuDeviceGetAttribute, hipDeviceGetAttribute)(int* value, int attribute, int) {
  constexpr std::pair<int, int> values[]{{NAMED(16, 63), 2}, {NAMED(75, 23), 9}, {NAMED(76, 61), 0}, {NAMED(115, 88), 1}};
  for (const auto& [number, its] : values)
    if (number == attribute) return *value = its, success;
  return invalid_value;
}
ENTRY(Code, cuDevicePrimaryCtxRetain, hipDevicePrimaryCtxRetain)(void** retained, int number) {
  *retained = &contexts[number];
  return device.is_open ? success : not_initialized;
}
ENTRY(Code, cuDevicePrimaryCtxRelease_v2, hipDevicePrimaryCtxRelease)(int) { return success; }
ENTRY(Code, cuCtxSetCurrent, hipCtxSetCurrent)(void* current) {
  context = current;
  return success;
}
ENTRY(Code, cuGetErrorName, hipDrvGetErrorName)(Code code, const char** name) {
  for (const auto& [value, its] : names)
    if (value == code) return *name = its, success;
  return invalid_value;
}
ENTRY(Code, cuGetErrorString, hipDrvGetErrorString)(Code, const char** text) {
  *text = "as the fake driver has it";
  return success;
}

// -- memory

ENTRY(Code, cuDeviceGetDefaultMemPool, hipDeviceGetDefaultMemPool)(void** pool, int) {
  *pool = &device;
  return success;
}
ENTRY(Code, cuMemPoolSetAttribute, hipMemPoolSetAttribute)(void* pool, int attribute, void*) {
  return pool == &device && attribute == 4 ? success : invalid_value;
}
ENTRY(Code, cuMemGetInfo_v2, hipMemGetInfo)(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(device.mutex);
  *free = total_memory - device.taken_bytes;
  *total = total_memory;
  return success;
}
ENTRY(Code, cuMemAllocAsync, hipMallocAsync)(std::uintptr_t* address, std::size_t bytes, Stream* stream) {
  const std::lock_guard lock(device.mutex);
  if (!stream || bytes == 0) return invalid_value;
  if (stream->context != context) return invalid_context;
  if (bytes > total_memory - device.taken_bytes) return out_of_memory;
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes) != 0) return out_of_memory;
  constexpr int unset = 0xa5;
  std::memset(memory, unset, bytes);
  *address = reinterpret_cast<std::uintptr_t>(memory) + away;
  device.taken.emplace(*address, bytes);
  device.taken_bytes += bytes;
  return success;
}
ENTRY(Code, cuMemFreeAsync, hipFreeAsync)(std::uintptr_t address, Stream* stream) {
  const std::lock_guard lock(device.mutex);
  const auto at = device.taken.find(address);
  if (at == device.taken.end()) return invalid_value;
  device.taken_bytes -= at->second;
  device.taken.erase(at);
  return later(stream, true, [memory = std::shared_ptr<void>(real(address), std::free)] {});  // also where it never comes to that
}
ENTRY(Code, cuMemHostAlloc, hipHostMalloc)(void** memory, std::size_t bytes, unsigned) {
  const std::lock_guard lock(device.mutex);
  *memory = std::malloc(bytes);
  device.pinned.emplace(static_cast<std::byte*>(*memory), bytes);
  return *memory ? success : out_of_memory;
}
ENTRY(Code, cuMemFreeHost, hipHostFree)(void* memory) {
  const std::lock_guard lock(device.mutex);
  device.pinned.erase(static_cast<std::byte*>(memory));
  std::free(memory);
  return success;
}
ENTRY(Code, cuMemcpyHtoDAsync_v2, hipMemcpyHtoDAsync)(std::uintptr_t to, const void* from, std::size_t bytes, Stream* stream) {
  const std::lock_guard lock(device.mutex);
  const auto* data = static_cast<const std::byte*>(from);
  if (is_pinned(data)) return later(stream, is_inside(to, bytes), [=] { std::memcpy(real(to), data, bytes); });
  return later(stream, is_inside(to, bytes),
               [to, bytes = std::vector<std::byte>(data, data + bytes)] { std::memcpy(real(to), bytes.data(), bytes.size()); });
}
ENTRY(Code, cuMemcpyDtoHAsync_v2, hipMemcpyDtoHAsync)(void* to, std::uintptr_t from, std::size_t bytes, Stream* stream) {
  const std::lock_guard lock(device.mutex);
  return later(stream, is_inside(from, bytes), [=] { std::memcpy(to, real(from), bytes); });
}
ENTRY(Code, cuMemcpyDtoDAsync_v2, hipMemcpyDtoDAsync)(std::uintptr_t to, std::uintptr_t from, std::size_t bytes, Stream* stream) {
  const std::lock_guard lock(device.mutex);
  return later(stream, is_inside(to, bytes) && is_inside(from, bytes), [=] { std::memcpy(real(to), real(from), bytes); });
}
ENTRY(Code, cuMemcpyPeerAsync, hipMemcpyPeerAsync)(std::uintptr_t to, std::intptr_t here, std::uintptr_t from, std::intptr_t there,
                                                   std::size_t bytes, Stream* stream) {
  const std::lock_guard lock(device.mutex);
  const auto is_place = [](std::intptr_t place, const void* of) {
    const auto number = NAMED(reinterpret_cast<const char*>(place) - contexts, place);
    return number >= 0 && number < devices && (!of || of == contexts + number);
  };
  const bool valid = is_place(here, stream->context) && is_place(there, nullptr) && here != there;
  return later(stream, valid && is_inside(to, bytes) && is_inside(from, bytes), [=] { std::memcpy(real(to), real(from), bytes); });
}
ENTRY(Code, cuMemsetD8Async, hipMemsetD8Async)(std::uintptr_t to, unsigned char value, std::size_t bytes, Stream* stream) {
  const std::lock_guard lock(device.mutex);
  return later(stream, is_inside(to, bytes), [=] { std::memset(real(to), value, bytes); });
}

// -- streams and launches

ENTRY(Code, cuStreamCreate, hipStreamCreateWithFlags)(Stream** stream, unsigned) {
  if (!context) return invalid_context;
  *stream = new Stream{context, {}};
  return success;
}
ENTRY(Code, cuStreamDestroy_v2, hipStreamDestroy)(Stream* stream) {
  delete stream;
  return success;
}
ENTRY(Code, cuStreamSynchronize, hipStreamSynchronize)(Stream* stream) {
  const std::lock_guard lock(device.mutex);
  if (stream->context != context) return invalid_context;
  Code code = success;
  while (code == success && !stream->asked.empty()) code = do_next(stream);
  return code;
}
// For the files beside this one.
int fake_later(void* stream, std::function<int()> work) {
  return later(static_cast<Stream*>(stream), true, [work = std::move(work)] { return static_cast<Code>(work()); });
}
std::mutex& fake_mutex() { return device.mutex; }
int fake_do_next(void* stream) { return do_next(static_cast<Stream*>(stream)); }
int fake_argument_count(const void* function) { return static_cast<const Function*>(function)->arguments; }
int fake_argument_bytes(const void* function, std::size_t argument) { return static_cast<const Function*>(function)->bytes[argument]; }
ENTRY(Code, cuFuncSetAttribute, hipFuncSetAttribute)(const Function*, int attribute, int bytes) {
  return attribute == 8 && bytes <= most_on_chip ? success : invalid_value;
}
ENTRY(Code, cuLaunchKernel, hipModuleLaunchKernel)(const Function* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                                                   unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream* stream,
                                                   void** arguments, void** extra) {
  const std::lock_guard lock(device.mutex);
  const bool valid =
      x > 0 && y == 1 && z == 1 && threads > 0 && threads <= 1024 && block_y == 1 && block_z == 1 && shared_bytes <= most_on_chip && !extra;
  struct alignas(64) Value {
    char bytes[128];
  };
  std::vector<Value> values(static_cast<std::size_t>(function->arguments));
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(&values[i], arguments[i], std::min(sizeof values[i], static_cast<std::size_t>(function->bytes[i])));
  return later(stream, valid, [=, seed = ++device.launches]() mutable {
    std::vector<void*> places;
    for (Value& value : values) places.push_back(&value);
    constexpr std::size_t alignment = 1024;
    void* on_chip = nullptr;
    if (posix_memalign(&on_chip, alignment, shared_bytes) != 0) return out_of_memory;
    const std::unique_ptr<void, decltype(&std::free)> held(on_chip, std::free);
    const FakeLanes* const lanes = function->in_groups ? &fake_lanes : nullptr;
    const bool ends = function->run({places.data(), x, threads, warp, seed, static_cast<unsigned char*>(on_chip), shared_bytes, lanes});
    return ends ? success : launch_timeout;
  });
}

#ifndef RLX_FAKE_HIP
/// As emit/cuda_products_in_cpp.h reads it, and refused where CUDA refuses it.
extern "C" [[gnu::visibility("default")]] Code cuTensorMapEncodeTiled(void* map, int type, unsigned rank, std::uintptr_t address,
                                                                      const std::uint64_t* extents, const std::uint64_t* strides,
                                                                      const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                                                                      int turned, int, int fill) {
  constexpr std::uint64_t whole = 16, most_side = 256, widest = 128;
  const bool is_known = type == 1 && rank == 3 && interleave == 0 && turned == 3 && fill == 0 && box[2] == 1 && steps[0] == 1;
  bool fits = address % whole == 0 && 2 * box[0] <= widest && box[1] <= most_side;
  for (int i = 0; i < 3; ++i) fits = fits && extents[i] > 0 && extents[i] <= std::uint64_t{1} << 32;
  for (int i = 0; i < 2; ++i) fits = fits && strides[i] % whole == 0 && strides[i] > 0 && strides[i] < std::uint64_t{1} << 40;
  if (!is_known || !fits) return invalid_value;
  const std::uint64_t words[16]{address, extents[0], extents[1], extents[2], strides[0], strides[1], box[0], box[1]};
  std::memcpy(map, words, sizeof words);
  return success;
}
#endif

// -- modules: a head, the bytes of a shared library

namespace {
constexpr std::uint64_t magic = 0x6b61662d786c72;
struct Head {
  std::uint64_t magic, bytes;
};
}  // namespace

ENTRY(Code, cuModuleLoadData, hipModuleLoadData)(Module** module, const void* image) {
  Head head;
  std::memcpy(&head, image, sizeof head);
  if (!context) return invalid_context;
  if (head.magic != magic) return invalid_image;
  const rlx::test::Folder folder;
  const fs::path file = folder.path / "kernels.so";
  rlx::test::write_file(file, {static_cast<const char*>(image) + sizeof head, head.bytes});
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) return std::fprintf(stderr, "%s\n", dlerror()), invalid_image;
  *module = new Module{library, {}};
  return success;
}
ENTRY(Code, cuModuleUnload, hipModuleUnload)(Module* module) {
  dlclose(module->library);
  delete module;
  return context ? success : invalid_context;
}
ENTRY(Code, cuModuleGetFunction, hipModuleGetFunction)(const Function** function, Module* module, const char* name) {
  const auto found = [&](const char* prefix) { return dlsym(module->library, (prefix + std::string(name)).c_str()); };
  const auto run = reinterpret_cast<bool (*)(const Launched&)>(found("run_"));
  const auto* facts = static_cast<const int*>(found("facts_of_"));
  const auto* bytes = static_cast<const int* const*>(found("bytes_of_"));
  if (!run || !facts || !bytes) return not_found;
  *function = &module->functions.insert_or_assign(name, Function{run, facts[0], *bytes, facts[1] != 0}).first->second;
  return success;
}

// -- the compiler

namespace {

struct Source {
  std::string text, log, binary;
};

/// Memory whose size a launch says is where the launch has it.
std::string with_launched_memory(const std::string& text) {
  static const std::regex declared(R"(extern __shared__ (?:(?:__align__|alignas)\([^)]*\) )?([^;\[]*?)(\w+)\[\];)");
  if (text.find("extern __shared__") == std::string::npos) return text;
  return std::regex_replace(text, declared, "$1* const $2 = ($1*)fake_launch->on_chip;");
}

/// With a function for each kernel that runs all of its threads.
std::string with_runners(const std::string& given) {
  const std::string text = with_launched_memory(given);
  std::string all;
  for (const std::string_view part :
       {rlx::test::threads_in_cpp, rlx::test::cuda_in_cpp, rlx::test::cuda_products_in_cpp, rlx::test::cuda_attention_in_cpp})
    all += part;
  all += "#line 1\n" + text;
  const char* const in_groups = text.find("__sync") != std::string::npos || text.find("__shfl") != std::string::npos ? "1" : "0";
  const std::string opening = "extern \"C\" __global__ void";
  for (std::size_t at = text.find(opening); at != std::string::npos; at = text.find(opening, at + 1)) {
    const std::string head = text.substr(at, text.find("{", at) - at);
    const std::size_t end = head.find("(", head.find("__launch_bounds__(") == std::string::npos ? 0 : head.find(")"));
    const std::string name = head.substr(head.rfind(' ', end) + 1, end - head.rfind(' ', end) - 1);
    all += "extern \"C\" bool run_" + name + "(const Launched& launch) { return run_threads(" + name + ", launch); }\n";
    all += "extern \"C\" const int* const bytes_of_" + name + " = bytes_of_arguments(" + name + ");\n";
    all += "extern \"C\" const int facts_of_" + name + "[] = {count_arguments(" + name + "), " + in_groups + "};\n";
  }
  return all;
}

}  // namespace

ENTRY(Code, nvrtcVersion, hiprtcVersion)(int* major, int* minor) {
  *major = 12;
  *minor = 4;
  return success;
}
ENTRY(Code, nvrtcCreateProgram, hiprtcCreateProgram)(Source** source, const char* text, const char*, int, const char* const*,
                                                     const char* const*) {
  *source = new Source{text, {}, {}};
  return success;
}
ENTRY(Code, nvrtcDestroyProgram, hiprtcDestroyProgram)(Source** source) {
  delete std::exchange(*source, nullptr);
  return success;
}
ENTRY(Code, nvrtcCompileProgram, hiprtcCompileProgram)(Source* source, int, const char* const*) {
  const rlx::test::Folder folder;
  rlx::test::write_file(folder.path / "kernels.cpp", with_runners(source->text));
  source->log = rlx::test::compile_library(folder.path, RLX_FAKE_COMPILER " -Daddress_offset=" + std::to_string(away) + "ul");
  if (!source->log.empty()) return invalid_value;
  const std::string bytes = rlx::test::contents(folder.path / "kernels.so");
  const Head head{magic, bytes.size()};
  source->binary.assign(reinterpret_cast<const char*>(&head), sizeof head);
  source->binary += bytes;
  return success;
}
ENTRY(Code, nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(Source* source, std::size_t* bytes) {
  *bytes = source->log.size() + 1;
  return success;
}
ENTRY(Code, nvrtcGetProgramLog, hiprtcGetProgramLog)(Source* source, char* log) {
  std::memcpy(log, source->log.c_str(), source->log.size() + 1);
  return success;
}
ENTRY(Code, nvrtcGetCUBINSize, hiprtcGetCodeSize)(Source* source, std::size_t* bytes) {
  *bytes = source->binary.size();
  return success;
}
ENTRY(Code, nvrtcGetCUBIN, hiprtcGetCode)(Source* source, char* binary) {
  std::memcpy(binary, source->binary.data(), source->binary.size());
  return success;
}
extern "C" [[gnu::visibility("default")]] const char* NAMED(nvrtcGetErrorString, hiprtcGetErrorString)(Code) {
  return "FAKE_ERROR_COMPILATION";
}
