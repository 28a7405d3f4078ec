// How rules speak of a piece of memory: which tensor or allocation it is, and where an address lies beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "facts/facts.h"
#include "rules/finding.h"

namespace faultline {

// "a tensor of 16.00 KiB", "weights (float32[1024])", "an allocation of 2.00 MiB", "pinned host memory of 4.00 KiB".
std::string memory_words(const Facts& facts, AllocationId allocation);

// "4 bytes past the end of a tensor of 16.00 KiB", "inside …, which was freed". Empty where nothing is near.
std::string place_words(const Facts& facts, const AddressPlace& place);

// Which memory a finding is about, with where it was allocated and freed; the place must be known.
void set_memory(const Facts& facts, const AddressPlace& place, std::string_view then, Finding& finding);

std::string hex(std::uint64_t address);  // "0x7f…"

// A small number of bytes is counted, a large one rounded: "4 bytes", "1.50 MiB".
std::string distance_words(std::uint64_t size_bytes);

}  // namespace faultline
