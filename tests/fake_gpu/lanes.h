#pragma once

/// Threads of a block that wait for each other, as fibers: one runs until it waits, in an order that a seed makes and that changes all the
/// time. Kernels, which are in libraries of their own, get this.
struct FakeLanes {
  /// All lanes of a block, each by `lane(of)`, behind `enter` with its number. False where some wait for others that never come.
  bool (*run)(void (*lane)(void*), void* of, void (*enter)(unsigned), unsigned lanes, unsigned warp, unsigned seed);
  void (*wait_for_block)();
  void (*wait_for_warp)();
  /// What the lane of that number in the warp gives here.
  unsigned (*exchange)(unsigned given, unsigned from);
  /// Lets others run, for what a lane waits for elsewhere.
  void (*give_way)();
};
extern const FakeLanes fake_lanes;
