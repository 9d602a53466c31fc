#pragma once
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "rlx/c.h"
#include "rlx/graph.h"
#include "rlx/session.h"

struct rlx_array {
  rlx::Array array;
};
struct rlx_graph {
  rlx::Graph graph;
  std::vector<rlx::Value> values = {};  // by their numbers
  std::string text = {};
};
struct rlx_session {
  rlx::Session session;
};
struct rlx_executable {
  rlx::Executable executable;
};
struct rlx_pending {
  rlx::PendingRun run;
};

namespace rlx::c {

/// Keeps the text for rlx_last_error.
void keep_error(const char* text) noexcept;

/// Runs what may throw; nothing gets out.
template <class Action>
rlx_status guarded(const Action& action) noexcept {
  try {
    action();
    return RLX_OK;
  } catch (const std::bad_alloc&) {
    keep_error("there is not enough memory");
    return RLX_NO_MEMORY;
  } catch (const Error& error) {
    keep_error(error.what());
    return RLX_ERROR;
  } catch (const std::exception& error) {
    keep_error(error.what());
    return RLX_INTERNAL;
  } catch (...) {
    keep_error("an exception of an unknown kind");
    return RLX_INTERNAL;
  }
}

/// A reference to what a caller must give. Throws Error for null.
template <class T>
T& given(T* pointer, const char* what) {
  if (pointer == nullptr) fail("{} is null", what);
  return *pointer;
}
/// Gives the caller what was made. Throws Error for a null `out`.
template <class T>
void give(T** out, const char* what, std::unique_ptr<T> made) {
  T*& place = given(out, what);
  place = made.release();
}
inline std::string text(const char* given_text, const char* what) { return &given(given_text, what); }

DType dtype_of(rlx_dtype dtype);
Dims dims_of(const rlx_dim* shape, std::size_t rank);

}  // namespace rlx::c
