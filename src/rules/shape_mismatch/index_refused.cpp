#include "rules/shape_mismatch/index_refused.h"

#include <charconv>

#include "fmt/format.h"
#include "rules/describe.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

struct Refused {
  std::int64_t index = 0, size = -1;
  std::int64_t dimension = -1;
  bool is_label = false;
};

// The number behind `before`, and what follows it.
bool number_after(std::string_view& words, std::string_view before, std::int64_t& number) {
  const std::size_t at = words.find(before);
  if (at == std::string_view::npos) return false;
  words.remove_prefix(at + before.size());
  const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), number);
  if (error != std::errc{}) return false;
  words.remove_prefix(static_cast<std::size_t>(end - words.data()));
  return true;
}

// "slice index 10 of dimension 0 out of bounds.", "indices[2] = 10 is not in [0, 10)", "indices = 10 is not in [0, 10)", "Received a label value of 10 which is outside the valid range of [0, 10).".
std::optional<Refused> refused_in(std::string_view words) {
  Refused refused;
  std::string_view rest = words;
  if (number_after(rest, "slice index ", refused.index) && number_after(rest, " of dimension ", refused.dimension) &&
      rest.starts_with(" out of bounds"))
    return refused;
  rest = words;
  if (const std::size_t at = rest.find("indices"); at != std::string_view::npos) {
    rest.remove_prefix(at);
    const bool is_one = rest.starts_with("indices = ");  // of a tensor without dimensions
    if ((is_one || rest.starts_with("indices[")) && number_after(rest, is_one ? " = " : "] = ", refused.index) &&
        rest.starts_with(" is not in [0, ") && number_after(rest, "[0, ", refused.size))
      return refused;
  }
  rest = words;
  refused.is_label = true;
  if (number_after(rest, "label value of ", refused.index) &&
      rest.starts_with(" which is outside the valid range of [0, ") && number_after(rest, "[0, ", refused.size))
    return refused;
  return std::nullopt;
}

std::string message_of(const Refused& refused) {
  if (refused.is_label)
    return fmt::format(
        "Label {} was given to a loss of {} classes (0 to {}). The operation checked it and raised: no memory was "
        "touched.",
        refused.index, refused.size, refused.size - 1);
  std::string among;
  if (refused.size >= 0)
    among = refused.dimension >= 0
                ? fmt::format(", which has {} (0 to {})", refused.size, refused.size - 1)
                : fmt::format(" in a dimension of {} entries (0 to {})", refused.size, refused.size - 1);
  return fmt::format(
      "Index {} was requested{}{}. The operation checked it and raised before anything ran: no memory was touched.",
      refused.index, refused.dimension >= 0 ? fmt::format(" of dimension {}", refused.dimension) : "", among);
}

}  // namespace

std::optional<Finding> index_refused(const FailedOp& failed, const Facts& facts) {
  std::optional<Refused> refused = refused_in(failed.words);
  if (!refused) return std::nullopt;
  const Shape* shape = failed.operands.empty() ? nullptr : &failed.operands.front().shape;
  if (refused->size < 0 && shape != nullptr && refused->dimension >= 0 &&
      static_cast<std::size_t>(refused->dimension) < shape->size())
    refused->size = (*shape)[static_cast<std::size_t>(refused->dimension)];
  Finding finding =
      finding_at(facts, rule_name::kIndexOutOfRange, failed.is_last ? Severity::kError : Severity::kWarning,
                 Confidence::kProved, failed.device, failed.stack);
  finding.location.op = std::string(failed.op);
  finding.message = message_of(*refused);
  finding.evidence.push_back({"index", refused->index});
  if (refused->size >= 0) finding.evidence.push_back({"size", refused->size});
  add_try(finding,
          refused->is_label
              ? "Labels are numbered from 0: one that is the number of classes or more needs one more output in the "
                "last layer, or is counted from 1. On a GPU TensorFlow does not check: the loss becomes NaN."
              : "Look at where this index comes from: it must be below the size of the dimension. On a GPU tf.gather "
                "does not check: it returns zeros for such an index and says nothing.");
  finding.fingerprint = fingerprint(finding.rule, finding.location, failed.op);
  return finding;
}

}  // namespace faultline
