// The names of operations that a dry run, or a recording put together from moments, marks a place of a trace with. python/faultline/plan/session/marks.py has those that a dry run writes.
#pragma once

#include <string_view>

namespace faultline {

inline constexpr std::string_view kLookMark = "look at what is alive";  // ends a look at what is alive
inline constexpr std::string_view kStopMark = "dry run stopped";        // what is let go behind it the stop let go
inline constexpr std::string_view kCallMark = "results of one call";    // of all that is allocated until it ends
// Followed by what tells it from others of its kind.
inline constexpr std::string_view kPhaseMark = "phase ";             // until the next: "phase training"
inline constexpr std::string_view kTurnMark = "turn of optimizer ";  // a step of it, by its number
inline constexpr std::string_view kRoundMark = "round of loop ";     // one begins, by the loop's number

}  // namespace faultline
