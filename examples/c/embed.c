/* A sentence as a vector, in C: cc embed.c -lrlx_c && ./a.out FOLDER "a cat", FOLDER being an encoder of Hugging Face. */
#include <stdio.h>
#include <stdlib.h>

#include "rlx/c.h"

static void check(rlx_status status) {
  if (status == RLX_OK) return;
  fprintf(stderr, "embed: %s\n", rlx_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: embed FOLDER TEXT\n"), 2;
  rlx_session* session = NULL;
  rlx_encoder* encoder = NULL;
  check(rlx_session_new(0, NULL, &session));
  check(rlx_encoder_open(argv[1], session, &encoder));

  const size_t width = rlx_encoder_width(encoder);
  const char* texts[] = {argv[2]};
  float* vector = malloc(width * sizeof(float));
  check(rlx_encoder_embed(encoder, texts, 1, vector));
  printf("%zu values, the first %.4f\n", width, vector[0]);

  free(vector);
  rlx_encoder_free(encoder);
  rlx_session_free(session);
  return 0;
}
