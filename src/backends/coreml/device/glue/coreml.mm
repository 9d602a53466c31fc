// CoreML by its Objective-C interface: what driver.h asks for, and nothing that decides anything. Made on Apple's systems alone, with
// reference counts by the compiler; tests check it against interfaces of their own (tests/metal).
#import <CoreML/CoreML.h>
#import <Foundation/Foundation.h>
#include <sys/sysctl.h>

#include <cstring>

#include "backends/coreml/device/driver.h"

namespace rlx::coreml {
namespace {

std::string text_of(NSString* text) { return text ? std::string(text.UTF8String) : std::string(); }
std::string text_of(NSError* error) { return error ? text_of(error.localizedDescription) : std::string("no reason is given"); }
NSString* string_of(const std::string& text) { return [NSString stringWithUTF8String:text.c_str()]; }
NSURL* url_of(const std::filesystem::path& path) { return [NSURL fileURLWithPath:string_of(path.string())]; }

std::size_t bytes_of(Number number) { return number == Number::f16 ? 2 : 4; }
MLMultiArrayDataType type_of(Number number) {
  switch (number) {
    case Number::f32: return MLMultiArrayDataTypeFloat32;
    case Number::f16: return MLMultiArrayDataTypeFloat16;
    case Number::i32: return MLMultiArrayDataTypeInt32;
  }
}

/// Copies elements of axes from `axis` on between rows that are dense and an array with strides of its own, in elements.
struct Rows {
  std::byte* dense;
  std::byte* strided;
  std::size_t element;
  std::vector<std::int64_t> shape, strides;
  bool to_dense;

  void copy(std::size_t axis = 0, std::int64_t place = 0) {
    if (axis + 1 == shape.size() && strides[axis] == 1) return move(place, static_cast<std::size_t>(shape[axis]));
    if (axis == shape.size()) return move(place, 1);
    for (std::int64_t i = 0; i < shape[axis]; ++i) copy(axis + 1, place + i * strides[axis]);
  }
  void move(std::int64_t place, std::size_t count) {
    std::byte* const there = strided + static_cast<std::size_t>(place) * element;
    std::memcpy(to_dense ? dense : there, to_dense ? there : dense, count * element);
    dense += count * element;
  }
};

std::vector<std::int64_t> numbers_of(NSArray<NSNumber*>* array) {
  std::vector<std::int64_t> numbers;
  for (NSNumber* number in array) numbers.push_back(number.longLongValue);
  return numbers;
}

template <class Byte>
void copy_rows(MLMultiArray* array, const ModelArray<Byte>& feature, std::byte* dense, bool to_dense) {
  const auto copy = [&](void* bytes, NSArray<NSNumber*>* strides) {
    Rows{dense, static_cast<std::byte*>(bytes), bytes_of(feature.number), feature.shape, numbers_of(strides), to_dense}.copy();
  };
  if (to_dense)
    [array getBytesWithHandler:^(const void* bytes, NSInteger) { copy(const_cast<void*>(bytes), array.strides); }];
  else
    [array getMutableBytesWithHandler:^(void* bytes, NSInteger, NSArray<NSNumber*>* strides) { copy(bytes, strides); }];
}

std::string name_of(id<MLComputeDeviceProtocol> device) {
  if ([device isKindOfClass:[MLNeuralEngineComputeDevice class]]) return "Neural Engine";
  return [device isKindOfClass:[MLGPUComputeDevice class]] ? "GPU" : "CPU";
}

API_AVAILABLE(macos(14.4), ios(17.4))
void add_placements(MLComputePlan* plan, NSArray<MLModelStructureProgramOperation*>* operations, std::vector<Placement>& placements) {
  for (MLModelStructureProgramOperation* operation in operations) {
    if (MLComputePlanDeviceUsage* const usage = [plan computeDeviceUsageForMLProgramOperation:operation])
      placements.push_back({text_of(operation.operatorName), name_of(usage.preferredComputeDevice)});
    for (MLModelStructureProgramBlock* block in operation.blocks) add_placements(plan, block.operations, placements);
  }
}

class CoreMlModel : public Model {
 public:
  CoreMlModel(NSURL* compiled, MLModelConfiguration* configuration, MLModel* model)
      : compiled_(compiled), configuration_(configuration), model_(model) {}

  std::string run(std::span<const Given> inputs, std::span<const Wanted> outputs) override {
    @autoreleasepool {
      NSError* error = nil;
      NSMutableDictionary<NSString*, MLFeatureValue*>* const values = [NSMutableDictionary dictionary];
      for (const Given& input : inputs) {
        MLMultiArray* const array = array_of(input, &error);
        if (!array) return text_of(error);
        [values setObject:[MLFeatureValue featureValueWithMultiArray:array] forKey:string_of(input.name)];
      }
      MLDictionaryFeatureProvider* const given = [[MLDictionaryFeatureProvider alloc] initWithDictionary:values error:&error];
      id<MLFeatureProvider> const made = given ? [model_ predictionFromFeatures:given error:&error] : nil;
      if (!made) return text_of(error);
      for (const Wanted& output : outputs)
        if (const std::string wrong = take(output, [made featureValueForName:string_of(output.name)].multiArrayValue); !wrong.empty())
          return wrong;
      return {};
    }
  }

  std::vector<Placement> placements() override {
    std::vector<Placement> found;
    if (@available(macOS 14.4, iOS 17.4, *)) {
      std::vector<Placement>* const placements = &found;
      dispatch_semaphore_t const done = dispatch_semaphore_create(0);
      [MLComputePlan loadContentsOfURL:compiled_
                         configuration:configuration_
                     completionHandler:^(MLComputePlan* plan, NSError*) {
                       NSDictionary<NSString*, MLModelStructureProgramFunction*>* const functions = plan.modelStructure.program.functions;
                       for (NSString* name in functions)
                         add_placements(plan, [functions objectForKey:name].block.operations, *placements);
                       dispatch_semaphore_signal(done);
                     }];
      dispatch_semaphore_wait(done, DISPATCH_TIME_FOREVER);
    }
    return found;
  }

 private:
  static MLMultiArray* array_of(const Given& input, NSError* __autoreleasing* error) {
    NSMutableArray<NSNumber*>* const shape = [NSMutableArray array];
    for (const std::int64_t size : input.shape) [shape addObject:[NSNumber numberWithLongLong:size]];
    MLMultiArray* const array = [[MLMultiArray alloc] initWithShape:shape dataType:type_of(input.number) error:error];
    if (array) copy_rows(array, input, const_cast<std::byte*>(input.bytes.data()), false);
    return array;
  }
  static std::string take(const Wanted& output, MLMultiArray* array) {
    if (!array) return "the model gives no array '" + output.name + "'";
    if (array.dataType != type_of(output.number) || numbers_of(array.shape) != output.shape)
      return "the model gives '" + output.name + "' in another type or shape";
    copy_rows(array, output, output.bytes.data(), true);
    return {};
  }

  NSURL* compiled_;
  MLModelConfiguration* configuration_;
  MLModel* model_;
};

MLComputeUnits units_of(const std::string& units) {
  if (units == "cpu") return MLComputeUnitsCPUOnly;
  if (units == "gpu") return MLComputeUnitsCPUAndGPU;
  if (units == "ane") return MLComputeUnitsCPUAndNeuralEngine;
  return MLComputeUnitsAll;
}

class CoreMl : public Library {
 public:
  CoreMl() {
    constexpr std::size_t most = 128;
    char name[most] = {};
    std::size_t length = sizeof name - 1;
    sysctlbyname("machdep.cpu.brand_string", name, &length, nullptr, 0);
    title = name;
    version = 17, units = {"all", "cpu"};
    if (@available(macOS 15.0, iOS 18.0, *)) version = 18;
    if (@available(macOS 26.0, iOS 26.0, *)) version = 26;
    if (@available(macOS 14.0, iOS 17.0, *))
      for (id<MLComputeDeviceProtocol> device in MLAllComputeDevices()) {
        const std::string unit = name_of(device);
        if (unit == "CPU") continue;
        units.emplace_back(unit == "GPU" ? "gpu" : "ane");
        title += ", " + unit;
      }
  }

  Compiled compile(const std::filesystem::path& package) override {
    @autoreleasepool {
      NSError* error = nil;
      NSURL* const url = [MLModel compileModelAtURL:url_of(package) error:&error];
      if (!url) return {{}, text_of(error)};
      return {text_of(url.path), {}};
    }
  }

  Opened open(const std::filesystem::path& compiled, const std::string& chosen) override {
    @autoreleasepool {
      NSError* error = nil;
      NSURL* const url = url_of(compiled);
      MLModelConfiguration* const configuration = [[MLModelConfiguration alloc] init];
      configuration.computeUnits = units_of(chosen);
      MLModel* const model = [MLModel modelWithContentsOfURL:url configuration:configuration error:&error];
      if (!model) return {nullptr, text_of(error)};
      return {std::make_unique<CoreMlModel>(url, configuration, model), {}};
    }
  }
};

}  // namespace
}  // namespace rlx::coreml

extern "C" __attribute__((visibility("default"))) rlx::coreml::Library* rlx_open_coreml() {
  static rlx::coreml::CoreMl& once = *new rlx::coreml::CoreMl();
  return &once;
}
