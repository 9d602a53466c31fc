#pragma once
#include <numbers>

#include "vectors/torch_layers.h"

// Spectra of signals: our graph for the cases of fixtures/torch/sequences.json.
namespace rlx::test {

inline std::int64_t whole(const json::Value& p, const char* key) { return p[key].get<std::int64_t>(); }

/// The transform's real and imaginary parts, and the signal of (1 + i / 2) times the transform, or of the transform itself.
inline Values recorded_stft(TorchOperands& x, const json::Value& p) {
  const bool center = p["center"].get<bool>(), normalized = p["normalized"].get<bool>(), onesided = p["onesided"].get<bool>();
  const Value window = x["window"];
  const std::int64_t n = whole(p, "n_fft"), hop = whole(p, "hop"), length = window ? window.dim(0).value() : 0;
  const Value z = stft(x["x"], n, hop, window, length, center, normalized, onesided), re = real(z), im = imag(z);
  const Value turned = onesided ? complex(re - im * 0.5, im + re * 0.5) : z;
  const auto kept = p["length"].is_null() ? std::nullopt : std::optional(whole(p, "length"));
  return {stack({re, im}, -1), istft(turned, n, hop, window, length, center, normalized, onesided, kept)};
}

inline Values recorded_mel(TorchOperands& x, const json::Value& p) {
  return {mel_filters(x["x"], whole(p, "mels"), whole(p, "n_fft"), number(p, "rate", 0), number(p, "low", 0), number(p, "high", 0),
                      p["htk"].get<bool>(), p["equal_area"].get<bool>())};
}

/// Whisper's features of a second, without its last frame: the first 40 frames.
inline Values recorded_whisper(TorchOperands& x, const json::Value&) {
  const Value turn = iota(x["x"], {400}, f32) * (2 * std::numbers::pi / 400), hann = 0.5 - cos(turn) * 0.5;
  const Value z = slice_axis(stft(x["x"], 400, 160, hann), -1, 0, 100);
  return {slice_axis(log_mel(z, mel_filters(z, 80, 400, 16000), LogMelForm::whisper), -1, 0, 40)};
}

inline Values recorded_welch(TorchOperands& x, const json::Value& p) {
  const std::int64_t n = whole(p, "n_fft");
  return welch_peaks(stft(x["x"], n, n - n / 2, x["window"], 0, false), n, whole(p, "k"));
}

}  // namespace rlx::test
