#include "rules/out_of_memory/cause.h"

#include <algorithm>

#include "fmt/format.h"

namespace faultline {
namespace {

constexpr ByteInterval kMargin = ByteInterval::exactly(kDriverMarginBytes), kUsual = ByteInterval::exactly(kUsualOutsideBytes);
constexpr std::uint64_t kBeyondAnyDevice = std::uint64_t{1} << 60;
constexpr std::uint64_t kMaterial = kGiB;  // smaller holdings of others are not called a cause

struct Term {
  ByteInterval bytes;
  std::string_view what;
};

class Judge {
 public:
  explicit Judge(const Shortage& shortage) : s_(shortage) {}

  CauseVerdict judge() const {
    if (s_.segment.min >= kBeyondAnyDevice) {
      return {Story::kAbsurd, Confidence::kProved, "that is an exabyte or more, so a size has gone wrong before this line (a negative or overflowed extent); memory is not the problem", ""};
    }
    if (s_.capacity && surely_less(*s_.capacity, s_.requested)) {
      return {Story::kTooLarge, Confidence::kProved, fmt::format("it was asked for in one piece, and {} has {} in all, so no setting can help", s_.device, shown(*s_.capacity)),
              less({{*s_.capacity, "in all"}}, s_.requested)};
    }
    for (const auto step : {&Judge::idle_cache, &Judge::known_pieces, &Judge::limit, &Judge::room_left, &Judge::others, &Judge::pieces, &Judge::unexplained, &Judge::graph_pool, &Judge::full}) {
      if (const std::optional<CauseVerdict> verdict = (this->*step)()) return *verdict;
    }
    return {Story::kOpen, Confidence::kLikely, s_.device + " had no room for it, and the numbers fit more than one cause", ""};
  }

 private:
  using Maybe = std::optional<CauseVerdict>;

  static std::string sum(const std::vector<Term>& terms, bool exactly) {
    std::string text;
    for (const Term& term : terms) text += fmt::format("{}{} {}", text.empty() ? "" : " + ", exactly ? format_count(term.bytes.middle()) + " bytes" : shown(term.bytes), term.what);
    return text;
  }
  // In rounded numbers, or to the byte where rounding would hide the difference.
  static std::string compared(const std::vector<Term>& terms, const char* sign, ByteInterval asked) {
    ByteInterval total;
    for (const Term& term : terms) total = total + term.bytes;
    const bool exactly = shown(total) == shown(asked);
    return fmt::format("{} {} {} asked for", sum(terms, exactly), sign, exactly ? format_count(asked.middle()) + " bytes" : shown(asked));
  }
  static std::string less(const std::vector<Term>& terms, ByteInterval asked) { return compared(terms, "<", asked); }
  static std::string enough(const std::vector<Term>& terms, ByteInterval asked) { return compared(terms, "≥", asked); }

  std::string free_words() const { return s_.free ? fmt::format("{} had {} free", s_.device, shown(*s_.free)) : "how much " + s_.device + " had free is not recorded"; }
  std::string held_words() const {
    if (!s_.reserved || !s_.live) return s_.live ? fmt::format("{} held {}", s_.holder, shown(*s_.live)) : std::string();
    return fmt::format("{} held {}, {} of it in use", s_.holder, shown(*s_.reserved), shown(*s_.live));
  }
  std::string state_words() const { return held_words().empty() ? free_words() : held_words() + ", and " + free_words(); }
  bool picture_known() const { return s_.largest_piece.has_value(); }
  // Enough idle to be called waste: any where the pieces are known, else a tenth of what is reserved.
  bool is_waste(ByteInterval idle) const { return picture_known() ? idle.min > 0 : s_.reserved && idle.min >= s_.reserved->max / 10 && idle.min > 0; }
  ByteInterval held() const { return s_.reserved.value_or(s_.live.value_or(ByteInterval{})); }
  std::string pieces_words() const {
    std::string text = fmt::format("{} of the {} that {} had reserved were free", shown(*s_.idle), shown(held()), s_.holder);
    text += picture_known() ? " in pieces of at most " + shown(*s_.largest_piece) + " between live tensors" : " in pieces between live tensors";
    if (s_.other_streams.max != 0) text += ", " + shown(s_.other_streams) + " of it kept for other streams";
    return text;
  }

  Maybe idle_cache() const {
    if (!s_.returnable || s_.returnable->min == 0) return {};
    if (s_.from_driver) {
      if (!s_.free || !surely_less(*s_.free, s_.segment) || !surely_at_least(*s_.returnable + *s_.free, s_.segment)) return {};
      return CauseVerdict{Story::kIdleCache, Confidence::kProved,
                     fmt::format("{} holds {} of idle cache in whole segments, which with the device's {} would have served it; it gives them back for its own requests only", s_.holder,
                                 shown(*s_.returnable), shown(*s_.free)),
                     enough({{*s_.returnable, "returnable"}, {*s_.free, "free"}}, s_.segment)};
    }
    if (!surely_at_least(*s_.returnable, s_.segment) || (s_.idle && !surely_less(*s_.idle - *s_.returnable, *s_.returnable))) return {};
    return CauseVerdict{Story::kIdleCache, Confidence::kLikely, fmt::format("{} still cached {} in whole free segments that it did not give back at that moment", s_.holder, shown(*s_.returnable)),
                   enough({{*s_.returnable, "returnable"}}, s_.segment)};
  }

  Maybe known_pieces() const {
    if (s_.from_driver || !picture_known() || !s_.idle || !surely_at_least(*s_.idle, s_.requested)) return {};
    return CauseVerdict{Story::kPieces, Confidence::kProved, pieces_words(), enough({{*s_.idle, "idle"}}, s_.requested)};
  }

  // The program's own limit: stated, or the only thing that can have refused.
  Maybe limit() const {
    if (s_.from_driver) return {};
    const ByteInterval wanted = held() + s_.segment;
    const bool has_room = s_.free && surely_at_least(*s_.free, s_.segment), has_much = has_room && surely_at_least(*s_.free, s_.segment + kMargin);
    const bool certain = s_.allowed ? surely_less(*s_.allowed, wanted) : has_much && !s_.states_limits;
    // Where rounding leaves it open, a limit that is stated and a device that was not full still speak for it.
    const bool open = s_.allowed && wanted.max > s_.allowed->min && (has_room || !s_.free);
    if (!certain && !open) return {};
    const std::optional<ByteInterval> let_through = s_.allowed_so_far ? s_.allowed_so_far : s_.allowed;
    if (let_through && s_.live && s_.idle && s_.idle->max > 0 && surely_at_least(*let_through, *s_.live + s_.requested)) {
      const std::string limit_words = s_.allowed ? " of " + shown(*s_.allowed) : ", which is at least " + shown(*let_through);
      return CauseVerdict{Story::kPiecesUnderLimit, certain && picture_known() ? Confidence::kProved : Confidence::kLikely,
                     pieces_words() + "; without them the request would fit the program's own memory limit" + limit_words,
                     enough({{*let_through - *s_.live, "of the limit not in use"}}, s_.requested)};
    }
    const std::string value = s_.allowed ? "limit of " + shown(*s_.allowed) : fmt::format("limit (between {} and {})", shown(let_through.value_or(held())), shown(wanted));
    std::string why = fmt::format("the program's own memory {} was reached; {}", value, held_words().empty() ? shown(held()) + " were held" : held_words());
    if (has_room) why = free_words() + ", but " + why;
    else if (s_.free) why += "; " + free_words() + ", so raising the limit alone would not have helped";
    const std::string comparison = !s_.allowed ? enough({{*s_.free, "free"}}, s_.segment) : certain ? less({{*s_.allowed - held(), "left of the limit"}}, s_.segment) : std::string();
    return CauseVerdict{Story::kLimit, certain ? Confidence::kProved : Confidence::kLikely, why, comparison};
  }

  // The device had room and still said no.
  Maybe room_left() const {
    if (!s_.free) return CauseVerdict{Story::kFreeUnknown, Confidence::kHint, held_words().empty() ? free_words() : held_words() + "; " + free_words(), ""};
    const bool pieces_explain = s_.idle && is_waste(*s_.idle);
    if (!surely_at_least(*s_.free, pieces_explain ? s_.segment : s_.requested)) return {};
    const std::string comparison = enough({{*s_.free, "free"}}, s_.segment);
    if (!surely_at_least(*s_.free, s_.segment + kMargin)) {
      return CauseVerdict{Story::kJustAbove, Confidence::kLikely,
                     free_words() + " and still refused: that close to the end the driver's own granularity and page tables decide, so treat the device as full", comparison};
    }
    if (s_.from_driver) {
      return CauseVerdict{Story::kDriverLimit, Confidence::kHint,
                     free_words() + ", so a limit of its own stood in the way (of a memory pool, of MPS), or no addresses were left in one piece; " + held_words(), comparison};
    }
    return CauseVerdict{Story::kRoomLeft, Confidence::kLikely,
                   free_words() + " and refused: it was not full. A limit outside PyTorch's view, a limit that this version does not print, or a change in the instant between is what remains; the "
                   "numbers cannot tell which", comparison};
  }

  // Known to be somebody else's, or this process's own beside the allocator.
  Maybe others() const {
    if (s_.idle && is_waste(*s_.idle) && surely_at_least(*s_.idle, s_.requested)) return {};
    if (s_.others && s_.others->min >= kMaterial && surely_at_least(*s_.free + *s_.others, s_.segment)) {
      std::string pids;
      for (std::size_t i = 0; i < std::min<std::size_t>(s_.other_pids.size(), 4); ++i) pids += (i == 0 ? "" : ", ") + s_.other_pids[i];
      if (s_.other_pids.size() > 4) pids += ", …";
      return CauseVerdict{Story::kOthers, pids.empty() ? Confidence::kLikely : Confidence::kProved,
                     fmt::format("other programs held {} of {} ({}): without them it would have fitted", pids.empty() ? "at least " + format_bytes(s_.others->min) : shown(*s_.others), s_.device,
                                 pids.empty() ? "which of the listed processes they are cannot be told" : (s_.other_pids.size() == 1 ? "process " : "processes ") + pids),
                     enough({{*s_.free, "free"}, {ByteInterval::exactly(s_.others->min), "of other processes"}}, s_.segment)};
    }
    if (!s_.from_driver && s_.outside && would_fit_without(*s_.outside)) {
      return CauseVerdict{Story::kOutside, Confidence::kLikely,
                     fmt::format("this process held {} of {} outside {}'s allocator, more than a CUDA context and its libraries need; without the excess it would have fitted", shown(*s_.outside),
                                 s_.device, s_.holder),
                     enough({{*s_.free, "free"}, {*s_.outside - kUsual, "outside beyond the usual"}}, s_.segment)};
    }
    return {};
  }

  // Enough memory, but not in one piece.
  Maybe pieces() const {
    if (!s_.idle || !is_waste(*s_.idle) || !surely_at_least(*s_.free + *s_.idle, s_.requested)) return {};
    // Where what nobody explains is more than the waste, it is the better explanation.
    if (const Maybe other = unexplained(); other && !surely_at_least(*s_.idle, s_.requested) && surely_less(*s_.idle, unknown_bytes())) return other;
    return CauseVerdict{Story::kPieces, Confidence::kLikely,
                   fmt::format("{}; together with the device's {} it would fit, so it was the lack of one piece, not of memory, that stopped it", pieces_words(), shown(*s_.free)),
                   enough({{*s_.free, "free"}, {*s_.idle, "idle"}}, s_.requested)};
  }

  // Of the device, neither free nor known to be anybody's.
  ByteInterval unknown_bytes() const {
    return *s_.capacity - *s_.free - held() - s_.outside.value_or(ByteInterval{}) - s_.others.value_or(ByteInterval{});
  }
  bool would_fit_without(ByteInterval taken) const { return taken.min >= kUsualOutsideBytes + kMaterial && surely_at_least(*s_.free + (taken - kUsual), s_.segment); }

  Maybe unexplained() const {
    if (!s_.capacity || (!s_.from_driver && !s_.reserved)) return {};
    const bool at_start = s_.before_start && would_fit_without(*s_.before_start);
    const ByteInterval taken = at_start ? *s_.before_start : unknown_bytes();
    if (!would_fit_without(taken)) return {};
    const std::string comparison = enough({{*s_.free, "free"}, {taken - kUsual, "taken beyond the usual"}}, s_.segment);
    if (at_start) {
      return CauseVerdict{Story::kBeforeStart, Confidence::kLikely,
                     fmt::format("{} of {} were taken before this program asked for anything, most of it by other processes; {}", shown(*s_.before_start), s_.device, state_words()), comparison};
    }
    if (s_.sees_own_requests) {
      return CauseVerdict{Story::kUnseen, Confidence::kHint,
                     fmt::format("{} of {} were held by nothing that this recording shows: other processes, or what the driver keeps for itself; {}", shown(unknown_bytes()), s_.device, state_words()),
                     comparison};
    }
    return CauseVerdict{Story::kUnexplained, Confidence::kLikely,
                   fmt::format("{} of {} were held outside {}'s allocator (most often by other processes, else by other libraries and the CUDA context of this one); {}", shown(unknown_bytes()), s_.device,
                               s_.holder, state_words()),
                   comparison};
  }

  Maybe graph_pool() const {
    if (!s_.graph_pool || !s_.idle || !is_waste(*s_.graph_pool) || !surely_at_least(*s_.free + *s_.idle + *s_.graph_pool, s_.requested)) return {};
    return CauseVerdict{Story::kGraphPool, Confidence::kLikely,
                   fmt::format("{} lay free inside the private pools of CUDA graphs, where only their own graphs can use it; it would have covered the request", shown(*s_.graph_pool)),
                   enough({{*s_.free, "free"}, {*s_.idle, "idle"}, {*s_.graph_pool, "in private pools"}}, s_.requested)};
  }

  // Live memory is what fills the device.
  Maybe full() const {
    if (!s_.idle || !s_.live) return {};
    const ByteInterval idle = *s_.idle + s_.graph_pool.value_or(ByteInterval{}), left = *s_.free + idle;
    if (!surely_less(left, s_.requested)) return nearly_full(idle, left);
    const std::string comparison = less({{*s_.free, "free"}, {idle, "idle"}}, s_.requested);
    if (!s_.capacity) {
      // Others may hold the rest. Where this program has little of what can be seen, and a device twice as large would do, that is as good an explanation.
      const ByteInterval visible = held() + *s_.free;
      const bool could_be_others = s_.live->max < visible.min / 2 && surely_at_least(visible + visible, *s_.live + s_.requested);
      return CauseVerdict{Story::kFull, could_be_others ? Confidence::kHint : Confidence::kLikely,
                     state_words() + "; the input does not say how large the device is, so what others held is not known (--gpu SIZE tells)", comparison};
    }
    if (surely_less(*s_.capacity, *s_.live)) {
      return CauseVerdict{Story::kLentMemory, Confidence::kProved,
                     fmt::format("{} already held {} on a device of {}: the driver had lent it the computer's own memory, as Windows does, and that ran out too", s_.holder, shown(*s_.live),
                                 shown(*s_.capacity)), comparison};
    }
    std::string held = held_words();
    if (s_.from_driver && s_.outside && s_.outside->max != 0) held += ", other libraries " + shown(*s_.outside);
    return CauseVerdict{Story::kFull, Confidence::kProved,
                   fmt::format("{}, and {} of {}: all that was free or idle together is less than the request, so it does not fit, and fragmentation is excluded", held, free_words(), shown(*s_.capacity)),
                   comparison};
  }

  Maybe nearly_full(ByteInterval idle, ByteInterval left) const {
    const ByteInterval after = left - s_.requested;
    if (!s_.capacity || !s_.reserved || idle.max >= s_.reserved->max / 10 || after.max >= s_.capacity->min / 20) return {};
    const std::string why = fmt::format("{} was in effect full: {} was in use by live tensors, and had everything free or idle ({}) been in one piece, at most {} would have been left", s_.device,
                                        shown(*s_.live), shown(left), format_bytes(after.max));
    if (surely_at_least(left, s_.requested)) return CauseVerdict{Story::kAsGoodAsFull, Confidence::kLikely, why + "; whether memory was missing or only one piece of it cannot be told", enough({{*s_.free, "free"}, {idle, "idle"}}, s_.requested)};
    return CauseVerdict{Story::kNearlyFull, Confidence::kLikely, why, ""};
  }

  const Shortage& s_;
};

}  // namespace

const char* CauseVerdict::cause() const {
  switch (story) {
    case Story::kAbsurd: case Story::kTooLarge: case Story::kLentMemory: case Story::kFull: case Story::kNearlyFull: return "exhausted";
    case Story::kIdleCache: case Story::kGraphPool: return "idle-cache";
    case Story::kPieces: case Story::kPiecesUnderLimit: return "fragmented";
    case Story::kLimit: case Story::kDriverLimit: return "own-limit";
    case Story::kOthers: case Story::kBeforeStart: case Story::kUnseen: return "other-process";
    case Story::kOutside: case Story::kUnexplained: return "outside-framework";
    case Story::kJustAbove: case Story::kAsGoodAsFull: case Story::kRoomLeft: case Story::kFreeUnknown: case Story::kOpen: break;
  }
  return "";
}

CauseVerdict cause_of(const Shortage& shortage) { return Judge(shortage).judge(); }

}  // namespace faultline
