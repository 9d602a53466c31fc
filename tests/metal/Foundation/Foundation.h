#pragma once
// The part of Apple's Foundation that the glues to Metal and CoreML use, as its documentation declares it: their syntax is checked against
// this where there is no Mac.
#include <cstddef>

#define nil nullptr
#define YES ((BOOL)1)
#define NO ((BOOL)0)
typedef bool BOOL;
typedef unsigned long NSUInteger;
typedef long NSInteger;
typedef struct {
  NSUInteger location, length;
} NSRange;
NSRange NSMakeRange(NSUInteger location, NSUInteger length);
typedef struct {
  unsigned long state;
  __unsafe_unretained id* itemsPtr;
  unsigned long* mutationsPtr;
  unsigned long extra[5];
} NSFastEnumerationState;

__attribute__((objc_root_class))
@interface NSObject
+ (instancetype)alloc;
- (instancetype)init;
+ (Class)class;
@end
@protocol NSObject
- (BOOL)isKindOfClass:(Class)type;
@end

@interface NSString : NSObject
@property(readonly) const char* UTF8String;
+ (instancetype)stringWithUTF8String:(const char*)text;
@end
@interface NSError : NSObject
@property(readonly) NSString* localizedDescription;
@end
@interface NSURL : NSObject
+ (NSURL*)fileURLWithPath:(NSString*)path;
- (NSURL*)URLByAppendingPathComponent:(NSString*)component;
@property(readonly, copy) NSString* path;
@end
@interface NSUUID : NSObject
@property(readonly) NSString* UUIDString;
+ (instancetype)UUID;
@end
@interface NSData : NSObject
@property(readonly) NSUInteger length;
@property(readonly) const void* bytes;
+ (instancetype)dataWithBytes:(const void*)bytes length:(NSUInteger)length;
+ (instancetype)dataWithContentsOfURL:(NSURL*)url;
- (BOOL)writeToURL:(NSURL*)url atomically:(BOOL)atomically;
@end
@interface NSFileManager : NSObject
@property(class, readonly) NSFileManager* defaultManager;
- (BOOL)removeItemAtURL:(NSURL*)url error:(NSError* __autoreleasing*)error;
@end
@interface NSProcessInfo : NSObject
@property(class, readonly) NSProcessInfo* processInfo;
@property(readonly) NSString* operatingSystemVersionString;
@end
@interface NSArray<Element> : NSObject
+ (instancetype)array;
+ (instancetype)arrayWithObjects:(const Element __unsafe_unretained[])objects count:(NSUInteger)count;
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(Element __unsafe_unretained[])buffer
                                    count:(NSUInteger)count;
@end
@interface NSMutableArray<Element> : NSArray <Element>
- (void)addObject:(Element)object;
- (void)removeAllObjects;
@end
@interface NSNumber : NSObject
@property(readonly) long long longLongValue;
+ (instancetype)numberWithLongLong:(long long)value;
@end
@interface NSDictionary<__covariant Key, __covariant Element> : NSObject
+ (instancetype)dictionary;
- (Element)objectForKey:(Key)key;
- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state objects:(Key __unsafe_unretained[])buffer count:(NSUInteger)count;
@end
@interface NSMutableDictionary<Key, Element> : NSDictionary <Key, Element>
- (void)setObject:(Element)object forKey:(Key)key;
@end

NSString* NSTemporaryDirectory(void);

typedef struct dispatch_semaphore* dispatch_semaphore_t;
#define DISPATCH_TIME_FOREVER (~0ull)
dispatch_semaphore_t dispatch_semaphore_create(long value);
long dispatch_semaphore_wait(dispatch_semaphore_t semaphore, unsigned long long timeout);
long dispatch_semaphore_signal(dispatch_semaphore_t semaphore);

#define API_AVAILABLE(...)
