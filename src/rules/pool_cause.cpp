#include "rules/pool_cause.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "rules/inequality.h"

namespace faultline {
namespace {

// From its chunks where the input has them, else from its statistics.
class PoolJudge {
 public:
  explicit PoolJudge(const Shortage& shortage) : s_(shortage), p_(*shortage.pool) {}

  CauseVerdict judge() const {
    if (p_.limit && s_.reserved && surely_less(*p_.limit, *s_.reserved)) {
      return {Story::kPoolOpen, Confidence::kHint,
              "the numbers contradict each other, so they show no cause: " +
                  compared({{*s_.reserved, "taken"}}, ">", {{*p_.limit, "that the pool may take"}}),
              ""};
    }
    if (!p_.knows_request) return size_unknown();
    for (const auto step :
         {&PoolJudge::too_large, &PoolJudge::room, &PoolJudge::refused, &PoolJudge::in_effect_full, &PoolJudge::pieces,
          &PoolJudge::regions, &PoolJudge::slack, &PoolJudge::full, &PoolJudge::statistics}) {
      if (const std::optional<CauseVerdict> verdict = (this->*step)()) return *verdict;
    }
    return open();
  }

 private:
  using Maybe = std::optional<CauseVerdict>;
  // From its chunks, or from the list of its bins.
  bool has_picture() const { return s_.idle && s_.largest_piece; }
  // Pieces of less than a twentieth of the pool are no cause: the next requests would fail all the same.
  bool is_waste(ByteInterval unused) const {
    constexpr std::uint64_t kWasteParts = 20;
    const std::uint64_t most = p_.limit ? p_.limit->max : s_.reserved ? s_.reserved->max : 0;
    return unused.min >= most / kWasteParts;
  }
  Term asked() const { return {s_.requested, "requested"}; }
  Term idle() const { return {*s_.idle, "free in the pool"}; }
  Term left() const { return {*p_.left, "not yet taken"}; }

  // Rounded as it was printed, or told only by what failed: then the most that it can be.
  static std::string limit_words(ByteInterval limit) {
    return is_wide(limit) ? "at most " + format_bytes(limit.max) : shown(limit);
  }
  // "TensorFlow's pool GPU_0_bfc may take 13.43 GiB and has taken 13.40 GiB, of which 9.00 GiB are in use"
  std::string state() const {
    std::string words = p_.words;
    if (p_.limit) words += " may take " + limit_words(*p_.limit);
    if (s_.reserved) words += (p_.limit ? " and has taken " : " has taken ") + shown(*s_.reserved);
    if (s_.live && (s_.reserved || p_.limit))
      words += ", of which " + shown(*s_.live) + " is in use";
    else if (s_.live)
      words += " has " + shown(*s_.live) + " in use";
    return words;
  }
  // What no piece is larger than.
  static std::string piece_words(ByteInterval piece) { return is_wide(piece) ? format_bytes(piece.max) : shown(piece); }
  std::string left_words() const {
    return p_.left ? fmt::format(", and it may take {} more", limit_words(*p_.left)) : std::string();
  }
  // A hundredth without a chunk in use is wholly free; one with a chunk may be almost free. A free piece reaches less than one hundredth beyond a row of such at each end.
  std::string bar_words() const {
    if (p_.bar->free == 0)
      return "by the bar in its log, each hundredth of what it has taken is at least partly in use, so no free piece "
             "is as "
             "large as 2 %";
    std::string words = fmt::format(
        "by the bar in its log, at least {} % of what it has taken is free, and no free piece is as large as {} %",
        p_.bar->free, std::min<std::uint64_t>(p_.bar->longest + 2, 100));
    const std::uint64_t longest = p_.bar->longest;
    if (longest >= 10 && p_.knows_request && s_.requested.max < kExabyte)
      words += fmt::format(
          " (the longest row of free hundredths, {}, did not hold the request: if it lies in one "
          "region, the pool had taken less than {})",
          longest, format_bytes(s_.requested.max / longest * 100));
    return words;
  }
  // Who had what the pool did not get.
  std::string withheld() const {
    return p_.memory == PoolMemory::kHost
               ? "host memory (RAM), or the part of it that may be locked, ran out"
               : "the device's memory was held outside this pool, by another process, or by this one's CUDA context "
                 "and libraries";
  }
  bool left_is_short() const { return !p_.left || surely_less(*p_.left, s_.requested); }

  Maybe too_large() const {
    if (!p_.limit && p_.base_limit && p_.memory == PoolMemory::kGpu && surely_less(*p_.base_limit, s_.requested)) {
      // of the device it would be four fifths
      const bool is_sure = s_.requested.min / 5 > p_.base_limit->max / 4;
      return CauseVerdict{Story::kPoolTooLarge, is_sure ? Confidence::kProved : Confidence::kLikely,
                          fmt::format("that is more than the {} that XLA plans with on this device (the \"base limit\" "
                                      "of its message), which {}",
                                      shown(*p_.base_limit),
                                      is_sure ? "is what its pool may take, or four fifths of the device"
                                              : "is what its pool may take unless it is set larger"),
                          compared({asked()}, ">", {{*p_.base_limit, "that XLA plans with"}})};
    }
    if (!p_.limit || !surely_less(*p_.limit, s_.requested)) return {};
    return CauseVerdict{Story::kPoolTooLarge, Confidence::kProved,
                        fmt::format("that is more than {} may ever take, {}", p_.words, limit_words(*p_.limit)),
                        compared({asked()}, ">", {{*p_.limit, "that the pool may take"}})};
  }

  // The picture shows a place for it all the same.
  Maybe room() const {
    if (!has_picture() || !surely_at_least(*s_.largest_piece, s_.requested)) return {};
    return CauseVerdict{Story::kPoolRoom, Confidence::kHint,
                        fmt::format("{} shows a free piece of {}, which would have held it: the map is of another "
                                    "moment, or that piece was kept for other requests; it shows no cause",
                                    p_.words, shown(*s_.largest_piece)),
                        ""};
  }

  // A pool that may grow asks the driver for a region, and where that is refused for nine tenths of it, down to the request: the last region that was refused is this
  // request's where the next one would have been smaller than it.
  bool refused_down_to_request() const {
    return p_.refused && surely_at_least(*p_.refused, s_.requested) && is_last_refusal(*p_.refused, s_.requested);
  }

  Maybe refused() const {
    if (!p_.left && refused_down_to_request()) {
      return CauseVerdict{
          Story::kPoolRefused, Confidence::kProved,
          fmt::format("{} had no free piece that large and was free to grow, but the driver refused it, down to {}: "
                      "{}{}",
                      p_.words, shown(*p_.refused), withheld(), p_.bar ? "; " + bar_words() : ""),
          compared({{*p_.refused, "refused by the driver"}}, "≥", {asked()})};
    }
    if (!p_.left || !surely_at_least(*p_.left, s_.requested)) return {};
    return CauseVerdict{
        Story::kPoolRefused, p_.refused ? Confidence::kProved : Confidence::kLikely,
        fmt::format("{}, and within its limit it could have taken {} more, but the {} did not give it{}: {}", state(),
                    shown(*p_.left), p_.memory == PoolMemory::kHost ? "system" : "driver",
                    p_.refused ? fmt::format(" ({} were refused)", shown(*p_.refused)) : "", withheld()),
        compared({left()}, "≥", {asked()})};
  }

  Maybe in_effect_full() const {
    if (!has_picture() || !left_is_short() || !surely_less(*s_.largest_piece, s_.requested)) return {};
    const ByteInterval unused = *s_.idle + p_.left.value_or(ByteInterval{});
    if (is_waste(unused) || !surely_at_least(unused, s_.requested)) return {};
    return CauseVerdict{
        Story::kPoolAsGoodAsFull, Confidence::kLikely,
        fmt::format("{}: it was in effect full. All that is free in it{}, {}, would have served this one request if it "
                    "were one piece, and left next to nothing",
                    state(), p_.left ? " or not yet taken" : "", shown(unused)),
        compared(p_.left ? std::vector<Term>{idle(), left()} : std::vector<Term>{idle()}, "≥", {asked()})};
  }

  Maybe pieces() const {
    if (!has_picture() || !surely_at_least(*s_.idle, s_.requested) || !surely_less(*s_.largest_piece, s_.requested) ||
        !left_is_short())
      return {};
    return CauseVerdict{
        Story::kPoolPieces, Confidence::kProved,
        fmt::format("{}; {} is free, but in pieces of at most {}{}", state(), shown(*s_.idle),
                    piece_words(*s_.largest_piece), left_words()),
        compared({idle()}, "≥", {asked()}) + "; " + compared({asked()}, ">", {{*s_.largest_piece, "in one piece"}})};
  }

  // The pool takes memory in regions, and a chunk lies in one of them.
  Maybe regions() const {
    if (!has_picture() || !p_.left || !surely_at_least(*s_.idle + *p_.left, s_.requested) ||
        !surely_less(*s_.largest_piece, s_.requested) || !left_is_short())
      return {};
    return CauseVerdict{
        Story::kPoolRegions, Confidence::kProved,
        fmt::format("{}; {} is free in it, in pieces of at most {}{}: together that is enough, but a request must "
                    "lie in one region, and what is not yet taken does not join what is",
                    state(), shown(*s_.idle), piece_words(*s_.largest_piece), left_words()),
        compared({idle(), left()}, "≥", {asked()}) + "; " +
            compared({asked()}, ">", {{*s_.largest_piece, "in one piece"}}) + "; " +
            compared({asked()}, ">", {left()})};
  }

  Maybe slack() const {
    if (!has_picture() || !p_.left || !p_.slack || !is_waste(*s_.idle + *p_.left + *p_.slack) ||
        !surely_less(*s_.idle + *p_.left, s_.requested) ||
        !surely_at_least(*s_.idle + *p_.left + *p_.slack, s_.requested))
      return {};
    return CauseVerdict{Story::kPoolSlack, Confidence::kLikely,
                        fmt::format("{}, but only {} of that was requested: {} is slack, in chunks that were larger "
                                    "than their request and were not split; without it the request would fit",
                                    state(), shown(*s_.live - *p_.slack), shown(*p_.slack)),
                        compared({idle(), left(), {*p_.slack, "slack"}}, "≥", {asked()}) + "; " +
                            compared({idle(), left()}, "<", {asked()})};
  }

  Maybe full() const {
    if (!s_.idle || !p_.left || !surely_less(*s_.idle + *p_.left, s_.requested)) return {};
    std::vector<Term> room = {idle(), left()};
    // slack that is known to be too little excludes waste of every kind
    const bool counts_slack = p_.slack && p_.slack->max != 0 && surely_less(total(room) + *p_.slack, s_.requested);
    if (counts_slack) room.push_back({*p_.slack, "slack"});
    return CauseVerdict{Story::kPoolFull, Confidence::kProved,
                        fmt::format("{}{}. All that is free or not yet taken{} is less than the request: it does not "
                                    "fit, and free memory in pieces is not the cause",
                                    state(), left_words(), counts_slack ? ", and all slack with it," : ""),
                        compared(room, "<", {asked()})};
  }

  // Where the map is missing: what the limit leaves beside what is in use is free or not yet taken.
  Maybe statistics() const {
    if (s_.idle || !p_.limit || !s_.live) return {};
    const ByteInterval unused = *p_.limit - *s_.live;
    if (surely_less(unused, s_.requested)) {
      return CauseVerdict{Story::kPoolFull, Confidence::kProved,
                          fmt::format("{}: the {} that was left is less than the request", state(), shown(unused)),
                          compared({{unused, "left of the limit"}}, "<", {asked()})};
    }
    if (!surely_at_least(unused, s_.requested)) return {};
    return CauseVerdict{Story::kPoolOpen, Confidence::kLikely,
                        fmt::format("{}: {} was left, more than the request, so it lay in pieces, or the driver did "
                                    "not give the pool its whole limit; the map that would show it is not in this text",
                                    state(), shown(unused)),
                        compared({{unused, "left of the limit"}}, "≥", {asked()})};
  }

  // A request is larger than the largest free piece, or it would have been served.
  CauseVerdict size_unknown() const {
    if (!has_picture()) return {Story::kPoolSizeUnknown, Confidence::kLikely, state(), ""};
    const bool is_known = s_.idle->min == s_.idle->max && s_.largest_piece->min == s_.largest_piece->max;
    const std::uint64_t elsewhere = s_.idle->max - std::min(s_.idle->max, s_.largest_piece->max);
    if (is_known && elsewhere <= s_.idle->max / 100) {
      const std::string free =
          s_.idle->max == 0 ? std::string("nothing is free in it, so pieces are not the cause")
          : elsewhere == 0
              ? fmt::format("all that is free in it, {}, is one piece, so pieces are not the cause", shown(*s_.idle))
              : fmt::format("all but {} of the {} that is free in it is one piece, so pieces are hardly the problem",
                            format_bytes(elsewhere), shown(*s_.idle));
      return {
          Story::kPoolFull, Confidence::kLikely,
          fmt::format("{}; {}: the request was larger than that, and the pool did not grow, by its limit or because "
                      "the driver gave no more",
                      state(), free),
          ""};
    }
    return {Story::kPoolSizeUnknown, Confidence::kLikely,
            fmt::format("{}; {} is free in it, and the request was larger than its largest piece, {}: fragmented, if "
                        "it was for no more than what is free, else exhausted",
                        state(), shown(*s_.idle), shown(*s_.largest_piece)),
            ""};
  }

  // A pool that the driver refuses asks for less, nine tenths at a time, but until 2024 at its first refusal alone.
  std::string refused_words() const {
    if (!p_.refused) return {};
    if (!p_.knows_request || !surely_at_least(*p_.refused, s_.requested))
      return fmt::format("; the driver had refused it {} before", shown(*p_.refused));
    return fmt::format(
        "; the driver had refused it {} before: less than that it asks for at its first refusal alone "
        "(since 2024 at each), so whether the request itself was refused is not known",
        shown(*p_.refused));
  }

  CauseVerdict open() const {
    std::string why = state();
    if (s_.idle) why += fmt::format("; {} is free in it", range_words(*s_.idle));
    if (s_.largest_piece) why += fmt::format(", in pieces of at most {}", format_bytes(s_.largest_piece->max));
    why += p_.left ? left_words() : std::string("; the text does not say how much more it may take");
    why += refused_words();
    if (!s_.idle && p_.bar)
      return {Story::kPoolOpen, Confidence::kLikely,
              fmt::format("{} had no free piece that large: {}; how much that is in bytes, and how much more it may "
                          "take, is not in this text{}, so it may have been a full pool, free memory in pieces, or a "
                          "driver that refused",
                          p_.words, bar_words(), refused_words()),
              ""};
    if (!s_.idle)
      return {Story::kPoolOpen, Confidence::kLikely, why + "; nothing here says how much of it was free", ""};
    std::vector<std::string_view> causes;
    const ByteInterval most = *s_.idle + p_.left.value_or(ByteInterval{});
    const bool may_be_full = !p_.left || most.min < s_.requested.max,
               may_be_refused = !p_.left || p_.left->max >= s_.requested.min;
    if (may_be_full)
      causes.emplace_back("exhausted, if what is free and what is not yet taken are less than the request together");
    if (!p_.left || most.max >= s_.requested.min) causes.emplace_back("fragmented, if they are not");
    if (may_be_refused) causes.emplace_back("the driver, if the pool might still take that much and it was refused");
    if (!may_be_full && !may_be_refused)
      return {Story::kPoolOpen, Confidence::kLikely,
              why + "; that is enough, so it lay in pieces, unless what is missing here hides a piece that large", ""};
    return {Story::kPoolOpen, Confidence::kLikely,
            fmt::format("{}; the numbers do not decide between: {}", why, fmt::join(causes, "; ")), ""};
  }

  const Shortage& s_;
  const PoolShortage& p_;
};

}  // namespace

bool is_last_refusal(ByteInterval refused, ByteInterval requested) {
  return refused.max / 10 * 9 <= requested.max + requested.max / 100;
}

CauseVerdict judge_pool(const Shortage& shortage) { return PoolJudge(shortage).judge(); }

}  // namespace faultline
