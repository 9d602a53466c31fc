// Spectra of signals that change: the transform of windowed frames and its inverse, mel scales, and the peaks of Welch's estimate.
#include <algorithm>
#include <cmath>

#include "ir/sources.h"
#include "ops/wide.h"

namespace rlx {
namespace {

using In = std::span<const Value>;

/// How a signal is cut into frames: the attributes that both directions share.
struct Frames {
  static constexpr OpKind kind = OpKind::composite;
  std::int64_t n_fft = 1, hop = 1, win_length = 1;
  bool center = true, normalized = false, onesided = true, has_window = false;

  void check(std::string_view op, In x) const {
    detail::check_arity(op, 1u + has_window, x.size());
    constexpr std::int64_t most = std::int64_t{1} << 31;
    if (n_fft < 1 || n_fft > most || hop < 1 || hop > most || win_length < 1 || win_length > n_fft)
      fail("rlx.{}: n_fft {}, hop {}, win_length {} (allowed: 1 to {}, win_length at most n_fft)", op, n_fft, hop, win_length, most);
    if (has_window && (!is_float(x[1].dtype()) || !(x[1].shape() == Dims{win_length})))
      fail("rlx.{}: the window is {} (allowed: floats of shape [{}])", op, x[1].type().to_string(), win_length);
  }
  /// The window for a whole frame, with zeros on both sides where it is shorter; of ones without an operand.
  Value window_of(In x, DType type) const {
    const std::int64_t left = (n_fft - win_length) / 2;
    return pad(has_window ? cast(x[1], type) : full(x[0], {win_length}, 1, type), {left}, {n_fft - win_length - left});
  }
  double scale() const { return normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1; }

  /// How many steps of a hop a frame touches: cut into such pieces, an element lies in no more frames than that, not in n_fft.
  std::int64_t pieces() const { return (n_fft + hop - 1) / hop; }
  /// x (..., length) as frames (..., t, n_fft).
  Value cut(Value x) const {
    const std::int64_t length = x.dim(-1).value(), count = (length - n_fft) / hop + 1, used = (count + pieces() - 1) * hop;
    const Value parts = reshape(longer(x, used - length), with_last(x, {used / hop, hop}));
    const Value frames = window(parts, x.rank() - 1, pieces());  // (..., t, pieces, hop)
    return slice_axis(reshape(frames, with_last(x, {count, pieces() * hop})), -1, 0, n_fft);
  }

 private:
  /// x with so many zeros behind, or with fewer elements.
  static Value longer(Value x, std::int64_t by) {
    Dims behind(x.shape().size(), 0);
    behind.back() = by;
    return pad(x, Dims(behind.size(), 0), behind);
  }
  static Dims with_last(Value x, const Dims& last) {
    Dims shape(x.shape().begin(), x.shape().end() - 1);
    shape.insert(shape.end(), last.begin(), last.end());
    return shape;
  }
};

DType part_of(Value z) { return z.dtype() == c128 || z.dtype() == f64 ? f64 : f32; }

Value times(Value x, double factor) { return factor == 1 ? x : x * factor; }

struct Stft : Frames {
  static constexpr std::string_view name = "stft";
  static constexpr std::string_view formula =
      "y[..., k, t] = sum over j of window[j] * x[..., t hop + j] * e^(-2 pi i j k / n_fft), x mirrored by n_fft / 2 on both sides with "
      "`center`; divided by sqrt(n_fft) with `normalized`, and only k <= n_fft / 2 with `onesided`";
  static auto fields() {
    return Fields<&Frames::n_fft, &Frames::hop, &Frames::win_length, &Frames::center, &Frames::normalized, &Frames::onesided,
                  &Frames::has_window>{};
  }
  static void check_signal(const Stft& op, Value x) {
    if (x.rank() < 1 || !(x.dtype() == f32 || x.dtype() == f64 || (is_complex(x.dtype()) && !op.onesided)))
      fail("rlx.stft: {} (allowed: f32 or f64 [..., length], or complex without onesided)", x.type().to_string());
    const std::int64_t least = op.center ? op.n_fft / 2 + 1 : op.n_fft;
    if (!(x.dim(-1) - least).known_non_negative())
      fail("rlx.stft: {} is too short for n_fft {} (allowed: {} samples or more)", x.type().to_string(), op.n_fft, least);
  }
  static Value mirrored(const Stft& op, Value x) {
    Dims around(x.shape().size(), 0);
    around.back() = op.n_fft / 2;
    return op.center ? pad_mode(x, around, around, PadMode::reflect) : x;
  }
  static Value body(const Stft& op, In x) {
    op.check(name, x);
    check_signal(op, x[0]);
    Value frames = op.cut(mirrored(op, x[0]));  // (..., t, j)
    if (op.has_window || op.win_length < op.n_fft) frames = frames * op.window_of(x, part_of(frames));
    if (!op.onesided && !is_complex(frames.dtype())) frames = complex(frames, zeros_like(frames));
    return move_axis(times(op.onesided ? rfft(frames) : fft(frames), op.scale()), -1, -2);
  }
  static std::vector<Sample> samples() {
    return {{{{{f32, {2, 11}}}, {{f32, {8}}, 0.1, 1}}, attrs_of(Stft{{8, 3, 8, true, false, true, true}}), 1e-6},
            {{{{f64, {13}}}, {{f64, {4}}, 0.1, 1}}, attrs_of(Stft{{7, 2, 4, false, true, true, true}}), 1e-6},
            {{{{f32, {9}}}}, attrs_of(Stft{{6, 2, 6, true, false, false, false}}), 1e-6},
            {{{{c64, {2, 9}}}, {{f32, {5}}, 0.1, 1}}, attrs_of(Stft{{6, 4, 5, true, true, false, true}}), 1e-6}};
  }
};
const Op<Stft> stft_op;

struct Istft : Frames {
  static constexpr std::string_view name = "istft";
  static constexpr std::string_view formula =
      "the signal whose stft is nearest to z [..., k, t] (Griffin & Lim 1984): frames by the inverse transform, times the window, added "
      "where they overlap and divided by the sum of the squared windows there; `length` samples (negative: all), zeros behind the last "
      "frame";
  std::int64_t length = -1;
  static auto fields() {
    return Fields<&Frames::n_fft, &Frames::hop, &Frames::win_length, &Frames::center, &Frames::normalized, &Frames::onesided,
                  &Frames::has_window, &Istft::length>{};
  }
  static void check_spectrum(const Istft& op, Value z) {
    const std::int64_t bins = op.onesided ? op.n_fft / 2 + 1 : op.n_fft;
    if (z.rank() < 2 || !is_complex(z.dtype()) || !(z.dim(-2) == Dim(bins)) || !(z.dim(-1) - 1).known_non_negative())
      fail("rlx.istft: {} (allowed: complex [..., {}, frames] with a frame or more)", z.type().to_string(), bins);
  }
  static Value body(const Istft& op, In x) {
    op.check(name, x);
    check_spectrum(op, x[0]);
    Value frames = move_axis(x[0], -1, -2);  // (..., t, k)
    frames = op.onesided ? irfft(frames, op.n_fft) : real(fft(frames, -1, true));
    const Value window = op.window_of(x, frames.dtype());
    const Dim extent = (frames.dim(-2) - 1) * op.hop + op.n_fft, begin = op.center ? op.n_fft / 2 : 0;
    const Dim end = op.length >= 0 ? begin + op.length : op.center ? extent - begin : extent;
    const bool beyond = !(extent - end).known_non_negative();
    const auto added = [&](Value all) { return slice_axis(fold(all, all.rank() - 2, extent, op.hop), -1, begin, beyond ? extent : end); };
    const Value energy = added(broadcast_to(window * window, {frames.dim(-2), op.n_fft}));
    Value y = times(added(frames * window), 1 / op.scale()) / energy;
    Dims behind(y.shape().size(), 0);
    if (beyond) behind.back() = end - extent;
    return pad(y, Dims(behind.size(), 0), behind);
  }
  static std::vector<Sample> samples() {
    return {{{{{c64, {2, 5, 4}}}, {{f32, {8}}, 0.2, 1}}, attrs_of(Istft{{8, 3, 8, true, false, true, true}}), 1e-6},
            {{{{c128, {4, 3}}}, {{f64, {7}}, 0.2, 1}}, attrs_of(Istft{{7, 2, 7, false, true, true, true}, 13}), 1e-6},
            {{{{c64, {6, 3}}}}, attrs_of(Istft{{6, 2, 6, true, false, false, false}, 5}), 1e-6}};
  }
};
const Op<Istft> istft_op;

// |z|^2 of complex numbers; other values are powers already.
Value power_of(Value z) { return is_complex(z.dtype()) ? real(z) * real(z) + imag(z) * imag(z) : z; }

void check_power(std::string_view op, Value z) {
  if (z.rank() < 2 || !(is_complex(z.dtype()) || is_float(z.dtype())))
    fail("rlx.{}: {} (allowed: complex spectra or powers [..., bins, frames])", op, z.type().to_string());
}

struct LogMel {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "log_mel";
  static constexpr std::string_view formula =
      "log10(max(filters |z|^2, floor)) of a spectrum z [..., bins, frames], or of its powers, with filters [mels, bins]; `whisper`: (max("
      "that, the largest of the clip - 8) + 4) / 4 (Radford et al. 2022), `frames`: of each frame instead";
  double floor = 1e-10;
  LogMelForm form = LogMelForm::plain;
  static auto fields() { return Fields<&LogMel::floor, &LogMel::form>{}; }
  static Value body(const LogMel& op, Value z, Value filters) {
    check_power(name, z);
    if (filters.rank() != 2 || !is_float(filters.dtype()) || !(filters.dim(1) == z.dim(-2)))
      fail("rlx.log_mel: filters {} for {} (allowed: floats [mels, {}])", filters.type().to_string(), z.type().to_string(),
           z.dim(-2).to_string());
    if (!(op.floor > 0)) fail("rlx.log_mel: floor {} (allowed: > 0)", op.floor);
    Value power = power_of(z);
    Value mel = move_axis(dot(power, cast(filters, power.dtype()), {power.rank() - 2}, {1}), -1, -2);  // (..., mels, frames)
    Value y = log10(max(mel, like(mel, op.floor)));
    if (op.form == LogMelForm::plain) return y;
    const Axes over = op.form == LogMelForm::frames ? Axes{-2} : Axes{-2, -1};
    return (max(y, reduce_max(y, over, true) - 8) + 4) / 4;
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> all;
    for (LogMelForm form : {LogMelForm::plain, LogMelForm::whisper, LogMelForm::frames})
      all.push_back({{{{c64, {2, 5, 4}}}, {{f32, {3, 5}}, 0.1, 1}}, attrs_of(LogMel{1e-10, form}), 4e-6});
    all.push_back({{{{f64, {5, 4}}, 0.1, 3}, {{f64, {3, 5}}, 0.1, 1}}, attrs_of(LogMel{1e-3, LogMelForm::whisper}), 4e-6});
    return all;
  }
};
const Op<LogMel> log_mel_op;

struct WelchPeaks {
  static constexpr OpKind kind = OpKind::composite;
  static constexpr std::string_view name = "welch_peaks";
  static constexpr std::string_view formula =
      "the k largest bins of the mean over frames of |z|^2, twice where a bin stands for two frequencies (all but 0 and n_fft / 2; Welch "
      "1967): z [..., n_fft / 2 + 1, frames]; results: the powers [..., k], the largest first, and their bins";
  std::int64_t n_fft = 1, k = 1;
  static auto fields() { return Fields<&WelchPeaks::n_fft, &WelchPeaks::k>{}; }
  static Values body(const WelchPeaks& op, Value z) {
    check_power(name, z);
    const std::int64_t bins = op.n_fft / 2 + 1;
    if (op.n_fft < 1 || !(z.dim(-2) == Dim(bins)))
      fail("rlx.welch_peaks: {} for n_fft {} (allowed: [..., {}, frames])", z.type().to_string(), op.n_fft, bins);
    if (op.k < 1 || op.k > bins) fail("rlx.welch_peaks: {} peaks of {} bins (allowed: 1..{})", op.k, bins, bins);
    Array sides(part_of(z), {bins});
    for (std::int64_t bin = 0; bin < bins; ++bin) sides.set_double(bin, bin == 0 || 2 * bin == op.n_fft ? 1 : 2);
    return top_k(mean(power_of(z), {-1}) * make_constant(z.graph(), sides), op.k);
  }
  static std::vector<Sample> samples() {
    return {{{{{c64, {2, 5, 3}}}}, attrs_of(WelchPeaks{8, 2}), 1e-6}, {{{{f64, {4, 3}}, 0, 2}}, attrs_of(WelchPeaks{7, 4}), 1e-6}};
  }
};
const Op<WelchPeaks> welch_peaks_op;

// Hertz to mel and back: O'Shaughnessy's formula (HTK), or Slaney's, linear up to 1000 Hz and logarithmic above.
constexpr double mel_per_hertz = 3.0 / 200, knee = 1000, knee_mel = knee * mel_per_hertz;
const double mel_step = std::log(6.4) / 27;

double to_mel(double hertz, bool htk) {
  if (htk) return 2595 * std::log10(1 + hertz / 700);
  return hertz < knee ? hertz * mel_per_hertz : knee_mel + std::log(hertz / knee) / mel_step;
}
double to_hertz(double mel, bool htk) {
  if (htk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < knee_mel ? mel / mel_per_hertz : knee * std::exp((mel - knee_mel) * mel_step);
}

Frames frames_of(std::int64_t n_fft, std::int64_t hop, std::int64_t win_length) {
  return {n_fft, hop == 0 ? n_fft / 4 : hop, win_length == 0 ? n_fft : win_length};
}

}  // namespace

/// The short-time Fourier transform of x [..., length], as torch.stft has it: [..., bins, frames], complex. Frames of n_fft samples begin
/// every `hop` ones (0: n_fft / 4); window [win_length] (0: n_fft; null: ones) lies in the middle of a frame. `center` mirrors n_fft / 2
/// samples to both sides of x first, `normalized` divides by sqrt(n_fft), `onesided` gives the n_fft / 2 + 1 bins of real x, else all
/// n_fft. Throws Error for x that is shorter than a frame, or with `center` than half of one and a sample, and for a symbolic length.
Value stft(Operand x, std::int64_t n_fft, std::int64_t hop /*= 0*/, Operand window /*= {}*/, std::int64_t win_length /*= 0*/,
           bool center /*= true*/, bool normalized /*= false*/, bool onesided /*= true*/) {
  Frames frames = frames_of(n_fft, hop, win_length);
  frames.center = center, frames.normalized = normalized, frames.onesided = onesided, frames.has_window = static_cast<bool>(window);
  return window ? stft_op({frames}, x, window) : stft_op({frames}, x);
}

/// The real signal [..., length] of a spectrum z [..., bins, frames] that stft made with the same options, as torch.istft has it: frames
/// are added where they overlap and divided by the sum of the squared windows there; where that is 0 the result is NaN. `length` cuts the
/// signal or adds zeros; without it, it is as long as the frames say. Throws Error for other numbers of bins.
Value istft(Operand z, std::int64_t n_fft, std::int64_t hop /*= 0*/, Operand window /*= {}*/, std::int64_t win_length /*= 0*/,
            bool center /*= true*/, bool normalized /*= false*/, bool onesided /*= true*/, std::optional<std::int64_t> length /*= {}*/) {
  if (length && *length < 0) fail("rlx.istft: length {} (allowed: >= 0)", *length);
  Frames frames = frames_of(n_fft, hop, win_length);
  frames.center = center, frames.normalized = normalized, frames.onesided = onesided, frames.has_window = static_cast<bool>(window);
  const Istft op{frames, length.value_or(-1)};
  return window ? istft_op(op, z, window) : istft_op(op, z);
}

/// Triangular filters [mels, n_fft / 2 + 1] between `lowest` and `highest` Hz (0: half the sample rate), as librosa and torchaudio make
/// them: their corners lie evenly on Slaney's mel scale, or with `htk` on that of HTK; with `equal_area` (Slaney) a triangle is 2 / its
/// width high, else 1. A constant in the graph of `near`.
Value mel_filters(Operand near, std::int64_t mels, std::int64_t n_fft, double sample_rate, double lowest /*= 0*/, double highest /*= 0*/,
                  bool htk /*= false*/, bool equal_area /*= true*/, DType dtype /*= f32*/) {
  if (highest == 0) highest = sample_rate / 2;
  if (mels < 1 || n_fft < 1 || !is_float(dtype))
    fail("rlx.mel_filters: {} mels, n_fft {}, {} (allowed: >= 1, floats)", mels, n_fft, name(dtype));
  if (!(sample_rate > 0 && lowest >= 0 && lowest < highest))
    fail("rlx.mel_filters: {} to {} Hz at {} Hz (allowed: 0 <= lowest < highest)", lowest, highest, sample_rate);
  const double first = to_mel(lowest, htk), step = (to_mel(highest, htk) - first) / static_cast<double>(mels + 1);
  const auto corner = [&](std::int64_t i) { return to_hertz(first + step * static_cast<double>(i), htk); };
  const std::int64_t bins = n_fft / 2 + 1;
  Array filters(dtype, {mels, bins});
  for (std::int64_t mel = 0; mel < mels; ++mel) {
    const double low = corner(mel), peak = corner(mel + 1), high = corner(mel + 2), height = equal_area ? 2 / (high - low) : 1;
    for (std::int64_t bin = 0; bin < bins; ++bin) {
      const double hertz = sample_rate * static_cast<double>(bin) / static_cast<double>(n_fft);
      const double weight = std::min((hertz - low) / (peak - low), (high - hertz) / (high - peak));
      filters.set_double(mel * bins + bin, height * std::max(0.0, weight));
    }
  }
  return make_constant(near.graph(), std::move(filters));
}

/// The logarithm, to base 10, of the energy in each mel band: of z [..., bins, frames] complex as stft gives it, or its powers, and filters
/// [mels, bins] as mel_filters gives them: [..., mels, frames]. Energies below `floor` count as it. The form whisper then lifts what lies
/// more than 8 below the largest of the clip, all bands and frames, and gives (that + 4) / 4; frames takes the largest of each frame.
Value log_mel(Operand z, Operand filters, LogMelForm form /*= LogMelForm::plain*/, double floor /*= 1e-10*/) {
  return log_mel_op({floor, form}, z, filters);
}

/// The k largest bins of Welch's estimate of power: the mean over frames of |z|^2, z [..., n_fft / 2 + 1, frames] complex as stft gives it
/// without `center`, or its powers; bins but 0 and n_fft / 2 count twice, for the frequencies left out. Results: the powers [..., k],
/// largest first, the smaller bin of equal ones, and the bins (i32). Throws Error when k is above the number of bins.
Values welch_peaks(Operand z, std::int64_t n_fft, std::int64_t k) {
  const Value operands[] = {z};
  return welch_peaks_op.all({n_fft, k}, operands);
}

}  // namespace rlx
