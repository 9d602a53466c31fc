/* The C interface as a C program uses it: a graph by calls, its gradient, runs, arrays of its own memory, errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rlx/c.h"

static int failures = 0;

#define CHECK(condition)                                                                                \
  do {                                                                                                  \
    if (!(condition)) {                                                                                 \
      fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, rlx_last_error()); \
      ++failures;                                                                                       \
    }                                                                                                   \
  } while (0)

static int released = 0;
static void release(void* context) { released += *(int*)context; }

static rlx_argument value_argument(rlx_value value) {
  rlx_argument argument = {.kind = RLX_ARG_VALUE, .as = {.value = value}};
  return argument;
}

static rlx_graph* build(void) {
  rlx_graph* graph = NULL;
  const rlx_dim x_shape[] = {{8, "B"}, {2, NULL}}, w_shape[] = {{2, NULL}};
  rlx_value x, w, product, sum, loss;
  CHECK(rlx_graph_new("model", &graph) == RLX_OK);
  CHECK(rlx_graph_input(graph, RLX_INPUT, "x", RLX_F32, x_shape, 2, &x) == RLX_OK);
  CHECK(rlx_graph_input(graph, RLX_PARAM, "w", RLX_F32, w_shape, 1, &w) == RLX_OK);

  const rlx_argument factors[] = {value_argument(x), value_argument(w)};
  CHECK(rlx_apply(graph, "mul", factors, 2, &product, 1, NULL) == RLX_OK);
  const int64_t axes[] = {1};
  const rlx_argument sum_arguments[] = {value_argument(product), {.name = "axes", .kind = RLX_ARG_INTEGERS, .count = 1, .as = {.integers = axes}}};
  size_t count = 0;
  CHECK(rlx_apply(graph, "sum", sum_arguments, 2, &sum, 1, &count) == RLX_OK && count == 1);
  const rlx_argument whole[] = {value_argument(sum)};
  CHECK(rlx_apply(graph, "sum_all", whole, 1, &loss, 1, NULL) == RLX_OK);
  CHECK(rlx_graph_output(graph, "loss", loss) == RLX_OK);
  return graph;
}

static void test_run(const rlx_session* session) {
  rlx_graph* graph = build();
  rlx_graph* gradient = NULL;
  const char* wrt[] = {"w"};
  CHECK(rlx_graph_grad(graph, wrt, 1, &gradient) == RLX_OK);
  rlx_graph_free(graph);

  rlx_executable* executable = NULL;
  CHECK(rlx_compile(session, gradient, &executable) == RLX_OK);
  rlx_graph_free(gradient);

  const int64_t w_shape[] = {2}, x_shape[] = {2, 2};
  const float w[] = {1, -1}, x[] = {1, 2, 3, 4};
  int weight = 7;
  rlx_array *w_array = NULL, *x_array = NULL;
  CHECK(rlx_array_borrow(RLX_F32, w_shape, 1, w, release, &weight, &w_array) == RLX_OK);
  CHECK(rlx_array_new(RLX_F32, x_shape, 2, x, &x_array) == RLX_OK);
  CHECK(rlx_set_param(executable, "w", w_array) == RLX_OK);
  rlx_array_free(w_array);

  const char* names[] = {"x"};
  const rlx_array* inputs[] = {x_array};
  rlx_array* outputs[2] = {NULL, NULL};
  size_t count = 0;
  CHECK(rlx_run(executable, names, inputs, 1, outputs, 1, &count) == RLX_ERROR && outputs[0] == NULL);
  CHECK(rlx_run(executable, names, inputs, 1, outputs, 2, &count) == RLX_OK && count == 2);
  CHECK(*(const float*)rlx_array_data(outputs[0]) == -2);
  CHECK(rlx_array_rank(outputs[1]) == 1 && rlx_array_shape(outputs[1])[0] == 2 && rlx_array_dtype(outputs[1]) == RLX_F32);
  const float expected[] = {4, 6};
  CHECK(rlx_array_bytes(outputs[1]) == sizeof expected && memcmp(rlx_array_data(outputs[1]), expected, sizeof expected) == 0);
  rlx_array_free(outputs[0]);
  rlx_array_free(outputs[1]);
  rlx_array_free(x_array);
  rlx_executable_free(executable);
  CHECK(released == 7);
}

/* A graph as text, and read again: the same text. */
static void test_texts(void) {
  const int64_t shape[] = {2};
  const float numbers[] = {1.5f, -2};
  rlx_array* array = NULL;
  rlx_graph *graph = NULL, *again = NULL;
  rlx_value constant;
  const char *text = NULL, *text_again = NULL;
  CHECK(rlx_array_new(RLX_F32, shape, 1, numbers, &array) == RLX_OK && rlx_graph_new("numbers", &graph) == RLX_OK);
  CHECK(rlx_graph_constant(graph, array, &constant) == RLX_OK);
  rlx_array_free(array);
  CHECK(rlx_graph_output(graph, "y", constant) == RLX_OK);
  CHECK(rlx_graph_text(graph, &text) == RLX_OK && strstr(text, "graph numbers") == text && strstr(text, "1.5, -2") != NULL);
  CHECK(rlx_graph_parse(text, &again) == RLX_OK && rlx_graph_text(again, &text_again) == RLX_OK && strcmp(text, text_again) == 0);
  CHECK(rlx_graph_constant(graph, NULL, &constant) == RLX_ERROR && rlx_graph_new("g", NULL) == RLX_ERROR);
  CHECK(rlx_graph_text(NULL, &text) == RLX_ERROR && strcmp(rlx_last_error(), "the graph is null") == 0);
  CHECK(rlx_graph_input(NULL, RLX_INPUT, "x", RLX_F32, NULL, 0, &constant) == RLX_ERROR);
  rlx_graph_free(graph);
  rlx_graph_free(again);
}

/* What was compiled, from a file. */
static void test_programs(const rlx_session* session) {
  const char* path = "interface.rlxp";
  rlx_graph* graph = build();
  rlx_executable *executable = NULL, *opened = NULL;
  CHECK(rlx_compile(session, graph, &executable) == RLX_OK);
  rlx_graph_free(graph);
  const int64_t w_shape[] = {2}, x_shape[] = {1, 2};
  const float w[] = {1, 10}, x[] = {3, 4};
  rlx_array *w_array = NULL, *x_array = NULL, *output = NULL;
  CHECK(rlx_array_new(RLX_F32, w_shape, 1, w, &w_array) == RLX_OK && rlx_array_new(RLX_F32, x_shape, 2, x, &x_array) == RLX_OK);
  CHECK(rlx_set_param(executable, "w", w_array) == RLX_OK);
  const char* names[] = {"x"};
  const rlx_array* inputs[] = {x_array};
  CHECK(rlx_program_save(executable, path, 0) == RLX_OK && rlx_program_open(path, "cpu", 1, &opened) == RLX_OK);
  CHECK(rlx_run(opened, names, inputs, 1, &output, 1, NULL) == RLX_ERROR && strstr(rlx_last_error(), "w") != NULL);
  rlx_executable_free(opened);
  CHECK(rlx_program_save(executable, path, 1) == RLX_OK && rlx_program_open(path, "cpu", 1, &opened) == RLX_OK);
  CHECK(rlx_run(opened, names, inputs, 1, &output, 1, NULL) == RLX_OK && *(const float*)rlx_array_data(output) == 43);
  rlx_array_free(output);
  rlx_array_free(w_array);
  rlx_array_free(x_array);
  rlx_executable_free(opened);
  opened = NULL;
  CHECK(rlx_program_open("there/is/no.rlxp", "cpu", 1, &opened) == RLX_ERROR && strstr(rlx_last_error(), "no.rlxp") != NULL);
  CHECK(rlx_program_open(path, "abacus:0", 1, &opened) == RLX_ERROR && strstr(rlx_last_error(), "abacus") != NULL);
  CHECK(rlx_program_open(path, "cpu", -1, &opened) == RLX_ERROR && opened == NULL);
  CHECK(rlx_program_save(NULL, path, 0) == RLX_ERROR && rlx_program_save(executable, "there/is/no.rlxp", 0) == RLX_ERROR);
  rlx_executable_free(executable);
  CHECK(remove(path) == 0);
}

static void test_runs_that_go_on(const rlx_session* session) {
  rlx_graph* graph = build();
  rlx_executable* executable = NULL;
  CHECK(rlx_compile(session, graph, &executable) == RLX_OK);
  rlx_graph_free(graph);
  const int64_t w_shape[] = {2}, x_shape[] = {1, 2};
  const float w[] = {1, 10};
  rlx_array *w_array = NULL, *x_array = NULL;
  CHECK(rlx_array_new(RLX_F32, w_shape, 1, w, &w_array) == RLX_OK);
  CHECK(rlx_set_param(executable, "w", w_array) == RLX_OK);
  rlx_array_free(w_array);

  const char* names[] = {"x"};
  rlx_pending* pending[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; ++i) {
    const float x[] = {(float)i, 1};
    CHECK(rlx_array_new(RLX_F32, x_shape, 2, x, &x_array) == RLX_OK);
    const rlx_array* inputs[] = {x_array};
    CHECK(rlx_run_start(executable, names, inputs, 1, &pending[i]) == RLX_OK);
    rlx_array_free(x_array);
  }
  const char* wrong[] = {"z"};
  const int64_t one[] = {1};
  CHECK(rlx_array_new(RLX_F32, one, 1, w, &x_array) == RLX_OK);
  const rlx_array* inputs[] = {x_array};
  rlx_pending* failed = NULL;
  rlx_array* output = NULL;
  if (rlx_run_start(executable, wrong, inputs, 1, &failed) == RLX_OK) CHECK(rlx_pending_outputs(failed, &output, 1, NULL) == RLX_ERROR);
  CHECK(strstr(rlx_last_error(), "'z'") != NULL);
  rlx_array_free(x_array);
  rlx_executable_free(executable); /* runs keep what they need */
  for (int i = 0; i < 3; ++i) {
    size_t count = 0;
    CHECK(rlx_pending_outputs(pending[i], &output, 1, &count) == RLX_OK && count == 1);
    CHECK(rlx_pending_ready(pending[i]) == 1);
    CHECK(*(const float*)rlx_array_data(output) == (float)(i + 10));
    rlx_array_free(output);
    rlx_pending_free(pending[i]);
  }
  rlx_pending_free(failed);
}

/* As in dlpack.h. */
struct DLManagedTensor {
  struct {
    void* data;
    struct {
      int32_t type, id;
    } device;
    int32_t rank;
    struct {
      uint8_t code, bits;
      uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
  } tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor* self);
};

static void count_deletion(struct DLManagedTensor* self) { ++*(int*)self->context; }

static void test_dlpack(void) {
  float values[] = {0, 1, 2, 3, 4, 5, 6};
  int64_t shape[] = {2, 3}, strides[] = {3, 1}, turned[] = {1, 2};
  int deleted = 0;
  struct DLManagedTensor tensor = {.tensor = {values, {1, 0}, 2, {2, 32, 1}, shape, strides, sizeof(float)}, .context = &deleted, .deleter = count_deletion};
  rlx_array* array = NULL;
  CHECK(rlx_array_from_dlpack(&tensor, &array) == RLX_OK && deleted == 0);
  CHECK(rlx_array_data(array) == values + 1 && rlx_array_rank(array) == 2 && rlx_array_shape(array)[1] == 3);

  struct DLManagedTensor* back = NULL;
  CHECK(rlx_array_to_dlpack(array, &back) == RLX_OK);
  rlx_array_free(array);
  CHECK(deleted == 0 && back->tensor.data == values + 1 && back->tensor.rank == 2 && back->tensor.shape[0] == 2);
  CHECK(back->tensor.dtype.code == 2 && back->tensor.dtype.bits == 32 && back->tensor.device.type == 1);
  back->deleter(back);
  CHECK(deleted == 1);

  rlx_array* none = NULL;
  tensor.tensor.strides = turned;
  CHECK(rlx_array_from_dlpack(&tensor, &none) == RLX_ERROR && strstr(rlx_last_error(), "stride of axis 1 is 2") != NULL && deleted == 2);
  tensor.tensor.strides = NULL;
  tensor.tensor.device.type = 2;
  CHECK(rlx_array_from_dlpack(&tensor, &none) == RLX_ERROR && strstr(rlx_last_error(), "device of type 2") != NULL && deleted == 3);
  tensor.tensor.device.type = 1;
  tensor.tensor.dtype.bits = 24;
  CHECK(rlx_array_from_dlpack(&tensor, &none) == RLX_ERROR && deleted == 4);
  CHECK(rlx_array_from_dlpack(NULL, &none) == RLX_ERROR && none == NULL);
}

static void test_errors(void) {
  rlx_graph* graph = NULL;
  rlx_value x, result;
  const rlx_dim shape[] = {{3, NULL}};
  CHECK(rlx_graph_new(NULL, &graph) == RLX_ERROR && strcmp(rlx_last_error(), "the name is null") == 0);
  CHECK(rlx_graph_parse("nonsense", &graph) == RLX_ERROR && graph == NULL);
  CHECK(rlx_graph_new("g", &graph) == RLX_OK);
  CHECK(rlx_graph_input(graph, RLX_INPUT, "x", RLX_F32, shape, 1, &x) == RLX_OK);
  const rlx_argument wrong[] = {value_argument(x), {.name = "axis", .kind = RLX_ARG_INTEGER, .as = {.integer = 4}}};
  RLX_HERE();
  CHECK(rlx_apply(graph, "softmax", wrong, 2, &result, 1, NULL) == RLX_ERROR);
  CHECK(strstr(rlx_last_error(), "rlx.softmax: axis 4 is out of range for f32[3] (allowed: -1..0), built at ") != NULL);
  CHECK(strstr(rlx_last_error(), "interface.c:") != NULL);
  rlx_set_place(NULL, 0);
  CHECK(rlx_apply(graph, "softmaks", wrong, 1, &result, 1, NULL) == RLX_ERROR && strstr(rlx_last_error(), "near: 'softmax'") != NULL);
  const rlx_argument unknown[] = {value_argument(99)};
  CHECK(rlx_apply(graph, "relu", unknown, 1, &result, 1, NULL) == RLX_ERROR && strstr(rlx_last_error(), "there is no value 99") != NULL);
  CHECK(rlx_apply(NULL, "relu", unknown, 1, &result, 1, NULL) == RLX_ERROR);
  rlx_graph_free(graph);

  rlx_array* array = NULL;
  const int64_t huge[] = {INT64_MAX, 2};
  int weight = 1;
  released = 0;
  CHECK(rlx_array_new(RLX_F32, huge, 2, NULL, &array) != RLX_OK && array == NULL);
  CHECK(rlx_array_borrow(RLX_F32, huge, 2, &weight, release, &weight, &array) == RLX_ERROR && released == 1);
  CHECK(rlx_array_new((rlx_dtype)99, NULL, 0, NULL, &array) == RLX_ERROR);
  rlx_model* model = NULL;
  CHECK(rlx_model_open("there/is/no.gguf", &model) == RLX_ERROR && strstr(rlx_last_error(), "no.gguf") != NULL);
  rlx_session* session = NULL;
  CHECK(rlx_session_new(1, "f9", &session) == RLX_ERROR);
  CHECK(rlx_session_new_on("abacus:0", 1, NULL, &session) == RLX_ERROR && strstr(rlx_last_error(), "abacus") != NULL);
}

static void test_frees_accept_null(void) {
  rlx_array_free(NULL);
  rlx_graph_free(NULL);
  rlx_session_free(NULL);
  rlx_executable_free(NULL);
  rlx_pending_free(NULL);
  rlx_model_free(NULL);
  rlx_encoder_free(NULL);
}

static void test_encoder(const rlx_session* session, const char* folder) {
  rlx_encoder* encoder = NULL;
  CHECK(rlx_encoder_open(folder, session, &encoder) == RLX_OK);
  if (encoder == NULL) return;
  const char* texts[] = {"a cat", "a dog", "a cat"};
  const size_t width = rlx_encoder_width(encoder);
  float* rows = calloc(3 * width, sizeof(float));
  CHECK(rlx_encoder_embed(encoder, texts, 3, rows) == RLX_OK);
  CHECK(memcmp(rows, rows + 2 * width, width * sizeof(float)) == 0 && memcmp(rows, rows + width, width * sizeof(float)) != 0);
  free(rows);
  rlx_encoder_free(encoder);
}

struct answer {
  char text[1000];
  int pieces, most;
};

/* Keeps a piece; ends the answer behind the last that is wanted. */
static int keep_piece(const char* text, size_t bytes, void* context) {
  struct answer* answer = context;
  CHECK(strlen(text) == bytes && strlen(answer->text) + bytes < sizeof answer->text);
  strcat(answer->text, text);
  return ++answer->pieces == answer->most;
}

static void test_model(const char* path) {
  rlx_model* model = NULL;
  CHECK(rlx_model_open(path, &model) == RLX_OK);
  if (model == NULL) return;
  struct answer whole = {.most = -1}, begin = {.most = 2};
  CHECK(rlx_model_generate(model, "w1 w2 w3", 4, keep_piece, &whole) == RLX_OK && whole.pieces > 2);
  CHECK(rlx_model_generate(model, "w1 w2 w3", 4, keep_piece, &begin) == RLX_OK && begin.pieces == 2);
  CHECK(strlen(begin.text) < strlen(whole.text) && strncmp(begin.text, whole.text, strlen(begin.text)) == 0);
  CHECK(rlx_model_generate(model, NULL, 4, keep_piece, &whole) == RLX_ERROR && strstr(rlx_last_error(), "prompt") != NULL);
  CHECK(rlx_model_generate(model, "w1 w2 w3", 4, NULL, NULL) == RLX_ERROR);
  CHECK(rlx_model_generate(model, "w1", -1, keep_piece, &whole) == RLX_ERROR);
  rlx_model_free(model);
}

int main(int argc, char** argv) {
  rlx_session* session = NULL;
  CHECK(rlx_session_new(1, NULL, &session) == RLX_OK);
  test_run(session);
  test_texts();
  test_programs(session);
  test_runs_that_go_on(session);
  test_dlpack();
  test_errors();
  test_frees_accept_null();
  if (argc > 2) test_encoder(session, argv[1]), test_model(argv[2]);
  rlx_session_free(session);
  CHECK(rlx_builder_count() > 200 && rlx_builder_name(0) != NULL && rlx_builder_name(rlx_builder_count()) == NULL);
  CHECK(strstr(rlx_builder_documentation(0), rlx_builder_name(0)) != NULL);
  printf("rlx %s: %d failures\n", rlx_version(), failures);
  return failures > 0;
}
