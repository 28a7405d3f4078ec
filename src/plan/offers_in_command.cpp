#include "plan/offers_in_command.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "fmt/format.h"
#include "plan/number_names.h"
#include "plan/vary.h"

namespace faultline {
namespace {

// A number of the command with another value, as the program's own framework has a remedy of it.
Offer in_command(const std::vector<std::string>& command, const InCommand& found, const Offer& remedy,
                 std::uint64_t value, std::uint64_t number) {
  Offer offer = remedy;
  offer.value = std::to_string(value);
  offer.label = fmt::format("{} {}", found.name, value);
  offer.what = fmt::format("Use {} {} (now {})", found.name, value, found.value);
  offer.cost = remedy.cost + remedy.cost_step * number;
  offer.keeps = {{"running", 0.0}};
  offer.dose = 1 - static_cast<double>(value) / static_cast<double>(found.value);
  offer.command = command;
  offer.command[found.word] = found.head + std::to_string(value);
  return offer;
}

}  // namespace

std::vector<Offer> lengths_in_command(const std::vector<std::string>& command, const ProcessSummary& as_run) {
  constexpr std::uint64_t kMost = 3, kLeastLength = 32;
  std::vector<Offer> offers;
  const Offer* remedy = as_run.of_number(OfferedNumber::kLength);
  if (remedy == nullptr) return offers;
  const auto offer = [&](NumberKind kind, std::string_view shorter) {
    for (const std::string_view name : number_names(kind)) {
      const std::optional<InCommand> found = find_in_command(command, std::string(name));
      const auto is_it = [&](std::uint64_t length) { return length <= found->value + 1 && found->value <= length + 1; };
      if (!found || found->value < kLeastLength ||
          (kind == NumberKind::kLength && std::ranges::none_of(as_run.token_lengths, is_it)))
        continue;
      for (std::uint64_t value = found->value / 2, number = 0; number < kMost && value >= 1; value /= 2, ++number) {
        offers.push_back(in_command(command, *found, *remedy, value, number));
        offers.back().what += shorter;
      }
      return;
    }
  };
  // a cache of keys and values grows with what is generated
  if (as_run.steps == 0 && !as_run.does("backward")) offer(NumberKind::kGenerated, ": fewer tokens");
  if (offers.empty()) offer(NumberKind::kLength, ": shorter sequences");
  return offers;
}

std::vector<Offer> batches_in_command(const std::vector<std::string>& command, const ProcessSummary& as_run) {
  constexpr std::uint64_t kMost = 8;
  std::vector<Offer> offers;
  const std::optional<InCommand> found = find_in_command(command, "");
  const Offer* remedy = as_run.of_number(OfferedNumber::kBatch);
  if (!found || remedy == nullptr) return offers;
  const bool accumulates = !remedy->beside.empty() && as_run.does("backward");
  for (std::uint64_t value = found->value / 2, number = 0; value >= 1 && number < kMost; value /= 2, ++number) {
    while (accumulates && found->value % value != 0) --value;
    Offer offer = in_command(command, *found, *remedy, value, number);
    if (accumulates) {
      offer.many = found->value / value;
      offer.label += fmt::format(" accumulated {} times", offer.many);
      offer.what += fmt::format(", with gradients accumulated over {} batches", offer.many);
      offer.edits = as_run.accumulation;
    } else {
      offer.beside.clear();
    }
    offers.push_back(std::move(offer));
  }
  return offers;
}

}  // namespace faultline
