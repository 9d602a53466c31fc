#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rlx::gpu {

/// Whose GPUs. CUDA's driver and HIP have the same functions under names of their own, with the same arguments, as have their compilers
/// NVRTC and hipRTC. Nothing is linked and no header of theirs is read, so that one binary is built and runs without them.
enum class Vendor : std::uint8_t { cuda, rocm };

using Code = int;  // 0: success
using Context = struct ContextOf*;
using Stream = struct StreamOf*;
using ModuleHandle = struct ModuleOf*;
using FunctionHandle = struct FunctionOf*;
using Pool = struct PoolOf*;
using SourceText = struct SourceOf*;
using DriverEvent = struct EventOf*;
using DriverGraph = struct GraphOf*;
using DriverNode = struct GraphNodeOf*;
using DriverInstance = struct GraphInstanceOf*;

/// What a node of a graph launches, as each vendor lays it out.
struct CudaKernelNode {
  FunctionHandle function;
  unsigned blocks[3], threads[3], shared_bytes;
  void** arguments;
  void** extra;
};
struct RocmKernelNode {
  unsigned threads[3];
  void** extra;
  FunctionHandle function;
  unsigned blocks[3];
  void** arguments;
  unsigned shared_bytes;
};

/// What is asked of a device, by the vendors' numbers.
struct Attributes {
  int units, major, minor, pools;
};

/// The functions of a driver that are used: CUDA 11.2 and HIP of ROCm 5.6 have them all.
struct Driver {
  Vendor vendor;
  Attributes attributes;
  Code (*Init)(unsigned flags);
  Code (*GetVersion)(int* version);
  Code (*GetDeviceCount)(int* count);
  Code (*GetDevice)(int* device, int number);
  Code (*GetName)(char* name, int bytes, int device);
  Code (*GetTotalMemory)(std::size_t* bytes, int device);
  Code (*GetAttribute)(int* value, int attribute, int device);
  Code (*RetainContext)(Context* context, int device);
  Code (*ReleaseContext)(int device);
  Code (*SetCurrent)(Context context);
  Code (*GetPool)(Pool* pool, int device);
  Code (*SetPoolAttribute)(Pool pool, int attribute, void* value);
  Code (*GetFreeMemory)(std::size_t* free, std::size_t* total);
  Code (*Allocate)(std::byte** address, std::size_t bytes, Stream stream);
  Code (*Free)(std::byte* address, Stream stream);
  Code (*AllocateOnHost)(void** memory, std::size_t bytes, unsigned flags);
  Code (*FreeOnHost)(void* memory);
  Code (*Upload)(std::byte* to, const void* from, std::size_t bytes, Stream stream);
  Code (*Download)(void* to, const std::byte* from, std::size_t bytes, Stream stream);
  Code (*Copy)(std::byte* to, const std::byte* from, std::size_t bytes, Stream stream);
  Code (*Fill)(std::byte* to, unsigned char value, std::size_t bytes, Stream stream);
  /// Places are contexts of CUDA and device numbers of HIP.
  Code (*CopyFromPeer)(std::byte* to, std::intptr_t here, const std::byte* from, std::intptr_t there, std::size_t bytes, Stream stream);
  Code (*CreateStream)(Stream* stream, unsigned flags);
  Code (*DestroyStream)(Stream stream);
  Code (*Synchronize)(Stream stream);
  Code (*WaitFor)(Stream stream, DriverEvent event, unsigned flags);
  Code (*CreateEvent)(DriverEvent* event, unsigned flags);
  Code (*DestroyEvent)(DriverEvent event);
  Code (*RecordEvent)(DriverEvent event, Stream stream);
  Code (*AwaitEvent)(DriverEvent event);
  Code (*ElapsedTime)(float* milliseconds, DriverEvent from, DriverEvent to);
  Code (*LoadModule)(ModuleHandle* module, const void* image);
  Code (*UnloadModule)(ModuleHandle module);
  Code (*GetFunction)(FunctionHandle* function, ModuleHandle module, const char* name);
  Code (*SetFunctionAttribute)(FunctionHandle function, int attribute, int value);
  Code (*Launch)(FunctionHandle function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y, unsigned block_z,
                 unsigned shared_bytes, Stream stream, void** arguments, void** extra);
  /// Makes 128 bytes that describe boxes. Null where the driver, CUDA's before 12 or HIP's, has it not.
  Code (*EncodeBoxes)(void* map, int type, unsigned rank, const std::byte* address, const std::uint64_t* extents,
                      const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* steps, int interleave, int turned,
                      int cached, int fill);
  Code (*CreateGraph)(DriverGraph* graph, unsigned flags);
  Code (*DestroyGraph)(DriverGraph graph);
  Code (*AddKernelNode)(DriverNode* node, DriverGraph graph, const DriverNode* after, std::size_t count, const void* kernel_node);
  Code (*Instantiate)(DriverInstance* instance, DriverGraph graph, DriverNode* wrong, char* log, std::size_t log_bytes);
  Code (*DestroyInstance)(DriverInstance instance);
  Code (*SetKernelNode)(DriverInstance instance, DriverNode node, const void* kernel_node);
  Code (*LaunchGraph)(DriverInstance instance, Stream stream);
  Code (*GetErrorName)(Code code, const char** name);
  Code (*GetErrorText)(Code code, const char** text);

  /// "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"
  std::string code_name(Code code) const;
};

/// The functions of a compiler that are used.
struct Compiler {
  Vendor vendor;
  Code (*GetVersion)(int* major, int* minor);
  Code (*Create)(SourceText* source, const char* text, const char* name, int headers, const char* const* header_texts,
                 const char* const* header_names);
  Code (*Destroy)(SourceText* source);
  Code (*Compile)(SourceText source, int count, const char* const* options);
  Code (*GetLogBytes)(SourceText source, std::size_t* bytes);
  Code (*GetLog)(SourceText source, char* log);
  Code (*GetBinaryBytes)(SourceText source, std::size_t* bytes);
  Code (*GetBinary)(SourceText source, char* binary);
  const char* (*GetErrorText)(Code code);
};

/// Open the first of these files that is there; null, and why in `reason`, where there is none, or where it lacks a function.
std::shared_ptr<const Driver> open_driver(Vendor vendor, const std::vector<std::string>& files, std::string& reason);
std::shared_ptr<const Compiler> open_compiler(Vendor vendor, const std::vector<std::string>& files, std::string& reason);
/// Under which names they are installed. A compiler no newer than the driver is looked for first.
std::vector<std::string> driver_files(Vendor vendor);
std::vector<std::string> compiler_files(Vendor vendor, int driver_version);

}  // namespace rlx::gpu
