// Fibers with a switch of our own, as that of the system is a system call each way. Sanitizers are told of each switch, and ThreadSanitizer
// that lanes run side by side but for where they wait: this file itself must be compiled without it.
#include "fake_gpu/lanes.h"

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

// None of them is there without its sanitizer.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** kept, const void* bottom, std::size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* kept, const void** bottom, std::size_t* bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* begin, std::size_t bytes);
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void* key);
[[gnu::weak]] void __tsan_release(void* key);
}

#if defined(__x86_64__)
/// Goes on where `to` stopped, and leaves in `stopped` where to go on here. A jump, as a return to elsewhere is predicted wrongly.
extern "C" [[gnu::visibility("hidden")]] void fake_gpu_switch(void** stopped, void* to);
asm(R"(
.text
.local fake_gpu_switch
.type fake_gpu_switch,@function
fake_gpu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
.size fake_gpu_switch,.-fake_gpu_switch
)");
#else
#include <ucontext.h>
#endif

namespace {

constexpr unsigned most_lanes = 1024;
constexpr std::size_t stack_bytes = 512 << 10;  // rows that a lane keeps are on it; pages are taken when they are written

#if defined(__x86_64__)
struct Context {
  void* stopped = nullptr;
  void start(char* stack, void (*body)()) {
    void** top = reinterpret_cast<void**>(stack + stack_bytes);
    *--top = nullptr;
    *--top = reinterpret_cast<void*>(body);
    constexpr int saved = 6;
    stopped = top - saved;
  }
  void switch_to(Context& other) { fake_gpu_switch(&stopped, other.stopped); }
};
#else
struct Context {
  ucontext_t stopped;
  void start(char* stack, void (*body)()) {
    getcontext(&stopped);
    stopped.uc_stack.ss_sp = stack;
    stopped.uc_stack.ss_size = stack_bytes;
    makecontext(&stopped, body, 0);
  }
  void switch_to(Context& other) { swapcontext(&stopped, &other.stopped); }
};
#endif

/// A context, and what sanitizers know of it.
struct Fiber {
  Context context;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* thread = nullptr;
  void switch_to(Fiber& other, bool for_ever) {
    void* kept = nullptr;
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(for_ever ? nullptr : &kept, other.bottom, other.bytes);
    constexpr unsigned side_by_side = 1;
    if (__tsan_switch_to_fiber) __tsan_switch_to_fiber(other.thread, side_by_side);
    context.switch_to(other.context);
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(kept, nullptr, nullptr);
  }
};

void release(void* key) {
  if (__tsan_release) __tsan_release(key);
}
void acquire(void* key) {
  if (__tsan_acquire) __tsan_acquire(key);
}

/// Where lanes wait for each other.
struct Meeting {
  unsigned size = 0, arrived = 0, times = 0;
};
struct Lane {
  Fiber fiber;
  bool is_done = true;
  const Meeting* at = nullptr;  // it waits there until this changes
  unsigned times = 0;
  unsigned exchanges = 0;
};

struct Block {
  std::array<Lane, most_lanes> lanes;
  std::array<std::array<unsigned, most_lanes>, 2> given{};
  Meeting all;
  std::array<Meeting, most_lanes> warps;
  Fiber scheduler;
  unsigned size = 0, warp = 1, current = 0;
  void (*lane)(void*) = nullptr;
  void* of = nullptr;
} block;
char begins, ends;  // keys of ThreadSanitizer

char* stack_of(unsigned lane) {
  static char* const stacks = [] {
    void* memory = mmap(nullptr, most_lanes * stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::perror("fake GPU: stacks"), std::abort();
    return static_cast<char*>(memory);
  }();
  return stacks + lane * stack_bytes;
}

void body() {
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(nullptr, &block.scheduler.bottom, &block.scheduler.bytes);
  acquire(&begins);
  block.lane(block.of);
  release(&ends);
  Lane& lane = block.lanes[block.current];
  lane.is_done = true;
  lane.fiber.switch_to(block.scheduler, true);
}

void start(unsigned number) {
  Lane& lane = block.lanes[number];
  char* const stack = stack_of(number);
  if (__tsan_create_fiber && !lane.fiber.thread) lane.fiber.thread = __tsan_create_fiber(0);
  lane.fiber.bottom = stack;
  lane.fiber.bytes = stack_bytes;
  lane.fiber.context.start(stack, body);
  lane.is_done = false;
  lane.at = nullptr;
  lane.exchanges = 0;
}

void wait_at(Meeting& meeting) {
  Lane& lane = block.lanes[block.current];
  release(&meeting);
  lane.at = &meeting;
  lane.times = meeting.times;
  if (++meeting.arrived == meeting.size) {
    meeting.arrived = 0;
    ++meeting.times;
  }
  lane.fiber.switch_to(block.scheduler, false);
  acquire(&meeting);
}
void wait_for_block() { wait_at(block.all); }
void wait_for_warp() { wait_at(block.warps[block.current / block.warp]); }

/// One wait is enough: who gives the next number writes it elsewhere, and the one after that only when all have read this.
unsigned exchange(unsigned given, unsigned from) {
  const unsigned me = block.current;
  auto& places = block.given[block.lanes[me].exchanges++ % 2];
  places[me] = given;
  wait_for_warp();
  return places[me - me % block.warp + from % block.warp];
}

void give_way() {
  Lane& lane = block.lanes[block.current];
  lane.at = nullptr;
  lane.fiber.switch_to(block.scheduler, false);
}

unsigned next_random(unsigned& seed) {
  seed = seed * 1664525U + 1013904223U;
  return seed >> 8;
}

/// Every lane that can runs once. Whether any did.
bool pass(void (*enter)(unsigned), unsigned& seed) {
  constexpr std::array<unsigned, 8> primes{1031, 1033, 1039, 1049, 1051, 1061, 1063, 1069};  // beyond all numbers of lanes
  const unsigned prime = primes[next_random(seed) % primes.size()], first = next_random(seed) % block.size;
  bool any = false;
  for (unsigned i = 0; i < block.size; ++i) {
    const unsigned number = (i * prime + first) % block.size;
    Lane& lane = block.lanes[number];
    if (lane.is_done || (lane.at && lane.at->times == lane.times)) continue;
    any = true;
    block.current = number;
    enter(number);
    block.scheduler.switch_to(lane.fiber, false);
  }
  return any;
}

bool run(void (*lane)(void*), void* of, void (*enter)(unsigned), unsigned lanes, unsigned warp, unsigned seed) {
  block.size = lanes;
  block.warp = warp;
  block.lane = lane;
  block.of = of;
  block.all = {lanes, 0, 0};
  for (unsigned first = 0; first < lanes; first += warp) block.warps[first / warp] = {lanes - first < warp ? lanes - first : warp, 0, 0};
  if (__tsan_get_current_fiber) block.scheduler.thread = __tsan_get_current_fiber();
  for (unsigned i = 0; i < lanes; ++i) start(i);
  release(&begins);
  while (pass(enter, seed)) {
  }
  acquire(&ends);
  unsigned waiting = 0, in_warp = 0;
  for (unsigned i = 0; i < lanes; ++i) {
    if (block.lanes[i].is_done) continue;
    ++waiting;
    in_warp += block.lanes[i].at != &block.all;
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(stack_of(i), stack_bytes);
  }
  if (waiting > 0) std::fprintf(stderr, "fake GPU: %u of %u lanes wait for ever, %u of them for their warp\n", waiting, lanes, in_warp);
  return waiting == 0;
}

}  // namespace

const FakeLanes fake_lanes{run, wait_for_block, wait_for_warp, exchange, give_way};
