#pragma once
// The part of Apple's CoreML that the glue uses, as its documentation declares it: see Foundation/Foundation.h.
#import <Foundation/Foundation.h>

typedef enum : NSInteger {
  MLMultiArrayDataTypeFloat16 = 0x10000 | 16,
  MLMultiArrayDataTypeFloat32 = 0x10000 | 32,
  MLMultiArrayDataTypeInt32 = 0x20000 | 32
} MLMultiArrayDataType;
typedef enum : NSInteger {
  MLComputeUnitsCPUOnly = 0,
  MLComputeUnitsCPUAndGPU = 1,
  MLComputeUnitsAll = 2,
  MLComputeUnitsCPUAndNeuralEngine = 3
} MLComputeUnits;

@interface MLMultiArray : NSObject
@property(readonly) MLMultiArrayDataType dataType;
@property(readonly) NSArray<NSNumber*>* shape;
@property(readonly) NSArray<NSNumber*>* strides;
- (instancetype)initWithShape:(NSArray<NSNumber*>*)shape dataType:(MLMultiArrayDataType)type error:(NSError* __autoreleasing*)error;
- (void)getBytesWithHandler:(void (^)(const void* bytes, NSInteger size))handler;
- (void)getMutableBytesWithHandler:(void (^)(void* bytes, NSInteger size, NSArray<NSNumber*>* strides))handler;
@end
@interface MLFeatureValue : NSObject
@property(readonly) MLMultiArray* multiArrayValue;
+ (instancetype)featureValueWithMultiArray:(MLMultiArray*)value;
@end
@protocol MLFeatureProvider
- (MLFeatureValue*)featureValueForName:(NSString*)name;
@end
@interface MLDictionaryFeatureProvider : NSObject <MLFeatureProvider>
- (instancetype)initWithDictionary:(NSDictionary<NSString*, id>*)dictionary error:(NSError* __autoreleasing*)error;
@end
@interface MLModelConfiguration : NSObject
@property MLComputeUnits computeUnits;
@end
@interface MLModel : NSObject
+ (NSURL*)compileModelAtURL:(NSURL*)url error:(NSError* __autoreleasing*)error;
+ (instancetype)modelWithContentsOfURL:(NSURL*)url
                         configuration:(MLModelConfiguration*)configuration
                                 error:(NSError* __autoreleasing*)error;
- (id<MLFeatureProvider>)predictionFromFeatures:(id<MLFeatureProvider>)input error:(NSError* __autoreleasing*)error;
@end

@protocol MLComputeDeviceProtocol <NSObject>
@end
@interface MLGPUComputeDevice : NSObject <MLComputeDeviceProtocol>
@end
@interface MLNeuralEngineComputeDevice : NSObject <MLComputeDeviceProtocol>
@end
NSArray<id<MLComputeDeviceProtocol>>* MLAllComputeDevices(void);

@class MLModelStructureProgramOperation;
@interface MLModelStructureProgramBlock : NSObject
@property(readonly) NSArray<MLModelStructureProgramOperation*>* operations;
@end
@interface MLModelStructureProgramOperation : NSObject
@property(readonly) NSString* operatorName;
@property(readonly) NSArray<MLModelStructureProgramBlock*>* blocks;
@end
@interface MLModelStructureProgramFunction : NSObject
@property(readonly) MLModelStructureProgramBlock* block;
@end
@interface MLModelStructureProgram : NSObject
@property(readonly) NSDictionary<NSString*, MLModelStructureProgramFunction*>* functions;
@end
@interface MLModelStructure : NSObject
@property(readonly) MLModelStructureProgram* program;
@end
@interface MLComputePlanDeviceUsage : NSObject
@property(readonly) id<MLComputeDeviceProtocol> preferredComputeDevice;
@end
@interface MLComputePlan : NSObject
@property(readonly) MLModelStructure* modelStructure;
+ (void)loadContentsOfURL:(NSURL*)url
            configuration:(MLModelConfiguration*)configuration
        completionHandler:(void (^)(MLComputePlan* plan, NSError* error))handler;
- (MLComputePlanDeviceUsage*)computeDeviceUsageForMLProgramOperation:(MLModelStructureProgramOperation*)operation;
@end
