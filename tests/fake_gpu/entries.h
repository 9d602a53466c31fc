#pragma once

// How functions of a driver are named, by vendor, and that they are found.
#ifdef RLX_FAKE_HIP
#define NAMED(cuda, hip) hip
#else
#define NAMED(cuda, hip) cuda
#endif
#define ENTRY(code, cuda, hip) extern "C" [[gnu::visibility("default")]] code NAMED(cuda, hip)
