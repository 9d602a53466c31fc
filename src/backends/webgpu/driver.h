#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

// What is used of webgpu.h, as it stands since version 29 of wgpu-native: fields by their order and width, under names of our own. Nothing
// is linked and no header of a library is read, so that one binary is built and runs without them.
namespace rlx::webgpu {

using Instance = struct InstanceOf*;
using AdapterHandle = struct AdapterOf*;
using DeviceHandle = struct DeviceHandleOf*;
using Queue = struct QueueOf*;
using BufferHandle = struct BufferHandleOf*;
using BindGroup = struct BindGroupOf*;
using BindGroupLayout = struct BindGroupLayoutOf*;
using PipelineLayout = struct PipelineLayoutOf*;
using ShaderModule = struct ShaderModuleOf*;
using ComputePipeline = struct ComputePipelineOf*;
using CommandEncoder = struct CommandEncoderOf*;
using CommandBuffer = struct CommandBufferOf*;
using ComputePass = struct ComputePassOf*;
using QuerySet = struct QuerySetOf*;

struct Chained {
  Chained* next = nullptr;
  std::uint32_t type = 0;
};
constexpr std::uint32_t source_is_wgsl = 2;  // Chained::type

struct Text {
  const char* data = nullptr;
  std::size_t length = SIZE_MAX;  // up to the zero behind it

  Text() = default;
  Text(std::string_view text) : data(text.data()), length(text.size()) {}  // NOLINT(google-explicit-constructor)
  std::string string() const { return !data ? "" : length == SIZE_MAX ? data : std::string(data, length); }
};

struct Limits {
  Chained* next;
  std::uint32_t textures[4], groups[2], bindings_of_group, dynamic[2], sampled[2];
  std::uint32_t storage_buffers, storage_textures, uniform_buffers;
  std::uint64_t uniform_bytes, storage_bytes;
  std::uint32_t uniform_alignment, storage_alignment, vertex_buffers;
  std::uint64_t buffer_bytes;
  std::uint32_t vertices[3], colors[2];
  std::uint32_t shared_bytes, lanes, lanes_by_dimension[3], groups_of_dimension, immediate_bytes;
};
struct AdapterInfo {
  Chained* next;
  Text vendor, architecture, device, description;
  std::uint32_t backend, type, vendor_id, device_id, subgroup_least, subgroup_most;
};
constexpr std::uint32_t adapter_is_cpu = 3;  // AdapterInfo::type

/// A function that is called once something is there, and what it gets behind its own arguments. `mode`: at any time.
template <class Function>
struct Callback {
  Chained* next = nullptr;
  std::uint32_t mode = 3;
  Function function = nullptr;
  void* first = nullptr;
  void* second = nullptr;
};
constexpr std::uint32_t success = 1;  // of all that callbacks get
using AdapterGiven = void (*)(std::uint32_t status, AdapterHandle, Text message, void*, void*);
using DeviceGiven = void (*)(std::uint32_t status, DeviceHandle, Text message, void*, void*);
using DeviceLost = void (*)(const DeviceHandle*, std::uint32_t reason, Text message, void*, void*);
using ErrorSeen = void (*)(const DeviceHandle*, std::uint32_t type, Text message, void*, void*);
using Mapped = void (*)(std::uint32_t status, Text message, void*, void*);
using WorkDone = void (*)(std::uint32_t status, Text message, void*, void*);
struct ErrorCallback {
  Chained* next = nullptr;
  ErrorSeen function = nullptr;
  void* first = nullptr;
  void* second = nullptr;
};

struct AdapterOptions {
  Chained* next;
  std::uint32_t level, power, fallback, backend;
  void* surface;
};
struct EnumerateOptions {
  const Chained* next;
  std::uint32_t backends;
};
constexpr std::uint32_t own_backends = 0b101101;  // of systems' own interfaces, without OpenGL
struct Label {
  Chained* next = nullptr;
  Text label;
};
struct DeviceDescriptor {
  Label label;
  std::size_t features = 0;
  const std::uint32_t* feature = nullptr;
  const Limits* limits = nullptr;
  Label queue;
  Callback<DeviceLost> lost;
  ErrorCallback error;
};
struct BufferDescriptor {
  Label label;
  std::uint64_t usage, bytes;
  std::uint32_t is_mapped = 0;
};
enum BufferUsage : std::uint64_t { map_read = 1, copy_from = 4, copy_to = 8, uniform = 0x40, storage = 0x80, resolved = 0x200 };
struct BindGroupLayoutEntry {
  Chained* next = nullptr;
  std::uint32_t binding = 0;
  std::uint64_t visibility = 4;  // to compute shaders
  std::uint32_t array = 0;
  struct {
    Chained* next = nullptr;
    std::uint32_t type = 0, has_dynamic_offset = 0;
    std::uint64_t least_bytes = 0;
  } buffer;
  struct {
    Chained* next = nullptr;
    std::uint32_t type = 0;
  } sampler;
  struct {
    Chained* next = nullptr;
    std::uint32_t fields[3] = {};
  } texture, storage_texture;
};
enum BufferBinding : std::uint32_t { uniform_binding = 2, storage_binding = 3 };
struct BindGroupLayoutDescriptor {
  Label label;
  std::size_t count;
  const BindGroupLayoutEntry* entries;
};
struct PipelineLayoutDescriptor {
  Label label;
  std::size_t count;
  const BindGroupLayout* layouts;
  std::uint32_t immediate_bytes = 0;
};
struct WgslSource {
  Chained chain;
  Text code;
};
struct PipelineDescriptor {
  Label label;
  PipelineLayout layout;
  struct {
    Chained* next = nullptr;
    ShaderModule module = nullptr;
    Text entry;
    std::size_t count = 0;
    const void* constants = nullptr;
  } compute;
};
struct BindGroupEntry {
  Chained* next = nullptr;
  std::uint32_t binding = 0;
  BufferHandle buffer = nullptr;
  std::uint64_t offset = 0, bytes = 0;
  void* sampler = nullptr;
  void* texture = nullptr;
};
struct BindGroupDescriptor {
  Label label;
  BindGroupLayout layout;
  std::size_t count;
  const BindGroupEntry* entries;
};
constexpr std::uint32_t feature_of_timestamps = 9, queries_of_timestamps = 2;
struct QuerySetDescriptor {
  Label label;
  std::uint32_t type = queries_of_timestamps, count = 0;
};
struct PassTimestamps {  // the places of a set that a pass writes
  Chained* next = nullptr;
  QuerySet queries = nullptr;
  std::uint32_t begin = 0, end = 0;
};
struct PassDescriptor {
  Label label;
  const PassTimestamps* timestamps = nullptr;
};
struct Future {
  std::uint64_t id;
};

/// The functions that are used: of wgpu-native, and of Dawn, which has the same but for the last three.
struct Driver {
  Instance (*CreateInstance)(const void*);
  Future (*InstanceRequestAdapter)(Instance, const AdapterOptions*, Callback<AdapterGiven>);
  void (*InstanceProcessEvents)(Instance);
  std::uint32_t (*AdapterGetInfo)(AdapterHandle, AdapterInfo*);
  void (*AdapterInfoFreeMembers)(AdapterInfo);
  std::uint32_t (*AdapterGetLimits)(AdapterHandle, Limits*);
  std::uint32_t (*AdapterHasFeature)(AdapterHandle, std::uint32_t feature);
  Future (*AdapterRequestDevice)(AdapterHandle, const DeviceDescriptor*, Callback<DeviceGiven>);
  Queue (*DeviceGetQueue)(DeviceHandle);
  BufferHandle (*DeviceCreateBuffer)(DeviceHandle, const BufferDescriptor*);
  BindGroup (*DeviceCreateBindGroup)(DeviceHandle, const BindGroupDescriptor*);
  BindGroupLayout (*DeviceCreateBindGroupLayout)(DeviceHandle, const BindGroupLayoutDescriptor*);
  PipelineLayout (*DeviceCreatePipelineLayout)(DeviceHandle, const PipelineLayoutDescriptor*);
  ShaderModule (*DeviceCreateShaderModule)(DeviceHandle, const Label*);
  ComputePipeline (*DeviceCreateComputePipeline)(DeviceHandle, const PipelineDescriptor*);
  CommandEncoder (*DeviceCreateCommandEncoder)(DeviceHandle, const Label*);
  QuerySet (*DeviceCreateQuerySet)(DeviceHandle, const QuerySetDescriptor*);
  void (*DeviceDestroy)(DeviceHandle);
  ComputePass (*CommandEncoderBeginComputePass)(CommandEncoder, const PassDescriptor*);
  void (*CommandEncoderCopyBufferToBuffer)(CommandEncoder, BufferHandle from, std::uint64_t from_offset, BufferHandle to,
                                           std::uint64_t to_offset, std::uint64_t bytes);
  void (*CommandEncoderClearBuffer)(CommandEncoder, BufferHandle, std::uint64_t offset, std::uint64_t bytes);
  void (*CommandEncoderResolveQuerySet)(CommandEncoder, QuerySet, std::uint32_t first, std::uint32_t count, BufferHandle to,
                                        std::uint64_t offset);
  CommandBuffer (*CommandEncoderFinish)(CommandEncoder, const Label*);
  void (*ComputePassEncoderSetPipeline)(ComputePass, ComputePipeline);
  void (*ComputePassEncoderSetBindGroup)(ComputePass, std::uint32_t group, BindGroup, std::size_t offsets, const std::uint32_t*);
  void (*ComputePassEncoderDispatchWorkgroups)(ComputePass, std::uint32_t x, std::uint32_t y, std::uint32_t z);
  void (*ComputePassEncoderEnd)(ComputePass);
  void (*QueueSubmit)(Queue, std::size_t count, const CommandBuffer*);
  void (*QueueWriteBuffer)(Queue, BufferHandle, std::uint64_t offset, const void*, std::size_t bytes);
  Future (*QueueOnSubmittedWorkDone)(Queue, Callback<WorkDone>);
  Future (*BufferMapAsync)(BufferHandle, std::uint64_t mode, std::size_t offset, std::size_t bytes, Callback<Mapped>);
  const void* (*BufferGetConstMappedRange)(BufferHandle, std::size_t offset, std::size_t bytes);
  void (*BufferUnmap)(BufferHandle);
  void (*InstanceRelease)(Instance);
  void (*AdapterRelease)(AdapterHandle);
  void (*BufferRelease)(BufferHandle);
  void (*BindGroupRelease)(BindGroup);
  void (*BindGroupLayoutRelease)(BindGroupLayout);
  void (*PipelineLayoutRelease)(PipelineLayout);
  void (*ShaderModuleRelease)(ShaderModule);
  void (*ComputePipelineRelease)(ComputePipeline);
  void (*ComputePassEncoderRelease)(ComputePass);
  void (*CommandEncoderRelease)(CommandEncoder);
  void (*CommandBufferRelease)(CommandBuffer);
  void (*QuerySetRelease)(QuerySet);
  void (*QueueRelease)(Queue);
  void (*DeviceRelease)(DeviceHandle);
  std::size_t (*InstanceEnumerateAdapters)(Instance, const EnumerateOptions*, AdapterHandle*);  // null: not there
  std::uint32_t (*DevicePoll)(DeviceHandle, std::uint32_t wait, const void*);                   // likewise
  float (*QueueGetTimestampPeriod)(Queue);  // nanoseconds that a timestamp counts; null: 1
};

/// Opens the first of these files that is there; null, and why in `reason`, where there is none, or where it lacks a function.
std::shared_ptr<const Driver> open_driver(const std::vector<std::string>& files, std::string& reason);
/// Under which names it is installed, or the one that RLX_WGPU names.
std::vector<std::string> driver_files();

}  // namespace rlx::webgpu
