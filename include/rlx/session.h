#pragma once
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rlx/array.h"
#include "rlx/calibration.h"
#include "rlx/graph.h"
#include "rlx/precision.h"

namespace rlx {

struct Backend;
struct SessionOptions;

/// What a device was measured to do, in a few seconds.
struct DeviceFigures {
  // At best, by code of its own.
  double flops = 0;                 // of f32, a second; a multiply-add counts as two
  double bytes = 0;                 // read from its memory, a second
  double launch = 0;                // seconds of a launch with nothing to do, behind others
  double upload = 0, download = 0;  // bytes a second between its memory and the host's; 0: they are one
  // By graphs of a few ops, as any other graph is computed: what to expect of one.
  std::map<std::string, double> products;  // operations a second of a large matrix product, by LaunchReport::arithmetic
  double attention = 0;                    // the same of attention
  double arithmetic = 0;                   // the same of elements that are computed from many others of their place, in f32
  double moved = 0;                        // bytes a second of elements that are read and written
  double reduced = 0;                      // bytes a second of rows that are summed
  double step = 0;                         // seconds of a small launch behind others
  double transfer = 0;                     // seconds until a small result is on the host, and its operand was brought; 0: they are one
};

/// What a run of a graph is expected to take on a device.
struct DeviceEstimate {
  std::string device;
  double seconds = 0;  // the sum of those that follow
  double launches = 0, computing = 0, memory = 0, transfers = 0;
  std::string refused;  // why the graph does not run there; empty: it does

  /// The one that takes most: "launches", "compute", "memory" or "transfers".
  std::string_view bound() const;
};

/// Where graphs run: the CPU, and what this machine has drivers for, which are opened at run time. What is said of the CPU is said of the
/// level that a session has by itself, see SessionOptions::cpu_level.
class Device {
 public:
  static Device cpu();
  /// The CPU, then what the drivers offer.
  static std::vector<Device> all();
  /// For each kind of device of which there is none: why, and what to install.
  static std::vector<std::string> missing();
  /// "cpu", "opencl:0", "opencl" for the first of its kind, or "auto". Throws Error for another name: those that are there, and what is
  /// missing.
  static Device named(std::string_view name);
  /// For a session: the device on which the first graph that it compiles is expected to be the fastest, see `estimates`.
  static Device automatic();
  /// That device for a graph, as the first of its estimates. Throws Error where it runs on none.
  static Device best(const Graph& graph);
  /// What a run of the graph is expected to take on each device, the fastest first, in a session with these options. A symbol has the size
  /// that `sizes` gives, else its bound or 128, the smaller. Devices that were never measured are, see `figures`.
  static std::vector<DeviceEstimate> estimates(const Graph& graph, const SessionOptions& options,
                                               const std::map<std::string, std::int64_t>& sizes = {});
  /// That which the variable RLX_DEVICE names; where it is not set, the CPU. Throws Error as `named`.
  static Device usual();

  std::string name() const;
  /// One line: what it is, its driver, units, memory, types.
  std::string description() const;
  /// Whether its products multiply numbers of that type, or widen them to f32 first.
  bool multiplies(DType dtype) const;
  /// Measures it, and keeps what it measured in the folder of SessionOptions::cache_folder for this driver, machine and version of RLX.
  DeviceFigures measure() const;
  /// What is kept there of it; where that is nothing, or was altered, it is measured.
  DeviceFigures figures() const;

  friend bool operator==(const Device&, const Device&) = default;
  /// What brings it, for the library's own use: it outlives the Device.
  explicit Device(const Backend& backend) : backend_(&backend) {}
  const Backend& backend() const { return *backend_; }

 private:
  const Backend* backend_;
};

struct SessionOptions {
  int threads = 0;                       // 0: as many as the process may use when the session is made; at most 4095
  bool claims = true;                    // false: hand-written code is not used; what no kernel computes is left to the ops' own evaluation
  bool fuse = true;                      // false: every node is a kernel of its own
  Precision precision = Precision::f32;  // of matrix products; `explain` lists what became of each
  std::optional<Calibration> calibration = std::nullopt;  // of int8, for graphs with the products that it was made for
  bool tune = false;  // times ways to cut a matrix product into blocks, when it is first run in a size, and keeps the fastest in
                      // cache_folder; results have the same bits
  // Of compiled kernels and timed choices; an empty path: none. Nothing: the variable RLX_CACHE, else rlx in XDG_CACHE_HOME, else
  // ~/.cache/rlx.
  std::optional<std::filesystem::path> cache_folder = std::nullopt;
  // true: a run is an Error, and changes no state, where an index that its integer inputs give (an id of take, gather or embedding, the
  // start of a dynamic slice) lies outside of its axis. It is clamped else. What reads a fill value outside is not checked, nor are
  // indices that the graph computes from anything else, or inside of control flow. It takes a pass over these inputs.
  bool check_indices = false;
  // Instruction sets: portable, avx2, avx512, amx; on ARM portable, neon. Empty: those that the variable RLX_CPU names when the process
  // first asks, else the best that the CPU has.
  std::string cpu_level = {};
  // Products with weights in blocks (GGUF files) round what they are multiplied with to 8 bits; false: they do not, and on the CPU decode
  // the weights to f32 once, which takes the memory of these. On GPUs that is faster.
  bool round_activations = true;
  // On a device: what no kernel computes is computed by the CPU, and its operands and results cross; `explain` says what. On any: arrays of
  // another device are copied, by way of the host. false: both are an Error.
  bool host = true;
  // On MLX: how a run is computed: lazy, eager or compiled; on Metal also fused, with kernels of RLX for work on elements, or measured,
  // where these are faster. Empty: as the variable RLX_MLX_MODE says, else lazy.
  std::string graph_mode = {};
  // The same, compiled: a scan of at most so many steps becomes part of what is compiled; the host drives longer ones.
  std::int64_t unrolled_steps = 0;
};

/// What a session's compiler did so far.
struct CompileCounters {
  std::int64_t kernels_compiled = 0;  // by LLVM
  std::int64_t kernels_from_disk = 0;
  std::int64_t kernels_shared = 0;      // equal to one that was loaded already
  std::int64_t products_timed = 0;      // sizes of products whose blocks were chosen by time; see SessionOptions::tune
  std::int64_t products_from_disk = 0;  // whose choice was found on disk
  std::string cache_error;              // why something could not be kept on disk; empty: no such trouble
};

/// A value handed over by name: an array, or any contiguous range of elements whose shape the graph tells (at most one of its sizes may be
/// a symbol that is not known otherwise). A Feed made from a range is a view of it: the range must live until the call that takes the Feed
/// returns, and no longer.
class Feed {
 public:
  Feed(Array array) : array_(std::move(array)) {}  // NOLINT(google-explicit-constructor): reads as the value
  template <class Range>
    requires requires(const Range& r) { std::span(std::data(r), std::size(r)); }
  Feed(const Range& values)  // NOLINT(google-explicit-constructor)
      : array_(dtype_of<std::remove_cvref_t<decltype(*std::data(values))>>, {static_cast<std::int64_t>(std::size(values))},
               std::as_bytes(std::span(std::data(values), std::size(values))), nullptr),
        flat_(true) {}

  const Array& array() const { return array_; }
  bool flat() const { return flat_; }  // the shape is only an element count

 private:
  Array array_;
  bool flat_ = false;
};

/// Where a result is to be written: a contiguous range of elements, whose size the graph tells. It must live until the run returns.
class Target {
 public:
  template <class Range>
    requires requires(Range& r) { std::span(std::data(r), std::size(r)); }
  Target(Range&& values)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload): reads as the range
      : dtype_(dtype_of<std::remove_cvref_t<decltype(*std::data(values))>>),
        bytes_(std::as_writable_bytes(std::span(std::data(values), std::size(values)))) {}

  /// Elements of any type, such as bf16, for which C++ has none.
  Target(DType dtype, std::span<std::byte> bytes) : dtype_(dtype), bytes_(bytes) {}

  DType dtype() const { return dtype_; }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  DType dtype_;
  std::span<std::byte> bytes_;
};

/// Results of a run by output name, in the order of the graph's outputs.
class Outputs {
 public:
  using Item = std::pair<std::string, Array>;

  explicit Outputs(std::vector<Item> items) : items_(std::move(items)) {}
  /// Throws Error naming the outputs that exist.
  const Array& at(std::string_view name) const&;
  Array at(std::string_view name) && { return std::as_const(*this).at(name); }
  /// In the order of the graph's outputs; i < size().
  const Array& operator[](std::size_t i) const& { return items_[i].second; }
  Array operator[](std::size_t i) && { return std::move(items_[i].second); }
  std::size_t size() const { return items_.size(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }

 private:
  std::vector<Item> items_;
};

/// A run that was asked for. Copies share it; the last one waits for it when it ends.
class PendingRun {
 public:
  explicit PendingRun(std::shared_future<Outputs> results) : results_(std::move(results)) {}
  /// Whether it is done, or has failed: the others do not wait then.
  bool ready() const { return results_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  /// Throws what the run threw.
  void wait() const { results_.get(); }
  /// Waits for them; throws what the run threw.
  const Outputs& results() const { return results_.get(); }

 private:
  std::shared_future<Outputs> results_;
};

/// How a node of the expanded graph is computed.
struct NodeReport {
  std::string text;  // the node as in the text form
  // decomposed, claimed, generated, fused, host, control, view, constant, prepared; native, by the library of a device that takes whole
  // graphs; or precision, of a product
  std::string how;
  // The claim or the kernel that computes it; the bytes that cross to the CPU and back, of a device's node on the host, or why it is there;
  // or the precision, and why it stays f32.
  std::string by;
};

/// One launch of a program, with its cost at given sizes. One that is prepared runs once for all runs: it reads parameters only.
struct LaunchReport {
  std::string name;
  std::string kind;   // kernel, claim, host, control, prepared
  std::string types;  // of what it writes
  std::string layer;  // the names of parameters that it works with, as far as they agree, or lies between: "layers.3.attention"
  std::string ops;    // what it computes: "dot, add, gelu"
  std::string pass;   // forward, backward, or update (behind it), in a graph with a derivative in reverse
  std::string arithmetic = "f32";  // of its multiply-adds: f32, f64, bf16 (sums in f32) or int8 (sums in i32)
  double flops = 0, bytes = 0;
  double seconds = 0;             // measured in a run, where asked for
  std::size_t scratch_bytes = 0;  // the same: what its threads needed beside the arena
  std::string blocks;             // the same, of a product in a session that tunes: how it is cut, and why
};

/// What a thread did in a run, in seconds from its beginning.
struct TraceEvent {
  std::size_t launch = 0;  // its place in the list that `profile` gives
  int thread = 0;          // 0: the one that called
  bool whole = false;      // the launch from its beginning to its end; else the thread's share of one of its parallel loops
  double begin = 0, end = 0;
};

enum class Stage : std::uint8_t { hir, mir, lir, kernels };

/// A compiled graph. Copies share everything. `run` may be called from many threads at a time.
///
/// Numbers: NaN and infinities follow IEEE 754 (max and min: NaN wins, -0 < +0; which zero the max or min over an axis gives is open).
/// Denormal numbers of f32 and f64, and of bf16, which is computed in f32, count as the zero of their sign, as operands and as results:
/// 1e-39f * 1e30f is 0, log(1e-39f) is -inf. Those of f16 keep their value. The reference evaluator computes with all of them.
class Executable {
 public:
  struct State;
  explicit Executable(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// Binds a parameter. An Array that owns its bytes is shared, not copied, and must not change while it is bound: packed copies are kept,
  /// and what is computed from parameters alone. Bind it again after a change. A range, or an Array without an owner, is copied.
  /// Throws Error for an unknown name, a wrong dtype or a wrong shape.
  void set_param(std::string_view name, Feed value);
  /// Binds parameters and replaces states by their names, all of them or none: `set_params(load_safetensors(path).arrays)`.
  /// Throws one Error that lists the names that are no parameter or state, and the parameters that would still have no value; else as
  /// set_param.
  void set_params(const std::map<std::string, Array>& values);
  /// Parameters that are not bound yet, which no run can do without, and states that are still the zeros that they begin as: neither set
  /// nor replaced by a run. In the order of the graph's inputs.
  std::vector<std::string> missing_params() const;
  /// The value of a state input: zeros until it is set or an output of the same name replaced it.
  Array state(std::string_view name) const;
  /// Replaces it; shared or copied, and refused, as by set_param.
  void set_state(std::string_view name, Feed value);
  /// Copies row `from` of a state's first axis to row `to`, where it lies. Throws Error for an unknown name and for rows it does not have.
  void copy_state_row(std::string_view name, std::int64_t from, std::int64_t to);

  /// Runs the graph; `inputs` are read until it returns, and the outputs are the caller's own, but for those that are a state from now on:
  /// they share its bytes and must not be written. On a device with memory of its own they lie there until they are read; see Array. Sizes
  /// of symbols are found from the shapes. Runs of a graph with states wait for each other: each sees the states that the one before left,
  /// and `state` waits for a run, too. A run changes a state where it lies, if it can and if nobody else holds its bytes; an Array that
  /// somebody holds keeps its values. After an error other than of inputs or parameters, states may be changed in part: set them again.
  /// Throws Error for inputs that are missing, unknown or do not fit, and for parameters that are not bound.
  Outputs run(const std::map<std::string, Feed>& inputs) const;
  /// The same; the outputs named in `into` are written there and left out of the result. Throws Error
  /// also for a name that is no output or a state, and for a range of the wrong element type or size, or that overlaps an input, a bound
  /// array or another range.
  Outputs run(const std::map<std::string, Feed>& inputs, const std::map<std::string, Target>& into) const;

  /// Asks for a run and returns at once. What is fed and where results go must live until it is done. Several may be going on; those of a
  /// graph with states run one after another, in the order in which they were asked for.
  PendingRun run_async(std::map<std::string, Feed> inputs, std::map<std::string, Target> into = {}) const;

  /// The program at a stage: as given, as primitives and claims, as launches with the memory plan, or the generated kernels.
  std::string dump(Stage stage) const;
  std::vector<NodeReport> explain() const;
  /// The launches with their cost at the sizes of `inputs`; each is timed `repeats` times (0: not timed), the minimum counts.
  std::vector<LaunchReport> profile(const std::map<std::string, Feed>& inputs, int repeats) const;
  /// The timeline of the fastest of `repeats` runs: its launches, then what each thread did in their loops. Launches that are prepared are
  /// no part of it.
  std::vector<TraceEvent> trace(const std::map<std::string, Feed>& inputs, int repeats) const;
  /// Bytes of the arena at the bounds of the symbols: what a run computes on the way, without what is computed once from parameters.
  std::int64_t arena_bytes() const;
  /// The most of them that hold values at one time: no arena could be smaller.
  std::int64_t live_bytes() const;
  /// Gives scratch memory that no run is using back to the system; the next run reserves it again.
  void trim() const;

 private:
  friend struct ProgramFile;  // rlx/program_file.h
  std::shared_ptr<State> state_;
};

/// A device with its threads and its compiler. Copies share everything.
class Session {
 public:
  struct State;
  /// Throws Error for a number of threads outside 0..4095 (0: as many CPUs as the process may use), for a calibration beside a precision
  /// other than int8, and where cpu_level or RLX_CPU names what the CPU does not have.
  explicit Session(Device device = Device::usual(), SessionOptions options = {});
  /// Throws Error for a graph without outputs, for an output that is named as a state but has another type, when a node cannot run on
  /// the device, and where the session's calibration is of other products than the graph's.
  Executable compile(const Graph& graph) const;
  CompileCounters counters() const;
  /// Of Device::automatic: itself, until a graph was compiled.
  const Device& device() const;
  /// Of one on Device::automatic: why it is that device; empty before a graph was compiled, and of others.
  std::vector<DeviceEstimate> estimates() const;
  int threads() const;
  Precision precision() const;
  bool rounds_activations() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace rlx
