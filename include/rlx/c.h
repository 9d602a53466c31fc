/* RLX for C and for languages that call C. Linked as librlx_c; the ABI only grows.
 *
 * Handles are opaque. What makes one gives it to the caller, who frees it once; every free accepts null. A function that gives a status
 * gives RLX_OK, or says in rlx_last_error() what went wrong; then no handle was made. Nothing is thrown.
 * Threads: one thread at a time for a graph or a model. All others may be used by any number of threads.
 * Strings are UTF-8 and end with a 0. */
#ifndef RLX_C_H
#define RLX_C_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RLX_API __attribute__((visibility("default")))

typedef enum {
  RLX_OK = 0,
  RLX_ERROR = 1,     /* what the caller can mend */
  RLX_NO_MEMORY = 2, /* an allocation failed */
  RLX_INTERNAL = 3   /* a fault of RLX */
} rlx_status;

/* Element types, as rlx/dtype.h has them. */
enum {
  RLX_F32,
  RLX_F16,
  RLX_BF16,
  RLX_F64,
  RLX_F8E4M3,
  RLX_F8E5M2,
  RLX_I8,
  RLX_I16,
  RLX_I32,
  RLX_I64,
  RLX_U8,
  RLX_U16,
  RLX_U32,
  RLX_U64,
  RLX_I4,
  RLX_U4,
  RLX_BOOL,
  RLX_C64,
  RLX_C128
};
typedef int32_t rlx_dtype; /* one of these: a number, as callers may hand over any */

/* The text of this thread's last error; empty before the first. It lives until the next error of the thread. */
RLX_API const char* rlx_last_error(void);
RLX_API const char* rlx_version(void);
/* The line that errors of this thread's calls of rlx_apply name from now on, until it is set anew; a null file: none. */
RLX_API void rlx_set_place(const char* file, int line);
#define RLX_HERE() rlx_set_place(__FILE__, __LINE__)

/* Arrays: dense, row-major, never changed. */
typedef struct rlx_array rlx_array;
/* A copy of the elements; null data: zeros. */
RLX_API rlx_status rlx_array_new(rlx_dtype dtype, const int64_t* shape, size_t rank, const void* data, rlx_array** out);
/* The caller's memory, until `release` (or nobody, if null) is called with `context`, from any thread; so it is where this fails. */
RLX_API rlx_status rlx_array_borrow(rlx_dtype dtype, const int64_t* shape, size_t rank, const void* data, void (*release)(void* context),
                                    void* context, rlx_array** out);
RLX_API void rlx_array_free(rlx_array* array);
RLX_API rlx_dtype rlx_array_dtype(const rlx_array* array);
RLX_API size_t rlx_array_rank(const rlx_array* array);
RLX_API const int64_t* rlx_array_shape(const rlx_array* array);
RLX_API const void* rlx_array_data(const rlx_array* array);
RLX_API size_t rlx_array_bytes(const rlx_array* array);
/* DLPack (dlpack.h, github.com/dmlc/dlpack), whose memory is shared and must not change. The tensor that is given is taken over: its
 * deleter is called when nobody needs it any more, so it is where this fails. Dense, row-major, on the CPU. */
struct DLManagedTensor;
RLX_API rlx_status rlx_array_from_dlpack(struct DLManagedTensor* tensor, rlx_array** out);
/* A tensor for whoever wants one, who calls its deleter. */
RLX_API rlx_status rlx_array_to_dlpack(const rlx_array* array, struct DLManagedTensor** out);

/* Graphs. A value is a number that its graph knows. */
typedef struct rlx_graph rlx_graph;
typedef int32_t rlx_value;
/* A size, or a symbol with its bound as the size. */
typedef struct {
  int64_t size;
  const char* symbol; /* null: none */
} rlx_dim;
enum { RLX_INPUT, RLX_PARAM, RLX_STATE };
typedef int32_t rlx_input_kind; /* one of these: a number, as callers may hand over any */

RLX_API rlx_status rlx_graph_new(const char* name, rlx_graph** out);
RLX_API rlx_status rlx_graph_parse(const char* text, rlx_graph** out);
RLX_API void rlx_graph_free(rlx_graph* graph);
RLX_API rlx_status rlx_graph_input(rlx_graph* graph, rlx_input_kind kind, const char* name, rlx_dtype dtype, const rlx_dim* shape,
                                   size_t rank, rlx_value* out);
RLX_API rlx_status rlx_graph_constant(rlx_graph* graph, const rlx_array* array, rlx_value* out);
RLX_API rlx_status rlx_graph_output(rlx_graph* graph, const char* name, rlx_value value);
/* A graph with the inputs of this one, its only output, and `grad_<input>` for each name. */
RLX_API rlx_status rlx_graph_grad(const rlx_graph* graph, const char* const* names, size_t count, rlx_graph** out);
/* The graph as text, which lives until the next call for this graph. */
RLX_API rlx_status rlx_graph_text(rlx_graph* graph, const char** out);

/* The functions of rlx/ops.h by name: `rlx ops` lists them. */
RLX_API size_t rlx_builder_count(void);
RLX_API const char* rlx_builder_name(size_t i);          /* i < rlx_builder_count(), else null */
RLX_API const char* rlx_builder_documentation(size_t i); /* the declaration, then what it computes */

enum {
  RLX_ARG_BOOL,
  RLX_ARG_INTEGER,
  RLX_ARG_NUMBER,
  RLX_ARG_TEXT,
  RLX_ARG_DTYPE,
  RLX_ARG_INTEGERS,
  RLX_ARG_NUMBERS,
  RLX_ARG_DIMS,
  RLX_ARG_VALUE,
  RLX_ARG_VALUES
};
typedef int32_t rlx_argument_kind; /* one of these: a number, as callers may hand over any */

typedef struct {
  const char* name; /* null: by position; those come first */
  rlx_argument_kind kind;
  size_t count; /* of a list */
  union {
    int64_t integer; /* and bool */
    double number;
    const char* text;
    rlx_dtype dtype;
    rlx_value value;
    const int64_t* integers;
    const double* numbers;
    const rlx_dim* dims;
    const rlx_value* values;
  } as;
} rlx_argument;

/* Calls a builder. Its results go to `results`, which has room for `capacity`; more are an error. `count` may be null. */
RLX_API rlx_status rlx_apply(rlx_graph* graph, const char* builder, const rlx_argument* arguments, size_t argument_count,
                             rlx_value* results, size_t capacity, size_t* count);

/* Sessions and executables. */
typedef struct rlx_session rlx_session;
typedef struct rlx_executable rlx_executable;
/* threads 0: as many as the process may use. precision: f32, bf16, f16, int8; null: f32. On the CPU. */
RLX_API rlx_status rlx_session_new(int threads, const char* precision, rlx_session** out);
/* On a device: cpu, opencl:0, opencl for the first of its kind, auto; null: that of the variable RLX_DEVICE, else the CPU. */
RLX_API rlx_status rlx_session_new_on(const char* device, int threads, const char* precision, rlx_session** out);
RLX_API void rlx_session_free(rlx_session* session);
RLX_API rlx_status rlx_compile(const rlx_session* session, const rlx_graph* graph, rlx_executable** out);
RLX_API void rlx_executable_free(rlx_executable* executable);
RLX_API rlx_status rlx_set_param(rlx_executable* executable, const char* name, const rlx_array* value);
/* Runs with inputs by name. `outputs` has room for `capacity` arrays, in the order of the graph's outputs; others are an error. */
RLX_API rlx_status rlx_run(const rlx_executable* executable, const char* const* names, const rlx_array* const* inputs, size_t input_count,
                           rlx_array** outputs, size_t capacity, size_t* count);

/* Program files: executables that are opened without compiling. What is in one is run as code: open files of those whom you trust alone. */
/* Writes one. `weights_inside`: not 0: with the values of parameters and states. */
RLX_API rlx_status rlx_program_save(const rlx_executable* executable, const char* path, int weights_inside);
/* Opens one, also of `rlx compile`, in a session of its own. The device and the threads are those of rlx_session_new_on. */
RLX_API rlx_status rlx_program_open(const char* path, const char* device, int threads, rlx_executable** out);

/* A run that goes on while the caller does something else. Arrays that are fed may be freed at once. Any number may be going on. */
typedef struct rlx_pending rlx_pending;
RLX_API rlx_status rlx_run_start(const rlx_executable* executable, const char* const* names, const rlx_array* const* inputs,
                                 size_t input_count, rlx_pending** out);
/* 1 when it is done or has failed, else 0. */
RLX_API int rlx_pending_ready(const rlx_pending* pending);
/* Waits, and gives the outputs as rlx_run does, or what went wrong. */
RLX_API rlx_status rlx_pending_outputs(const rlx_pending* pending, rlx_array** outputs, size_t capacity, size_t* count);
/* Waits for it if it is still going on. */
RLX_API void rlx_pending_free(rlx_pending* pending);

/* Models. */
typedef struct rlx_model rlx_model;
typedef struct rlx_encoder rlx_encoder;
RLX_API rlx_status rlx_model_open(const char* path, rlx_model** out);
RLX_API void rlx_model_free(rlx_model* model);
/* Continues a prompt by the likeliest tokens; max_tokens 0: until the context is full. Each piece of text is given to `piece`, which ends
 * the answer by giving anything but 0. */
RLX_API rlx_status rlx_model_generate(rlx_model* model, const char* prompt, int64_t max_tokens,
                                      int (*piece)(const char* text, size_t bytes, void* context), void* context);
RLX_API rlx_status rlx_encoder_open(const char* path, const rlx_session* session, rlx_encoder** out);
RLX_API void rlx_encoder_free(rlx_encoder* encoder);
RLX_API size_t rlx_encoder_width(const rlx_encoder* encoder);
/* One row of rlx_encoder_width(encoder) floats for each text. */
RLX_API rlx_status rlx_encoder_embed(const rlx_encoder* encoder, const char* const* texts, size_t count, float* out);

#ifdef __cplusplus
}
#endif
#endif
