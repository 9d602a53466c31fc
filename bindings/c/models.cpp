// Models of the C interface.
#include <algorithm>

#include "handles.h"
#include "rlx/model.h"
#include "rlx/sentence_encoder.h"

struct rlx_model {
  rlx::Model model;
};
struct rlx_encoder {
  rlx::SentenceEncoder encoder;
};

using namespace rlx::c;

rlx_status rlx_model_open(const char* path, rlx_model** out) {
  return guarded([&] { give(out, "the place for the model", std::make_unique<rlx_model>(rlx::load(text(path, "the path")))); });
}

void rlx_model_free(rlx_model* model) { delete model; }

rlx_status rlx_model_generate(rlx_model* model, const char* prompt, std::int64_t max_tokens, int (*piece)(const char*, std::size_t, void*),
                              void* context) {
  return guarded([&] {
    given(piece, "the function for pieces");
    auto answer = given(model, "the model").model.generate(text(prompt, "the prompt"), {.max_tokens = max_tokens});
    for (const std::string& part : answer)
      if (piece(part.c_str(), part.size(), context) != 0) return;
  });
}

rlx_status rlx_encoder_open(const char* path, const rlx_session* session, rlx_encoder** out) {
  return guarded([&] {
    give(out, "the place for the encoder",
         std::make_unique<rlx_encoder>(rlx::SentenceEncoder::open(text(path, "the path"), given(session, "the session").session)));
  });
}

void rlx_encoder_free(rlx_encoder* encoder) { delete encoder; }
std::size_t rlx_encoder_width(const rlx_encoder* encoder) { return static_cast<std::size_t>(encoder->encoder.width()); }

rlx_status rlx_encoder_embed(const rlx_encoder* encoder, const char* const* texts, std::size_t count, float* out) {
  return guarded([&] {
    if (count > 0) given(texts, "the texts");
    std::vector<std::string> all;
    for (std::size_t i = 0; i < count; ++i) all.push_back(text(texts[i], "a text"));
    float* row = out;
    for (const rlx::Embedding& embedding : given(encoder, "the encoder").encoder.encode(all))
      row = std::copy(embedding.values.begin(), embedding.values.end(), &given(row, "the place for the embeddings"));
  });
}
