// How rules name places and holders of memory: always the user's own line first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "facts/facts.h"
#include "rules/finding.h"

namespace faultline {

Location location_of_frame(const Trace& trace, StackId frame);
// The innermost frame of the user's program; a library's where the stack has no user frame; unknown for the empty stack.
Location location_of(const Facts& facts, StackId stack);
// The user's frames from the one above `location_of` outwards, at most `limit`.
std::vector<Location> callers_of(const Facts& facts, StackId stack, std::size_t limit = 4);
// "in linear.py:134 forward": the library frame where the allocation really happened, empty when that is the user's own line.
std::string library_detail(const Facts& facts, StackId stack);
// The same frame as what stands below the user's line ("inside"), where that is not itself a library's; a backward pass and dispatch have none to tell.
void add_inside(const Facts& facts, StackId stack, Finding& finding);
std::string short_place(const Location& location);  // "train.py:12"

// Where an event without a stack of its own happened, as well as the recording can tell.
struct Whereabouts {
  Location location;
  std::vector<Location> callers;
  bool in_backward = false;  // the line is that of the backward() call
  bool is_guess = false;     // the last user line seen before
};
Whereabouts whereabouts(const Facts& facts, std::size_t device_slot, std::uint32_t event);

// Who holds the live memory of a device right after an event: by user line and category, most bytes first.
std::vector<Holder> holders_at(const Facts& facts, std::size_t device_slot, std::uint32_t event, std::size_t limit = 8);
// The same, and once more with more of the lines; `more` is empty where the first list has them all.
struct HolderLists {
  std::vector<Holder> most, more;
};
HolderLists holder_lists_at(const Facts& facts, std::size_t device_slot, std::uint32_t event, std::size_t limit,
                            std::size_t more_limit);
// The category of the last row, which stands for all lines that are not listed.
inline constexpr std::string_view kUnlistedLines = "the rest";

// A finding about a line: rule, severity, confidence and device as given, the place and its callers from the stack.
Finding finding_at(const Facts& facts, std::string_view rule, Severity severity, Confidence confidence,
                   std::uint16_t device, StackId stack);

// Where the memory was made and, if it was freed by then, where that was.
void tell_memory(const Facts& facts, AllocationId allocation, bool was_freed, Finding& finding);

// Stable across runs: the rule and the place, no addresses, sizes or times.
std::string fingerprint(std::string_view rule, const Location& location, std::string_view extra = {});

}  // namespace faultline
