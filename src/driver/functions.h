// The CUDA driver's documented functions, as a list with types. NVIDIA's headers are its source (generate_functions.py makes it when building).
//
// A base is a name that programs ask cuGetProcAddress for ("cuMemAlloc"). A variant is one function behind that name: by CUDA version, and by
// what stream 0 means to it. An export is a symbol of libcuda.so.1 ("cuMemAlloc_v2"). Variants and exports are kept apart on purpose: each is found
// in a real driver by its own exact name, so no rule about suffixes can pick the wrong one.
//
// To include the list: define FAULTLINE_DRIVER_BASE, _EXPORT or _VARIANT, include "driver_functions.inc", undefine it.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // NVIDIA's switch for headers that declare every variant and rename nothing
#endif
#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace faultline::driver {

enum class StreamKind : std::uint8_t { kLegacy, kPerThread };  // what stream 0 means to a function

// One type per base, to hang templates on: Tag_cuMemAlloc.
#define FAULTLINE_DRIVER_BASE(base) struct Tag_##base;
#include "driver_functions.inc"
#undef FAULTLINE_DRIVER_BASE

struct Variant {
  std::string_view base;
  int version;  // as CUDA writes it: 12040 is 12.4
  StreamKind stream;
};
std::span<const Variant> all_variants();  // by base, then version; the order of the list

// The variant that a driver of these headers answers with: the newest not newer than `version`. Index into all_variants().
std::optional<std::size_t> find_variant(std::string_view base, int version, StreamKind stream);

}  // namespace faultline::driver
