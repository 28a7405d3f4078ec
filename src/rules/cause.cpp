#include "rules/cause.h"

#include <algorithm>

#include "fmt/format.h"
#include "rules/inequality.h"
#include "rules/pool_cause.h"

namespace faultline {
namespace {

constexpr ByteInterval kMargin = ByteInterval::exactly(kDriverMarginBytes),
                       kUsual = ByteInterval::exactly(kUsualOutsideBytes);
constexpr std::uint64_t kMaterial = kGiB;  // smaller holdings of others are not called a cause
// idle pieces below a twentieth of what is reserved are no cause: the next requests would fail all the same
constexpr std::uint64_t kWasteParts = 20;

class Judge {
 public:
  explicit Judge(const Shortage& shortage) : s_(shortage) {}

  CauseVerdict judge() const {
    if (s_.segment.min >= kExabyte) {
      return {Story::kAbsurd, Confidence::kProved,
              "a size has gone wrong before this line (a negative or overflowed extent); memory is not the problem",
              ""};
    }
    if (s_.pool) return judge_pool(s_);
    for (const auto step :
         {&Judge::contradiction, &Judge::too_large, &Judge::lent, &Judge::over_capacity, &Judge::whole_need,
          &Judge::idle_cache, &Judge::known_pieces, &Judge::limit, &Judge::mostly_elsewhere, &Judge::room_left,
          &Judge::others, &Judge::pieces, &Judge::unexplained, &Judge::graph_pool, &Judge::full}) {
      if (const std::optional<CauseVerdict> verdict = (this->*step)()) return *verdict;
    }
    return open();
  }

 private:
  using Maybe = std::optional<CauseVerdict>;

  std::string less(const std::vector<Term>& terms, ByteInterval asked) const {
    return compared(terms, "<", {{as_stated(asked), "requested"}});
  }
  std::string enough(const std::vector<Term>& terms, ByteInterval asked) const {
    return compared(terms, "≥", {{as_stated(asked), "requested"}});
  }
  // Of a block that is known by its segment alone, and is nearly as large: the number that was stated, which what holds of the block holds of too.
  ByteInterval as_stated(ByteInterval asked) const {
    const bool is_near =
        asked.min != asked.max && asked.max == s_.segment.max && asked.min <= s_.segment.min && !is_wide(asked);
    return is_near ? s_.segment : asked;
  }

  // Numbers that cannot all be true tell nothing.
  Maybe contradiction() const {
    const auto impossible = [](const std::vector<Term>& part, const std::vector<Term>& whole) {
      return CauseVerdict{Story::kContradiction, Confidence::kHint,
                          "the numbers contradict each other, so they show no cause: " + compared(part, ">", whole),
                          ""};
    };
    if (s_.live && s_.reserved && surely_less(*s_.reserved, *s_.live))
      return impossible({{*s_.live, "in use"}}, {{*s_.reserved, "reserved"}});
    if (s_.idle && s_.reserved && surely_less(*s_.reserved, *s_.idle))
      return impossible({{*s_.idle, "reserved but idle"}}, {{*s_.reserved, "reserved"}});
    if (!s_.capacity) return {};
    const Term whole{*s_.capacity, "in all"};
    for (const auto& [part, what] : {std::pair(s_.free, "free"), std::pair(s_.others, "of other processes")}) {
      if (part && surely_less(*s_.capacity, *part)) return impossible({{*part, what}}, {whole});
    }
    // Lent; but who borrows has none left of his own.
    if (surely_less(*s_.capacity, held())) {
      if (!s_.free || !surely_less(kMargin, *s_.free)) return {};
      return impossible({{held(), "held"}, {*s_.free, "free"}}, {whole});
    }
    if (s_.outside && surely_less(*s_.capacity, *s_.outside))
      return impossible({{*s_.outside, "of this process outside the allocator"}}, {whole});
    std::vector<Term> parts{{held(), "held"}};
    if (s_.free) parts.push_back({*s_.free, "free"});
    if (s_.outside) parts.push_back({*s_.outside, "outside the allocator"});
    if (s_.others) parts.push_back({*s_.others, "of other processes"});
    // The driver's and the framework's views may differ by a little.
    if (surely_less(*s_.capacity + ByteInterval::exactly(s_.capacity->max / 50 + kDriverMarginBytes), total(parts)))
      return impossible(parts, {whole});
    return {};
  }

  Maybe too_large() const {
    if (!s_.capacity || !surely_less(*s_.capacity, s_.requested)) return {};
    return CauseVerdict{Story::kTooLarge, Confidence::kProved,
                        fmt::format("the request was for one piece, and {} has {} in all, so no setting can help",
                                    s_.device, shown(*s_.capacity)),
                        less({{*s_.capacity, "in all"}}, s_.requested)};
  }

  // More is held than the device has: Windows lends the computer's own memory.
  Maybe lent() const {
    if (!s_.capacity || !surely_less(*s_.capacity, held())) return {};
    const std::string words = fmt::format(
        "{} already held {} on a device of {}: the driver had lent it the computer's own memory, as Windows does, and "
        "that ran out too",
        s_.holder, shown(held()), shown(*s_.capacity));
    if (s_.live && surely_less(*s_.capacity, *s_.live + s_.requested)) {
      return CauseVerdict{
          Story::kLentMemory, Confidence::kProved, words,
          compared({{*s_.live, "in use"}, {s_.requested, "requested"}}, ">", {{*s_.capacity, "in all"}})};
    }
    return CauseVerdict{
        Story::kLentRoom, Confidence::kLikely,
        words + "; how much of it lay on the device is not known, so what was missing is not known either", ""};
  }

  // Where nothing tells what a pool holds beside what is live.
  Maybe over_capacity() const {
    const bool is_stated = s_.capacity && s_.live && !s_.reserved && !s_.allowed && !s_.whole_live;
    if (!is_stated || !surely_less(*s_.capacity, *s_.live + s_.requested)) return {};
    return CauseVerdict{Story::kFull, Confidence::kProved,
                        fmt::format("{} held {}: with the request that is more than the {} that {} has, so it does not "
                                    "fit, and neither fragmentation nor another process is the reason",
                                    s_.holder, shown(*s_.live), shown(*s_.capacity), s_.device),
                        compared({{*s_.live, "in use"}, {s_.requested, "requested"}}, ">", {{*s_.capacity, "in all"}})};
  }

  // A dry run goes on past the failure: what the program holds at its fullest is known.
  ByteInterval beside() const { return *s_.capacity - *s_.free - held(); }
  bool whole_known() const { return s_.whole_live && s_.capacity && s_.free; }
  Maybe whole_need() const {
    if (!whole_known() || !surely_less(*s_.capacity, *s_.whole_live + beside())) return {};
    return CauseVerdict{Story::kWholeNeed, Confidence::kProved,
                        fmt::format("the program goes on to hold {} at one time; {} has {}, {} of it taken beside {}. "
                                    "It would not fit even without any waste",
                                    shown(*s_.whole_live), s_.device, shown(*s_.capacity), shown(beside()), s_.holder),
                        compared({{*s_.whole_live, "in use at the fullest"}, {beside(), "beside it"}}, ">",
                                 {{*s_.capacity, "in all"}})};
  }

  std::string free_words() const {
    if (s_.free) return fmt::format("{} had {} free", s_.device, shown(*s_.free));
    return fmt::format("the {} does not say how much {} had free", s_.states_limits ? "message" : "recording",
                       s_.device);
  }
  std::string held_words() const {
    if (!s_.reserved || !s_.live)
      return s_.live ? fmt::format("{} held {}", s_.holder, shown(*s_.live)) : std::string();
    return fmt::format("{} held {}, {} of it in use", s_.holder, shown(*s_.reserved), shown(*s_.live));
  }
  std::string state_words() const {
    return held_words().empty() ? free_words() : held_words() + ", and " + free_words();
  }
  bool picture_known() const { return s_.largest_piece.has_value(); }
  // Enough idle to be called waste: a twentieth of what is reserved, or any where all that the program needs is known to fit without it.
  bool is_waste(ByteInterval idle) const {
    if (idle.min == 0) return false;
    return (whole_known() && surely_at_least(*s_.capacity, *s_.whole_live + beside())) ||
           (s_.reserved && idle.min >= s_.reserved->max / kWasteParts);
  }
  bool within_limit() const {
    return !s_.allowed || (s_.live && surely_at_least(*s_.allowed, *s_.live + s_.requested));
  }
  ByteInterval held() const { return s_.reserved.value_or(s_.live.value_or(ByteInterval{})); }
  std::string pieces_words() const {
    std::string text =
        fmt::format("{} of the {} that {} had reserved was free", shown(*s_.idle), shown(held()), s_.holder);
    text += picture_known() ? " in pieces of at most " + shown(*s_.largest_piece) + " between live tensors"
                            : " in pieces between live tensors";
    if (s_.other_streams.max != 0) text += ", " + shown(s_.other_streams) + " of it kept for other streams";
    return text;
  }

  Maybe idle_cache() const {
    if (!s_.returnable || s_.returnable->min == 0) return {};
    if (s_.from_driver) {
      if (!s_.free || !surely_less(*s_.free, s_.segment) || !surely_at_least(*s_.returnable + *s_.free, s_.segment))
        return {};
      return CauseVerdict{Story::kIdleCache, Confidence::kProved,
                          fmt::format("{} holds {} of idle cache in whole segments, which with the device's {} would "
                                      "have served it; it frees them for its own requests only",
                                      s_.holder, shown(*s_.returnable), shown(*s_.free)),
                          enough({{*s_.returnable, "returnable"}, {*s_.free, "free"}}, s_.segment)};
    }
    if (!surely_at_least(*s_.returnable, s_.segment) ||
        (s_.idle && !surely_less(*s_.idle - *s_.returnable, *s_.returnable)))
      return {};
    return CauseVerdict{Story::kIdleCache, Confidence::kLikely,
                        fmt::format("{} still cached {} in whole free segments that it did not free at that moment",
                                    s_.holder, shown(*s_.returnable)),
                        enough({{*s_.returnable, "returnable"}}, s_.segment)};
  }

  Maybe known_pieces() const {
    if (s_.from_driver || !picture_known() || !s_.idle || !is_waste(*s_.idle) ||
        !surely_at_least(*s_.idle, s_.requested))
      return {};
    return CauseVerdict{Story::kPieces, Confidence::kProved, pieces_words(),
                        enough({{*s_.idle, "idle"}}, s_.requested)};
  }

  // The program's own limit: stated, or the only thing that can have refused; and the device would have served it.
  Maybe limit() const {
    if (s_.from_driver) return {};
    const ByteInterval wanted = held() + s_.segment;
    std::optional<ByteInterval> room = s_.free;
    if (!room && s_.capacity && surely_less(*s_.capacity, wanted)) room = *s_.capacity - held();  // at most
    const bool has_room = room && surely_at_least(*room, s_.segment),
               has_much = has_room && surely_at_least(*room, s_.segment + kMargin);
    const bool certain = s_.allowed ? surely_less(*s_.allowed, wanted) : has_much && !s_.states_limits;
    // Where rounding leaves it open, a limit that is stated and a device that was not full still speak for it.
    const bool open = s_.allowed && wanted.max > s_.allowed->min && (has_room || !room);
    if (!certain && !open) return {};
    if (room && surely_less(*room, s_.segment)) {
      if (!s_.allowed || within_limit() || !s_.live || !s_.idle || surely_less(*room + *s_.idle, s_.requested))
        return {};
      return CauseVerdict{Story::kLimitAndFull, Confidence::kLikely,
                          fmt::format("the program's own memory limit of {} was reached, and the device had no room "
                                      "for it either, so raising the limit alone would not have helped; {}",
                                      shown(*s_.allowed), state_words()),
                          less({{*room, "free"}}, s_.segment)};
    }
    const std::optional<ByteInterval> let_through = s_.allowed_so_far ? s_.allowed_so_far : s_.allowed;
    if (let_through && s_.live && s_.idle && is_waste(*s_.idle) &&
        surely_at_least(*let_through, *s_.live + s_.requested)) {
      const std::string limit_words =
          s_.allowed ? " of " + shown(*s_.allowed) : ", which is at least " + shown(*let_through);
      return CauseVerdict{
          Story::kPiecesUnderLimit,
          certain && s_.allowed && picture_known() ? Confidence::kProved : Confidence::kLikely,
          pieces_words() + "; without those pieces the request would fit the program's own memory limit" + limit_words,
          compared({{*let_through, "within the limit"}}, "≥", {{*s_.live, "in use"}, {s_.requested, "requested"}})};
    }
    const std::string holds = held_words().empty() ? shown(held()) + " was held" : held_words();
    std::string why =
        s_.allowed ? fmt::format("the program's own memory limit of {} was reached; {}", shown(*s_.allowed), holds)
                   : fmt::format(
                         "refused: it was not full. A limit that the program set itself (between {} and {}) is "
                         "the likely reason, though nothing here states one; {}",
                         shown(let_through.value_or(held())), shown(wanted), holds);
    if (has_room) why = free_words() + (s_.allowed ? ", but " : " and ") + why;
    const std::string comparison =
        !s_.allowed ? enough({{*s_.free, "free"}}, s_.segment)
        : certain   ? compared({{held(), "held"}, {s_.segment, "requested"}}, ">", {{*s_.allowed, "allowed"}})
                    : std::string();
    const bool proved = certain && s_.allowed && (has_room || !room);  // a limit that nobody states is inferred
    return CauseVerdict{Story::kLimit, proved ? Confidence::kProved : Confidence::kLikely, why, comparison};
  }

  // Most of the device is held by others, and the little that is free is the driver's last: whatever this program does, it is not what fills it.
  Maybe mostly_elsewhere() const {
    if (s_.from_driver || !s_.capacity || !s_.free || (!s_.reserved && !s_.live) ||
        surely_at_least(*s_.free, s_.segment + kMargin))
      return {};
    const ByteInterval elsewhere = *s_.capacity - *s_.free - held();
    if (!surely_at_least(elsewhere + elsewhere, *s_.capacity) || !would_fit_without(elsewhere)) return {};
    if (const Maybe known = others()) return known;
    return s_.idle && is_waste(*s_.idle) && surely_at_least(*s_.idle, s_.requested) ? Maybe() : unexplained();
  }

  // The device had room and still said no.
  Maybe room_left() const {
    if (!s_.free)
      return CauseVerdict{Story::kFreeUnknown, Confidence::kHint,
                          held_words().empty() ? free_words() : held_words() + "; " + free_words(), ""};
    if (!surely_at_least(*s_.free, s_.segment)) return rounding();
    const std::string comparison = enough({{*s_.free, "free"}}, s_.segment);
    if (!surely_at_least(*s_.free, s_.segment + kMargin)) {
      return CauseVerdict{Story::kJustAbove, Confidence::kLikely,
                          free_words() +
                              " and still refused: that close to the end the driver's own granularity and page tables "
                              "decide, so treat the device as full",
                          comparison};
    }
    if (s_.from_driver) {
      return CauseVerdict{Story::kDriverLimit, Confidence::kHint,
                          free_words() +
                              ", so a limit of its own stood in the way (of a memory pool, of MPS), or no addresses "
                              "were left in one piece; " +
                              held_words(),
                          comparison};
    }
    return CauseVerdict{
        Story::kRoomLeft, Confidence::kLikely,
        free_words() +
            " and refused: it was not full. A limit outside PyTorch's view, a limit that this version "
            "does not print, or a change in the instant between is what remains; the numbers do not show which",
        comparison};
  }

  // Enough for the block, not for the segment that PyTorch takes for it.
  Maybe rounding() const {
    if ((s_.idle && is_waste(*s_.idle)) || !surely_less(*s_.free, s_.segment) ||
        !surely_at_least(*s_.free, s_.requested) || !within_limit())
      return {};
    return CauseVerdict{Story::kRounding, Confidence::kLikely,
                        fmt::format("{}, which is enough for the block, but {} takes whole segments from the driver, "
                                    "here {}; treat the device as full",
                                    free_words(), s_.holder, shown(s_.segment)),
                        compared({{s_.segment, "for a segment"}}, ">", {{*s_.free, "free"}}) + "; " +
                            enough({{*s_.free, "free"}}, s_.requested)};
  }

  // Known to be somebody else's, or this process's own beside the allocator.
  Maybe others() const {
    if (s_.idle && is_waste(*s_.idle) && surely_at_least(*s_.idle, s_.requested)) return {};
    if (s_.others && s_.others->min >= kMaterial && surely_at_least(*s_.free + *s_.others, s_.segment)) {
      std::string pids;
      for (std::size_t i = 0; i < std::min<std::size_t>(s_.other_pids.size(), 4); ++i)
        pids += (i == 0 ? "" : ", ") + s_.other_pids[i];
      if (s_.other_pids.size() > 4) pids += ", …";
      const bool is_last = surely_at_least(*s_.free, s_.segment);  // of the driver's own, which it does not give
      const std::string who = pids.empty() ? "which of the listed processes they are is not known"
                                           : (s_.other_pids.size() == 1 ? "process " : "processes ") + pids + s_.doubt;
      return CauseVerdict{
          Story::kOthers, pids.empty() || is_last || !s_.doubt.empty() ? Confidence::kLikely : Confidence::kProved,
          fmt::format("other {} held {} of {} ({}): without them it would have fitted{}",
                      s_.doubt.empty() ? "programs" : "processes",
                      pids.empty() ? "at least " + format_bytes(s_.others->min) : shown(*s_.others), s_.device, who,
                      is_last
                          ? fmt::format("; {} were still free, but that close to the end the driver's own needs decide",
                                        shown(*s_.free))
                          : ""),
          is_last ? own_fits() : enough({{*s_.free, "free"}, {*s_.others, "of other processes"}}, s_.segment)};
    }
    if (!s_.from_driver && s_.outside && would_fit_without(*s_.outside)) {
      return CauseVerdict{Story::kOutside, Confidence::kLikely,
                          fmt::format("this process held {} of {} outside {}'s allocator, more than a CUDA context and "
                                      "its libraries need; without the excess it would have fitted",
                                      shown(*s_.outside), s_.device, s_.holder),
                          beyond_usual({*s_.outside, "outside the allocator"})};
    }
    return {};
  }

  // Alone on the device this program would have room.
  std::string own_fits() const {
    const Term own =
        s_.outside ? Term{held() + *s_.outside, "of this process"} : Term{held() + kUsual, "of this process, at most,"};
    if (!surely_at_least(*s_.capacity, own.bytes + s_.segment)) return {};
    return compared({{*s_.capacity, "in all"}}, "≥", {own, {s_.segment, "requested"}});
  }
  std::string beyond_usual(Term taken) const {
    return compared({{*s_.free, "free"}, taken}, "≥", {{s_.segment, "requested"}, {kUsual, "that a context may take"}});
  }

  // Enough memory, but not in one piece.
  Maybe pieces() const {
    if (!s_.idle || !within_limit() || !is_waste(*s_.idle) || !surely_at_least(*s_.free + *s_.idle, s_.requested))
      return {};
    // Where what nobody explains is more than the waste, it is the better explanation.
    if (const Maybe other = unexplained();
        other && !surely_at_least(*s_.idle, s_.requested) && surely_less(*s_.idle, unknown_bytes()))
      return other;
    return CauseVerdict{
        Story::kPieces, Confidence::kLikely,
        fmt::format("{}. {} enough, but not in one piece: memory was fragmented, not full", pieces_words(),
                    s_.free->max == 0 ? "That is" : "With the device's " + shown(*s_.free) + " that is"),
        enough({{*s_.free, "free"}, {*s_.idle, "idle"}}, s_.requested)};
  }

  // Of the device, neither free nor known to be anybody's.
  ByteInterval unknown_bytes() const {
    return *s_.capacity - *s_.free - held() - s_.outside.value_or(ByteInterval{}) - s_.others.value_or(ByteInterval{});
  }
  bool would_fit_without(ByteInterval taken) const {
    return taken.min >= kUsualOutsideBytes + kMaterial && surely_at_least(*s_.free + (taken - kUsual), s_.segment);
  }

  Maybe unexplained() const {
    if (!s_.capacity || (!s_.from_driver && !s_.reserved)) return {};
    const bool at_start = s_.before_start && would_fit_without(*s_.before_start);
    const ByteInterval taken = at_start ? *s_.before_start : unknown_bytes();
    if (!would_fit_without(taken)) return {};
    const std::string comparison = beyond_usual({taken, at_start ? "taken before the start" : "held by others"});
    if (at_start) {
      return CauseVerdict{
          Story::kBeforeStart, Confidence::kLikely,
          fmt::format("{} of {} was taken before this program requested anything, most of it by other processes; {}",
                      shown(*s_.before_start), s_.device, state_words()),
          comparison};
    }
    if (s_.sees_own_requests) {
      return CauseVerdict{Story::kUnseen, Confidence::kHint,
                          fmt::format("{} of {} was held by nothing that this recording shows: other processes, or "
                                      "what the driver keeps for itself; {}",
                                      shown(unknown_bytes()), s_.device, state_words()),
                          comparison};
    }
    return CauseVerdict{Story::kUnexplained, Confidence::kLikely,
                        fmt::format("{} of {} was held outside {}'s allocator (most often by other processes, else by "
                                    "other libraries and the CUDA context of this one); {}",
                                    shown(unknown_bytes()), s_.device, s_.holder, state_words()),
                        comparison};
  }

  Maybe graph_pool() const {
    if (!s_.graph_pool || !s_.idle || !within_limit() || !is_waste(*s_.graph_pool) ||
        !surely_at_least(*s_.free + *s_.idle + *s_.graph_pool, s_.requested))
      return {};
    return CauseVerdict{
        Story::kGraphPool, Confidence::kLikely,
        fmt::format("{} was free inside the private pools of CUDA graphs, where only their own graphs can use it; it "
                    "would have covered the request",
                    shown(*s_.graph_pool)),
        enough({{*s_.free, "free"}, {*s_.idle, "idle"}, {*s_.graph_pool, "in private pools"}}, s_.requested)};
  }

  // Live memory is what fills the device.
  Maybe full() const {
    if (!s_.idle || !s_.live) return {};
    const ByteInterval idle = *s_.idle + s_.graph_pool.value_or(ByteInterval{}), left = *s_.free + idle;
    if (!surely_less(left, s_.requested)) return in_effect_full(idle, left);
    const std::string comparison = less({{*s_.free, "free"}, {idle, "idle"}}, s_.requested);
    if (!s_.capacity) {
      // Others may hold the rest. Where this program has little of what can be seen, and a device twice as large would do, that is as good an explanation.
      const ByteInterval visible = held() + *s_.free;
      const bool could_be_others =
          s_.live->max < visible.min / 2 && surely_at_least(visible + visible, *s_.live + s_.requested);
      return CauseVerdict{
          Story::kFull, could_be_others ? Confidence::kHint : Confidence::kLikely,
          state_words() +
              "; the input does not say how large the device is, so what others held is not known (--gpu SIZE says it)",
          comparison};
    }
    std::string held = held_words();
    if (s_.from_driver && s_.outside && s_.outside->max != 0) held += ", other libraries " + shown(*s_.outside);
    return CauseVerdict{Story::kFull, Confidence::kProved,
                        fmt::format("{}, and {} of {}. All that was free or idle is together less than the request: it "
                                    "does not fit, and fragmentation is not the cause",
                                    held, free_words(), shown(*s_.capacity)),
                        comparison};
  }

  // It may have been one piece that was missing; there was next to nothing beside what is live.
  Maybe in_effect_full(ByteInterval idle, ByteInterval left) const {
    if (!s_.reserved || is_waste(*s_.idle)) return {};
    const bool fits = within_limit() && surely_at_least(left, s_.requested);
    // What is left behind it is told of the segment: of the block only bounds are known.
    const bool takes_segment = fits && surely_at_least(left, s_.segment);
    std::string why = fmt::format("{} was in effect full: {} was in use by live tensors", s_.device, shown(*s_.live));
    if (s_.outside && s_.outside->min >= kMargin.min)
      why += fmt::format(", and {} of this process lay outside {}'s allocator (the CUDA context and libraries)",
                         shown(*s_.outside), s_.holder);
    why += fmt::format(
        "; all that was free or idle, {} together, {}", is_wide(left) ? range_words(left) : shown(left),
        takes_segment ? "would have served this one request if it were one piece, and left " + shown(left - s_.segment)
        : fits        ? std::string("would have served this one request if it were one piece, and left "
                                           "next to nothing")
                      : std::string("may or may not have served this one request in one piece"));
    return CauseVerdict{
        Story::kAsGoodAsFull, Confidence::kLikely, why,
        fits ? enough({{*s_.free, "free"}, {idle, "idle"}}, takes_segment ? s_.segment : s_.requested) : std::string()};
  }

  // Several remain: each with what would make it the one.
  CauseVerdict open() const {
    std::vector<std::string> causes;
    std::string numbers;
    if (s_.idle) {
      std::vector<Term> left = {{*s_.free, "free"}, {*s_.idle, "idle"}};
      if (s_.graph_pool) left.push_back({*s_.graph_pool, "in private pools"});
      const ByteInterval unused = total(left);
      numbers = fmt::format(" ({} is {}, and {} were needed)", sum_words(left), range_words(unused),
                            range_words(s_.requested));
      const char* sum = s_.graph_pool ? "free + idle + the pools" : "free + idle";
      if (unused.min < s_.requested.max) causes.push_back(fmt::format("exhausted, if {} < what was needed", sum));
      if (unused.max >= s_.requested.min && s_.idle->max != 0)
        causes.push_back(fmt::format("fragmented, if {} ≥ what was needed", sum));
    } else {
      const std::string missing = format_bytes((s_.requested - *s_.free).max);
      causes.push_back(fmt::format("exhausted, if less than {} was idle in what {} held", missing, s_.holder));
      causes.push_back(fmt::format("fragmented, if {} or more was, in pieces", missing));
    }
    if (s_.allowed && (held() + s_.segment).max > s_.allowed->min)
      causes.push_back(fmt::format("the program's own limit, if {} > {} allowed",
                                   sum_words({{held(), "held"}, {s_.segment, "requested"}}), shown(*s_.allowed)));
    else if (!s_.allowed && !s_.states_limits && s_.free->max >= s_.segment.min)
      causes.push_back(fmt::format("a limit of the program's own, if {} free ≥ {} requested", range_words(*s_.free),
                                   range_words(s_.segment)));
    if (!s_.capacity)
      causes.push_back("other programs, if they held the rest of the device, whose size the input does not say");
    else if (const ByteInterval others = unknown_bytes();
             others.max > kUsualOutsideBytes && (*s_.free + others).max >= s_.segment.min + kUsualOutsideBytes)
      causes.push_back(fmt::format(
          "other programs or libraries, if {} free + what they held of the {} that nobody accounts for ≥ {} "
          "requested",
          shown(*s_.free), range_words(others), shown(s_.segment)));
    std::string list;
    for (const std::string& cause : causes) list += (list.empty() ? "" : "; ") + cause;
    const char* count =
        causes.size() > 1 ? "the numbers fit more than one cause" : "the numbers do not prove the cause";
    return {Story::kOpen, Confidence::kLikely,
            fmt::format("{} had no room for it, and {}{}: {}", s_.device, count, numbers, list), ""};
  }

  const Shortage& s_;
};

}  // namespace

CauseVerdict cause_of(const Shortage& shortage) { return Judge(shortage).judge(); }

}  // namespace faultline
