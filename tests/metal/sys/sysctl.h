#pragma once
// What Apple's systems tell of themselves by name.
#include <cstddef>
extern "C" int sysctlbyname(const char* name, void* value, std::size_t* length, void* next, std::size_t next_length);
