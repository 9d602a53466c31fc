#pragma once
// The part of Apple's Metal that the glue uses, as its documentation declares it: see Foundation/Foundation.h.
#import <Foundation/Foundation.h>

typedef struct {
  NSUInteger width, height, depth;
} MTLSize;
MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth);

typedef enum : NSUInteger { MTLResourceStorageModeShared = 0 } MTLResourceOptions;
typedef NSUInteger MTLResourceUsage;
enum : MTLResourceUsage { MTLResourceUsageRead = 1, MTLResourceUsageWrite = 2 };
typedef enum : NSUInteger { MTLPipelineOptionNone = 0, MTLPipelineOptionFailOnBinaryArchiveMiss = 4 } MTLPipelineOption;
typedef enum : NSUInteger { MTLCommandBufferStatusCompleted = 4, MTLCommandBufferStatusError = 5 } MTLCommandBufferStatus;
typedef enum : long { MTLGPUFamilyMetal3 = 5001 } MTLGPUFamily;

@protocol MTLBuffer
@property(readonly) void* contents;
@property(readonly) unsigned long gpuAddress;
@end
@protocol MTLFunction
@end
@protocol MTLLibrary
- (id<MTLFunction>)newFunctionWithName:(NSString*)name;
@end
@protocol MTLComputePipelineState
@end
@protocol MTLBinaryArchive;

@interface MTLCompileOptions : NSObject
@property(readwrite) BOOL fastMathEnabled;
@end
@interface MTLComputePipelineDescriptor : NSObject
@property(strong) id<MTLFunction> computeFunction;
@property(readwrite) NSUInteger maxTotalThreadsPerThreadgroup;
@property(copy) NSArray<id<MTLBinaryArchive>>* binaryArchives;
@end
@interface MTLBinaryArchiveDescriptor : NSObject
@property(copy) NSURL* url;
@end
@interface MTLComputePipelineReflection : NSObject
@end

@protocol MTLBinaryArchive
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)descriptor error:(NSError* __autoreleasing*)error;
- (BOOL)serializeToURL:(NSURL*)url error:(NSError* __autoreleasing*)error;
@end

@protocol MTLCommandEncoder
- (void)endEncoding;
@end
@protocol MTLComputeCommandEncoder <MTLCommandEncoder>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)useResource:(id<MTLBuffer>)resource usage:(MTLResourceUsage)usage;
- (void)dispatchThreadgroups:(MTLSize)groups threadsPerThreadgroup:(MTLSize)threads;
@end
@protocol MTLBlitCommandEncoder <MTLCommandEncoder>
- (void)copyFromBuffer:(id<MTLBuffer>)source
          sourceOffset:(NSUInteger)source_offset
              toBuffer:(id<MTLBuffer>)destination
     destinationOffset:(NSUInteger)destination_offset
                  size:(NSUInteger)size;
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(unsigned char)value;
@end
@protocol MTLCommandBuffer
@property(readonly) MTLCommandBufferStatus status;
@property(readonly) NSError* error;
- (id<MTLComputeCommandEncoder>)computeCommandEncoder;
- (id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (void)commit;
- (void)waitUntilCompleted;
@end
@protocol MTLCommandQueue
- (id<MTLCommandBuffer>)commandBuffer;
@end

@protocol MTLDevice
@property(readonly) NSString* name;
@property(readonly) unsigned long recommendedMaxWorkingSetSize;
@property(readonly) NSUInteger maxBufferLength;
@property(readonly) BOOL hasUnifiedMemory;
- (BOOL)supportsFamily:(MTLGPUFamily)family;
- (id<MTLCommandQueue>)newCommandQueue;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLBuffer>)newBufferWithBytesNoCopy:(void*)pages
                                   length:(NSUInteger)length
                                  options:(MTLResourceOptions)options
                              deallocator:(void (*)(void* pages, NSUInteger length))deallocator;
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError* __autoreleasing*)error;
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)descriptor error:(NSError* __autoreleasing*)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:(MTLComputePipelineReflection* __autoreleasing*)reflection
                                                               error:(NSError* __autoreleasing*)error;
@end
NSArray<id<MTLDevice>>* MTLCopyAllDevices(void);
