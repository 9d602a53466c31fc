// Metal's runtime by its Objective-C interface: what driver.h asks for, and nothing that decides anything. Made on macOS alone, with
// reference counts by the compiler; tests check it against interfaces of their own (tests/metal).
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include "backends/metal/driver.h"

namespace rlx::metal {
namespace {

std::string text_of(NSString* text) { return text ? std::string(text.UTF8String) : std::string(); }
std::string text_of(NSError* error) { return error ? text_of(error.localizedDescription) : std::string("no reason is given"); }
NSString* string_of(const std::string& text) { return [NSString stringWithUTF8String:text.c_str()]; }

/// What leaves the compiler's counts, and comes back to them.
template <class Object>
void* kept(Object object) {
  return (__bridge_retained void*)object;
}
void let_go_of(void* object) { (void)(__bridge_transfer id)object; }
id<MTLBuffer> buffer(void* memory) { return (__bridge id<MTLBuffer>)memory; }

/// A file of the system's folder for such, which is removed with it.
struct TemporaryFile {
  NSURL* url = [[NSURL fileURLWithPath:NSTemporaryDirectory()] URLByAppendingPathComponent:[NSUUID UUID].UUIDString];
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() { [[NSFileManager defaultManager] removeItemAtURL:url error:nil]; }
};

class MetalGpu : public Gpu {
 public:
  explicit MetalGpu(id<MTLDevice> device) : device_(device), queue_([device newCommandQueue]) {
    title = text_of(device.name);
    version = "macOS " + text_of([NSProcessInfo processInfo].operatingSystemVersionString);
    memory = static_cast<std::int64_t>(device.recommendedMaxWorkingSetSize);
    largest_buffer = static_cast<std::int64_t>(device.maxBufferLength);
  }

  Shared allocate(std::int64_t bytes) override {
    return shared([device_ newBufferWithLength:static_cast<NSUInteger>(bytes) options:MTLResourceStorageModeShared]);
  }
  Shared wrap(std::span<std::byte> pages) override {
    return shared([device_ newBufferWithBytesNoCopy:pages.data()
                                             length:pages.size()
                                            options:MTLResourceStorageModeShared
                                        deallocator:nil]);
  }
  void let_go(void* memory) override { let_go_of(memory); }

  Pipelines compile(const std::string& text, std::span<const std::string> names, const std::string& archive) override {
    @autoreleasepool {
      MTLCompileOptions* const options = [[MTLCompileOptions alloc] init];
      options.fastMathEnabled = NO;
      NSError* error = nil;
      id<MTLLibrary> const library = [device_ newLibraryWithSource:string_of(text) options:options error:&error];
      if (!library) return {{}, {}, text_of(error)};
      Pipelines made;
      if (!archive.empty() && take(made, library, names, archive)) return made;
      made = {};
      make(made, library, names);
      return made;
    }
  }
  void let_go_kernel(void* kernel) override { let_go_of(kernel); }

  void launch(void* kernel, std::span<const std::uint64_t> words, std::span<void* const> memories, std::uint64_t groups,
              std::uint64_t threads) override {
    @autoreleasepool {
      begin();
      if (!computing_) computing_ = [commands_ computeCommandEncoder];
      [computing_ setComputePipelineState:(__bridge id<MTLComputePipelineState>)kernel];
      [computing_ setBytes:words.data() length:words.size_bytes() atIndex:0];
      for (void* memory : memories) [computing_ useResource:buffer(memory) usage:MTLResourceUsageRead | MTLResourceUsageWrite];
      [computing_ dispatchThreadgroups:MTLSizeMake(groups, 1, 1) threadsPerThreadgroup:MTLSizeMake(threads, 1, 1)];
    }
  }
  void copy(void* to, std::int64_t to_offset, void* from, std::int64_t from_offset, std::int64_t bytes) override {
    @autoreleasepool {
      [copying() copyFromBuffer:buffer(from)
                   sourceOffset:static_cast<NSUInteger>(from_offset)
                       toBuffer:buffer(to)
              destinationOffset:static_cast<NSUInteger>(to_offset)
                           size:static_cast<NSUInteger>(bytes)];
    }
  }
  void clear(void* memory, std::int64_t offset, std::int64_t bytes) override {
    @autoreleasepool {
      [copying() fillBuffer:buffer(memory) range:NSMakeRange(static_cast<NSUInteger>(offset), static_cast<NSUInteger>(bytes)) value:0];
    }
  }
  std::string finish() override {
    @autoreleasepool {
      commit();
      std::string failed;
      for (id<MTLCommandBuffer> commands in committed_) {
        [commands waitUntilCompleted];
        if (commands.status == MTLCommandBufferStatusError && failed.empty()) failed = text_of(commands.error);
      }
      [committed_ removeAllObjects];
      return failed;
    }
  }

 private:
  static Shared shared(id<MTLBuffer> made) {
    if (!made) return {};
    return {kept(made), static_cast<std::byte*>(made.contents), made.gpuAddress};
  }

  // -- kernels
  static MTLComputePipelineDescriptor* described(id<MTLLibrary> library, const std::string& name) {
    MTLComputePipelineDescriptor* const descriptor = [[MTLComputePipelineDescriptor alloc] init];
    descriptor.computeFunction = [library newFunctionWithName:string_of(name)];
    descriptor.maxTotalThreadsPerThreadgroup = 256;
    return descriptor;
  }
  id<MTLBinaryArchive> archive_at(NSURL* url) {
    MTLBinaryArchiveDescriptor* const descriptor = [[MTLBinaryArchiveDescriptor alloc] init];
    descriptor.url = url;
    return [device_ newBinaryArchiveWithDescriptor:descriptor error:nil];
  }
  /// False where the archive lacks one of them.
  bool take(Pipelines& made, id<MTLLibrary> library, std::span<const std::string> names, const std::string& archive) {
    const TemporaryFile file;
    if (![[NSData dataWithBytes:archive.data() length:archive.size()] writeToURL:file.url atomically:NO]) return false;
    id<MTLBinaryArchive> const opened = archive_at(file.url);
    if (!opened) return false;
    for (const std::string& name : names) {
      MTLComputePipelineDescriptor* const descriptor = described(library, name);
      descriptor.binaryArchives = @[ opened ];
      id<MTLComputePipelineState> const state =
          [device_ newComputePipelineStateWithDescriptor:descriptor
                                                 options:MTLPipelineOptionFailOnBinaryArchiveMiss
                                              reflection:nil
                                                   error:nil];
      if (!state) break;
      made.handles.push_back(kept(state));
    }
    if (made.handles.size() == names.size()) return true;
    for (void* kernel : made.handles) let_go_of(kernel);
    return false;
  }
  void make(Pipelines& made, id<MTLLibrary> library, std::span<const std::string> names) {
    id<MTLBinaryArchive> const archive = archive_at(nil);
    for (const std::string& name : names) {
      MTLComputePipelineDescriptor* const descriptor = described(library, name);
      NSError* error = nil;
      id<MTLComputePipelineState> const state =
          [device_ newComputePipelineStateWithDescriptor:descriptor options:MTLPipelineOptionNone reflection:nil error:&error];
      if (!state) {
        for (void* kernel : made.handles) let_go_of(kernel);
        made = {{}, {}, text_of(error)};
        return;
      }
      made.handles.push_back(kept(state));
      [archive addComputePipelineFunctionsWithDescriptor:descriptor error:nil];
    }
    const TemporaryFile file;
    if (![archive serializeToURL:file.url error:nil]) return;
    NSData* const data = [NSData dataWithContentsOfURL:file.url];
    made.archive.assign(static_cast<const char*>(data.bytes), data.length);
  }

  // -- the queue: commands are handed over in bundles, so that the GPU begins while more are written
  void begin() {
    constexpr int most = 64;
    if (++written_ > most) commit();
    if (!commands_) commands_ = [queue_ commandBuffer];
    if (copying_) [copying_ endEncoding];
    copying_ = nil;
  }
  id<MTLBlitCommandEncoder> copying() {
    begin();
    if (computing_) [computing_ endEncoding];
    computing_ = nil;
    return copying_ = [commands_ blitCommandEncoder];
  }
  void commit() {
    if (computing_) [computing_ endEncoding];
    if (copying_) [copying_ endEncoding];
    computing_ = nil;
    copying_ = nil;
    written_ = 0;
    if (!commands_) return;
    [commands_ commit];
    [committed_ addObject:commands_];
    commands_ = nil;
  }

  id<MTLDevice> device_;
  id<MTLCommandQueue> queue_;
  id<MTLCommandBuffer> commands_ = nil;
  id<MTLComputeCommandEncoder> computing_ = nil;
  id<MTLBlitCommandEncoder> copying_ = nil;
  NSMutableArray<id<MTLCommandBuffer>>* committed_ = [NSMutableArray array];
  int written_ = 0;
};

/// Kernels get addresses, and hosts share the memory.
Library* opened() {
  auto* const library = new Library;
  for (id<MTLDevice> device in MTLCopyAllDevices())
    if (device.hasUnifiedMemory && [device supportsFamily:MTLGPUFamilyMetal3]) library->gpus.push_back(std::make_unique<MetalGpu>(device));
  if (library->gpus.empty()) library->missing = "no GPU has Metal 3 and the host's memory (needed: macOS 13 and a Mac with Apple silicon)";
  return library;
}

}  // namespace
}  // namespace rlx::metal

extern "C" __attribute__((visibility("default"))) rlx::metal::Library* rlx_open_metal() {
  static rlx::metal::Library& once = *rlx::metal::opened();
  return &once;
}
