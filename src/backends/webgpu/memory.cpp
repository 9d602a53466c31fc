#include "backends/webgpu/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "backends/loaded_kernels.h"
#include "kernel/reach.h"

namespace rlx::webgpu {
namespace {

constexpr std::size_t table_bytes = 1 << 20;  // of the launches that are recorded at a time

/// b1 gets s0 bytes of b0 where s1 is -1, zeros where it is 0. A position makes a whole word, so that none writes beside another's bytes.
KernelText bytes_text() {
  return {.name = "rlx_move_bytes",
          .text = R"(@group(0) @binding(0) var<uniform> s: array<vec4<i32>, 2>;
@group(0) @binding(1) var<storage, read_write> b0: array<u32>;
@group(0) @binding(2) var<storage, read_write> b1: array<u32>;
@compute @workgroup_size(64)
fn rlx_move_bytes(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
                  @builtin(local_invocation_index) lane: u32) {
  let position = i32((group.y * groups.x + group.x) * 64u + lane);
  if (position >= s[0].x) { return; }
  let at = (s[0].z >> 2u) + position;
  var word = b1[at];
  for (var k = 0; k < 4; k++) {
    let i = at * 4 + k - s[0].z;
    if (i < 0 || i >= s[0].w) { continue; }
    let source = s[0].y + i;
    let byte = (b0[source >> 2u] >> (u32(source & 3) * 8u)) & 255u & u32(s[1].x);
    word = (word & ~(255u << (u32(k) * 8u))) | (byte << (u32(k) * 8u));
  }
  b1[at] = word;
}
)",
          .element_bytes = {1, 1}};
}

/// Throws Error where the driver would end loops of the kernel early. Kernels of one text may come of symbols with other bounds.
void check_rounds(const DeviceFacts& facts, const LoadedKernel& kernel, std::span<const std::int64_t> sizes) {
  if (facts.most_rounds == 0) return;
  double rounds = 0;
  for (const auto& [size, share] : kernel.rounds)
    for (const Dim::Term& term : size.terms()) {
      double product = static_cast<double>(term.coefficient) * share;
      for (const auto& symbol : term.symbols) {
        const auto at = std::ranges::find(kernel.symbols, symbol->name) - kernel.symbols.begin();
        product *= static_cast<double>(sizes[static_cast<std::size_t>(at)]);
      }
      rounds += product;
    }
  if (rounds > static_cast<double>(facts.most_rounds))
    fail("{} ({}): the loops of kernel {} take up to {:.0f} rounds, and the driver ends them early (allowed: {}); the CPU takes any number",
         facts.name, facts.title, kernel.name, rounds, facts.most_rounds);
}

bool whole_words(std::int64_t a, std::int64_t b) { return a % 4 == 0 && b % 4 == 0; }

/// Sets the bool that it is given.
void note_done(std::uint32_t /*status*/, Text /*message*/, void* done, void* /*unused*/) { *static_cast<bool*>(done) = true; }

}  // namespace

Memory::Memory(const DeviceFacts& facts) : device_(facts), buffers_(device_), shaders_(device_) {
  const BufferDescriptor descriptor{{}, copy_to | uniform, table_bytes};
  tables_ = device_.driver().DeviceCreateBuffer(device_.handle, &descriptor);
  const KernelText text = bytes_text();
  CompileCounters counters;
  bytes_kernel_ = shaders_.load({&text, 1}, counters).front();
}

Memory::~Memory() {
  end_pass();
  if (encoder_) device_.driver().CommandEncoderRelease(encoder_);  // nobody can read what it would do
  device_.driver().BufferRelease(tables_);
}

std::shared_ptr<std::byte> Memory::allocate(std::int64_t bytes) {
  return {buffers_.take(bytes), [this](std::byte* address) { buffers_.let_go(address); }};
}

CommandEncoder Memory::encoder() {
  end_pass();
  const Label label;
  if (!encoder_) encoder_ = device_.driver().DeviceCreateCommandEncoder(device_.handle, &label);
  return encoder_;
}

ComputePass Memory::pass() {
  const PassDescriptor descriptor{{}, !pass_ && clock_ ? clock_->next() : nullptr};
  if (!pass_) pass_ = device_.driver().CommandEncoderBeginComputePass(encoder(), &descriptor);
  return pass_;
}

void Memory::end_pass() {
  if (!pass_) return;
  const ComputePass pass = std::exchange(pass_, nullptr);
  device_.driver().ComputePassEncoderEnd(pass);
  device_.driver().ComputePassEncoderRelease(pass);
}

/// The queue writes the tables before the commands that read them, and behind those of the submission before. Commands with an error must
/// not get there: wgpu-native ends the process then.
void Memory::submit() {
  end_pass();
  if (!encoder_) return;
  const Driver& driver = device_.driver();
  if (!recorded_.empty()) driver.QueueWriteBuffer(device_.queue, tables_, 0, recorded_.data(), recorded_.size());
  recorded_.clear();
  const Label label;
  const std::shared_ptr<CommandEncoderOf> encoder(std::exchange(encoder_, nullptr), driver.CommandEncoderRelease);
  const std::shared_ptr<CommandBufferOf> commands(driver.CommandEncoderFinish(encoder.get(), &label), driver.CommandBufferRelease);
  device_.check("submitting commands");
  const CommandBuffer submitted = commands.get();
  driver.QueueSubmit(device_.queue, 1, &submitted);
  device_.check("submitting commands");
}

/// Bytes that are no whole words go to a buffer of their own, and from there to their place.
void Memory::upload(std::byte* to, std::span<const std::byte> from) {
  if (from.empty()) return;
  const std::int64_t bytes = std::ssize(from);
  const BufferPlace place = buffers_.find(to, bytes);
  if (!whole_words(place.offset, bytes)) {
    std::vector<std::byte> words(from.begin(), from.end());
    words.resize((from.size() + 3) / 4 * 4);
    const std::shared_ptr<std::byte> beside = allocate(std::ssize(words));
    upload(beside.get(), words);
    const std::lock_guard lock(mutex_);
    return move_bytes(to, beside.get(), bytes, false);
  }
  const std::lock_guard lock(mutex_);
  submit();
  device_.driver().QueueWriteBuffer(device_.queue, place.buffer, static_cast<std::uint64_t>(place.offset), from.data(), from.size());
  device_.check("writing {} bytes", bytes);
}

void Memory::download(std::span<std::byte> to, const std::byte* from) {
  if (to.empty()) return;
  const BufferPlace place = buffers_.find(from, std::ssize(to));
  const auto first = static_cast<std::uint64_t>(place.offset) / 4 * 4, beside = static_cast<std::uint64_t>(place.offset) - first;
  const std::uint64_t words = (beside + to.size() + 3) / 4 * 4;
  const std::lock_guard lock(mutex_);
  read(place.buffer, first, words, [&](const std::byte* bytes) { std::memcpy(to.data(), bytes + beside, to.size()); });
}

/// Both in whole words.
void Memory::read(BufferHandle from, std::uint64_t first, std::uint64_t bytes, FunctionRef<void(const std::byte*)> use) {
  const Driver& driver = device_.driver();
  const BufferDescriptor descriptor{{}, map_read | copy_to, bytes};
  const std::shared_ptr<BufferHandleOf> holder(driver.DeviceCreateBuffer(device_.handle, &descriptor), driver.BufferRelease);
  const BufferHandle staged = holder.get();
  device_.check("taking {} bytes for reading", bytes);
  driver.CommandEncoderCopyBufferToBuffer(encoder(), from, first, staged, 0, bytes);
  submit();
  bool done = false;
  constexpr std::uint64_t for_reading = 1;
  driver.BufferMapAsync(staged, for_reading, 0, bytes, {.function = note_done, .first = &done});
  device_.wait(done);
  const std::string report = device_.take_report();
  const auto* const mapped = report.empty() ? static_cast<const std::byte*>(driver.BufferGetConstMappedRange(staged, 0, bytes)) : nullptr;
  if (mapped) use(mapped);
  driver.BufferUnmap(staged);
  if (!mapped) fail("{} ({}): reading {} bytes: {}", device_.facts.name, device_.facts.title, bytes, report);
}

void Memory::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  record_copy(to, from, bytes);
}

/// Commands copy whole words between different buffers.
void Memory::record_copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == 0) return;
  const BufferPlace target = buffers_.find(to, bytes), source = buffers_.find(from, bytes);
  if (target.buffer == source.buffer || !whole_words(target.offset, source.offset) || bytes % 4 != 0)
    return move_bytes(to, from, bytes, false);
  device_.driver().CommandEncoderCopyBufferToBuffer(encoder(), source.buffer, static_cast<std::uint64_t>(source.offset), target.buffer,
                                                    static_cast<std::uint64_t>(target.offset), static_cast<std::uint64_t>(bytes));
  device_.check("copying {} bytes", bytes);
}

void Memory::clear(std::byte* to, std::int64_t bytes) {
  if (bytes == 0) return;
  const BufferPlace place = buffers_.find(to, bytes);
  const std::lock_guard lock(mutex_);
  if (!whole_words(place.offset, bytes)) return move_bytes(to, to, bytes, true);
  device_.driver().CommandEncoderClearBuffer(encoder(), place.buffer, static_cast<std::uint64_t>(place.offset),
                                             static_cast<std::uint64_t>(bytes));
  device_.check("clearing {} bytes", bytes);
}

void Memory::move_bytes(std::byte* to, const std::byte* from, std::int64_t bytes, bool zeros) {
  std::byte* const buffers[] = {const_cast<std::byte*>(from), to};
  const std::int64_t sizes[] = {bytes, zeros ? 0 : -1};
  const std::int64_t beside = buffers_.find(to, bytes).offset % 4;
  record(*bytes_kernel_, buffers, sizes, (beside + bytes + 3) / 4);
}

std::unique_ptr<DeviceKernels> Memory::load(std::span<const KernelText> texts, const std::filesystem::path& /*cache*/) {
  CompileCounters counted;
  auto kernels = shaders_.load(texts, counted);
  return std::make_unique<LoadedKernels<Memory, LoadedKernel>>(*this, std::move(kernels), std::move(counted));
}

void Memory::finish() {
  const std::lock_guard lock(mutex_);
  submit();
  bool done = false;
  device_.driver().QueueOnSubmittedWorkDone(device_.queue, {.function = note_done, .first = &done});
  device_.wait(done);
  device_.check("waiting for it");
}

double Memory::seconds(FunctionRef<void()> work) {
  if (!device_.has_clock) return DeviceMemory::seconds(work);
  const std::lock_guard timing(timing_mutex_);
  const auto note_in = [&](std::unique_ptr<PassClock> clock) {
    const std::lock_guard lock(mutex_);
    end_pass();
    clock_ = std::move(clock);
  };
  note_in(std::make_unique<PassClock>(device_));
  const std::shared_ptr<void> end(nullptr, [&](void*) { note_in(nullptr); });
  const double host = DeviceMemory::seconds(work);
  const double noted = noted_seconds();
  return noted > 0 ? noted : host;
}

/// 0: no pass was noted.
double Memory::noted_seconds() {
  const std::lock_guard lock(mutex_);
  double seconds = 0;
  if (const BufferHandle times = clock_->resolve(encoder()))
    read(times, 0, clock_->bytes(), [&](const std::byte* bytes) { seconds = clock_->seconds(bytes); });
  return seconds;
}

void Memory::launch(const LoadedKernel& kernel, std::span<std::byte* const> buffers, std::span<const std::int64_t> sizes,
                    std::int64_t positions) {
  const std::lock_guard lock(mutex_);
  record(kernel, buffers, sizes, positions);
}

/// Copies what has no binding of its own behind each other.
std::shared_ptr<std::byte> Memory::gather(const LoadedKernel& kernel, std::vector<std::byte*>& buffers,
                                          std::span<const std::int64_t> sizes) {
  Bindings bindings;
  for (std::size_t i = 0; i < kernel.symbols.size(); ++i) bindings[kernel.symbols[i]] = sizes[i];
  std::vector<std::int64_t> bytes(buffers.size()), offsets(buffers.size());
  std::int64_t end = 0;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (!kernel.gathered[b]) continue;
    bytes[b] = kernel.gathered[b]->evaluate(bindings) * kernel.element_bytes[b];
    offsets[b] = end;
    end += (bytes[b] + 7) / 8 * 8;
  }
  std::shared_ptr<std::byte> together = allocate(end);
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (!kernel.gathered[b]) continue;
    record_copy(together.get() + offsets[b], buffers[b], bytes[b]);
    buffers[b] = together.get() + offsets[b];
  }
  return together;
}

void Memory::record(const LoadedKernel& kernel, std::span<std::byte* const> given, std::span<const std::int64_t> sizes,
                    std::int64_t positions) {
  std::vector<std::byte*> buffers(given.begin(), given.end());
  if (buffers.size() != kernel.element_bytes.size())
    fail_internal("{}: kernel {} takes {} buffers, and gets {}", device_.facts.name, kernel.name, kernel.element_bytes.size(),
                  buffers.size());
  check_rounds(device_.facts, kernel, sizes);
  const std::shared_ptr<std::byte> together = kernel.gathered.empty() ? nullptr : gather(kernel, buffers, sizes);
  std::vector<BufferPlace> places;
  for (const std::byte* buffer : buffers) places.push_back(buffers_.find(buffer));
  const std::size_t table = add_table(kernel, places, sizes, positions);
  std::vector<BindGroupEntry> entries;
  const auto bind = [&](BufferHandle buffer, std::size_t offset, std::size_t bytes) {
    entries.push_back({.binding = static_cast<std::uint32_t>(entries.size()), .buffer = buffer, .offset = offset, .bytes = bytes});
  };
  bind(tables_, table, recorded_.size() - table);
  for (std::size_t b = 0; b < places.size(); ++b)
    if (!together || !kernel.gathered[b]) bind(places[b].buffer, 0, static_cast<std::size_t>(places[b].bytes));
  if (together) {
    const BufferPlace place = buffers_.find(together.get());
    bind(place.buffer, 0, static_cast<std::size_t>(place.bytes));
  }
  const Driver& driver = device_.driver();
  const BindGroupDescriptor descriptor{{}, kernel.layout->group, entries.size(), entries.data()};
  const BindGroup group = driver.DeviceCreateBindGroup(device_.handle, &descriptor);
  device_.check("binding the buffers of kernel {}", kernel.name);
  const std::int64_t most = device_.facts.limits.groups_of_dimension, groups = (positions + wgsl_lanes - 1) / wgsl_lanes;
  const std::int64_t x = std::min(groups, most), y = (groups + x - 1) / x;
  driver.ComputePassEncoderSetPipeline(pass(), kernel.pipeline);
  driver.ComputePassEncoderSetBindGroup(pass(), 0, group, 0, nullptr);
  driver.ComputePassEncoderDispatchWorkgroups(pass(), static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), 1);
  driver.BindGroupRelease(group);
  device_.check("launching kernel {} with {} x {} groups", kernel.name, x, y);
}

/// Where it begins among those that are recorded.
std::size_t Memory::add_table(const LoadedKernel& kernel, const std::vector<BufferPlace>& places, std::span<const std::int64_t> sizes,
                              std::int64_t positions) {
  std::vector<std::int32_t> table;
  const auto add = [&](std::int64_t number) {
    if (std::abs(number) > most_narrow)
      fail("{}: kernel {} counts up to {} (allowed: {})", device_.facts.name, kernel.name, number, most_narrow);
    table.push_back(static_cast<std::int32_t>(number));
  };
  add(positions);
  for (std::size_t b = 0; b < places.size(); ++b) {
    if (places[b].offset % kernel.element_bytes[b] != 0)
      fail_internal("{}: buffer {} of kernel {} begins inside of an element", device_.facts.name, b, kernel.name);
    add(places[b].offset / kernel.element_bytes[b]);
  }
  for (const std::int64_t size : sizes) add(size);
  table.resize((table.size() + 3) / 4 * 4);
  const std::size_t bytes = table.size() * sizeof table[0], alignment = device_.facts.limits.uniform_alignment;
  std::size_t at = (recorded_.size() + alignment - 1) / alignment * alignment;
  if (at + bytes > table_bytes) {
    submit();
    at = 0;
  }
  recorded_.resize(at + bytes);
  std::memcpy(recorded_.data() + at, table.data(), bytes);
  return at;
}

}  // namespace rlx::webgpu
