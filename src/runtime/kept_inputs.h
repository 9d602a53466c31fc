#pragma once
#include <cstddef>
#include <memory>

#include "runtime/executable.h"

namespace rlx {

/// The parameters that are bound now.
std::shared_ptr<BoundParameters> parameters_of(const Executable::State& state);

/// Whether input `i` is a parameter that has elements and no value yet.
bool is_missing(const BoundParameters& parameters, std::size_t i, const Input& input);

/// The value of state `i`: zeros before it is set. Throws Error where these have no size yet.
Array state_value(Executable::State& state, std::size_t i);

/// The state's value for a run that changes it where it lies: memory that nobody else reads. One that keeps nothing changes a copy.
Array changing_state(Executable::State& state, std::size_t i, bool keeps);

}  // namespace rlx
