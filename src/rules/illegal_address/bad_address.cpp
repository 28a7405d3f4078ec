#include "rules/illegal_address/bad_address.h"

#include <algorithm>
#include <optional>

#include "base/units.h"
#include "rules/describe.h"
#include "rules/memory_words.h"

namespace faultline {
namespace {

constexpr std::uint64_t kNullBytes = 64 * kKiB;  // this far from 0 nothing is ever mapped: a null pointer and an offset
constexpr std::uint64_t kFarBytes = 1 * kTiB;    // farther from all memory than any index error leads
constexpr std::uint64_t kLeastPointer = 4 * kGiB;  // smaller words are numbers
constexpr std::size_t kMostArguments = 16;

struct Argument {
  LaunchArgument word;
  AddressPlace place;
};

// The launch that a fault was placed behind: its own pointers are known to be pointers, a dump's words only may be.
std::optional<std::uint32_t> launch_before(const Trace& trace, std::uint32_t event) {
  for (std::uint32_t back = 0; back < 64 && back < event; ++back) {
    const Event& at = trace.events[event - 1 - back];
    if (at.kind == EventKind::kLaunch) return event - 1 - back;
    if (at.kind != EventKind::kFault) break;
  }
  return std::nullopt;
}

std::vector<LaunchArgument> words_of(const Trace& trace, std::uint32_t event, const Fault* fault) {
  if (trace.events[event].kind == EventKind::kLaunch)
    return trace.launches.at(LaunchId(trace.events[event].extra)).arguments;
  if (const auto launch = launch_before(trace, event)) {
    const Launch& known = trace.launches.at(LaunchId(trace.events[*launch].extra));
    if (!known.arguments.empty() && (fault == nullptr || known.kernel == fault->kernel)) return known.arguments;
  }
  return fault == nullptr ? std::vector<LaunchArgument>() : fault->parameters;
}

// Words that point into memory, or into memory that was there.
std::vector<Argument> arguments_of(const Trace& trace, const AddressMap& map, std::uint32_t event, const Fault* fault) {
  std::vector<Argument> arguments;
  for (const LaunchArgument& word : words_of(trace, event, fault)) {
    if (arguments.size() == kMostArguments) break;
    if (!map.was_memory(word.address)) continue;
    const AddressPlace place = map.place(word.address);
    if (place.where == Where::kInside || place.where == Where::kFreed) arguments.push_back({word, place});
  }
  return arguments;
}

struct Bad {
  std::uint64_t address = 0;
  std::uint64_t count = 0;  // of the warp's addresses
  bool known = false;
};

Bad bad_address(const AddressMap& map, const Event& event, const Fault& fault, bool misaligned) {
  Bad bad;
  const auto is_bad = [&](std::uint64_t address) {
    if (misaligned) return event.size_bytes != 0 && address % event.size_bytes != 0;
    return !map.is_mapped(address);
  };
  for (const std::uint64_t address : fault.addresses) {
    if (!is_bad(address)) continue;
    ++bad.count;
    if (!bad.known || address < bad.address) bad.address = address;
    bad.known = true;
  }
  if (!bad.known && event.has(kAddressKnown)) bad = {event.address, 0, true};
  return bad;
}

struct Nearest {
  AddressPlace place;
  bool of_argument = false;
  // others that the kernel was given lie about as near: which of them was indexed is not known
  bool is_one_of_several = false;
};

// Beside which memory: what the kernel was given comes first; freed memory before that where the kernel was given it.
Nearest nearest(const AddressMap& map, const std::vector<Argument>& arguments, std::uint64_t address) {
  AddressPlace best;
  for (const Argument& argument : arguments) {
    const AddressPlace place = map.relative_to(argument.place.allocation, address);
    if (place.where == Where::kFreed || place.where == Where::kInside) return {place, true, false};
    if (best.where == Where::kUnknown || place.distance_bytes < best.distance_bytes) best = place;
  }
  if (best.where != Where::kUnknown && best.distance_bytes < kFarBytes) {
    const auto as_near = [&](const Argument& argument) {
      return argument.place.allocation != best.allocation &&
             map.relative_to(argument.place.allocation, address).distance_bytes / 2 < best.distance_bytes;
    };
    return {best, true, std::any_of(arguments.begin(), arguments.end(), as_near)};
  }
  const AddressPlace any = map.place(address);
  const bool near = any.where == Where::kInside || any.where == Where::kFreed || any.distance_bytes < kFarBytes;
  return {near ? any : AddressPlace{}, false, false};
}

// A dump alone knows no memory, but what the kernel was given: the word that lies nearest is most likely the pointer that was indexed.
std::string beside_parameter(const Fault& fault, std::uint64_t address) {
  const LaunchArgument* best = nullptr;
  const auto distance = [&](const LaunchArgument& word) {
    return word.address > address ? word.address - address : address - word.address;
  };
  for (const LaunchArgument& word : fault.parameters) {
    if (word.address >= kLeastPointer && distance(word) < kFarBytes &&
        (best == nullptr || distance(word) < distance(*best)))
      best = &word;
  }
  const std::string unknown = "This input knows of no memory to compare it with";
  if (best == nullptr) return unknown + ".";
  return unknown + "; it lies " + distance_words(distance(*best)) + (best->address > address ? " before" : " behind") +
         " the nearest pointer that the kernel was given, its parameter at byte " + std::to_string(best->offset_bytes) +
         ".";
}

void add_tries(const Fault& fault, std::uint64_t access_bytes, const Nearest& near,
               const std::vector<Argument>& arguments, const AddressMap& map, Finding& finding) {
  const AddressPlace& place = near.place;
  if (place.where == Where::kFreed) {
    finding.tries.push_back(
        {"Keep what the kernel was given alive until it has run; a tensor used on another stream needs record_stream.",
         std::nullopt, 0});
    return;
  }
  if (!near.of_argument || place.where != Where::kPastEnd) return;
  std::uint64_t size_bytes = map.range_of(place.allocation).size();
  if (near.is_one_of_several) {
    for (const Argument& argument : arguments)
      size_bytes = std::max(size_bytes, map.range_of(argument.place.allocation).size());
  }
  std::uint64_t threads = 1;
  for (const Extent3& extent : {fault.grid, fault.block}) {
    for (const std::uint32_t part : extent)
      threads = part != 0 && threads < (std::uint64_t{1} << 40) ? threads * part : 0;
  }
  std::string reach, excess;
  if (!near.is_one_of_several)
    reach = "this access reaches byte " + format_count(size_bytes + place.distance_bytes + access_bytes) + " of " +
            format_count(size_bytes);
  if (access_bytes != 0 && threads > size_bytes / access_bytes) {
    excess = "the launch has " + format_count(threads) + " threads for " + (near.is_one_of_several ? "at most " : "") +
             format_count(size_bytes / access_bytes) + " elements of " + format_count(access_bytes) + " bytes";
  }
  const std::string numbers = reach + (reach.empty() || excess.empty() ? "" : ", and ") + excess;
  finding.tries.push_back({"Bound the index (in Triton: mask=offsets < n; in CUDA: if (i < n))" +
                               (numbers.empty() ? "" : ": " + numbers) + ".",
                           std::nullopt, 0});
}

}  // namespace

std::string describe_access(const Facts& facts, std::uint32_t event_index, const Fault& fault, bool misaligned,
                            Finding& finding) {
  const Event& event = facts.trace.events[event_index];
  const AddressMap map(facts.trace, facts.lifetimes, facts.uses, event_index);
  const std::vector<Argument> arguments = arguments_of(facts.trace, map, event_index, &fault);
  const Bad bad = bad_address(map, event, fault, misaligned);
  const std::string verb = !bad.known ? "touched" : fault.is_store ? "wrote" : "read";
  const std::string net =
      misaligned ? "an address that its access is not aligned to" : "an address that is not mapped on the device";
  if (!bad.known) {
    finding.memory = "The address could not be rebuilt from the dump" +
                     std::string(arguments.empty() ? "." : "; what the kernel was given stands below.");
    return verb + " " + net;
  }
  finding.bytes = event.size_bytes;
  finding.evidence.push_back({"address", hex(bad.address)});
  if (event.size_bytes != 0) finding.evidence.push_back({"access_bytes", static_cast<std::int64_t>(event.size_bytes)});
  if (bad.count > 1) finding.evidence.push_back({"threads_with_such_an_address", static_cast<std::int64_t>(bad.count)});
  const std::string amount = event.size_bytes == 0 ? "" : " " + distance_words(event.size_bytes) + " at";
  const std::string what = verb + amount + " " + net + ", " + hex(bad.address);
  if (bad.address < kNullBytes) {
    finding.memory = bad.address == 0 ? "A null pointer." : "A null pointer and " + distance_words(bad.address) + ".";
    add_try(finding,
            "Look for an argument that is null: the data pointer of an empty or freed tensor, or a pointer that was "
            "never set.");
    return what;
  }
  const Nearest near = nearest(map, arguments, bad.address);
  const AddressPlace& place = near.place;
  if (place.where == Where::kUnknown) {
    finding.memory =
        map.knows_memory()
            ? "Far from all memory that the recording knows of: a damaged pointer, or an index that overflowed."
            : beside_parameter(fault, bad.address);
    return what;
  }
  const char* const whose =
      near.is_one_of_several ? ", the nearest of those that the kernel was given; which of them it meant is not known."
      : near.of_argument     ? ", which the kernel was given."
                             : ".";
  set_memory(facts, place, whose, finding);
  if (near.is_one_of_several) finding.allocated_at = {};
  if (misaligned) {
    const auto given = std::find_if(arguments.begin(), arguments.end(), [&](const Argument& argument) {
      return argument.place.allocation == place.allocation;
    });
    if (given != arguments.end() && event.size_bytes != 0 && given->word.address % event.size_bytes != 0) {
      add_try(finding, "Give the kernel .clone() of this tensor: what it was given begins at byte " +
                           format_count(given->place.distance_bytes) + " of its memory, which accesses of " +
                           std::to_string(event.size_bytes) + " bytes cannot start from.");
    }
  } else {
    add_tries(fault, event.size_bytes, near, arguments, map, finding);
  }
  return what;
}

void add_arguments(const Facts& facts, std::uint32_t event, const Fault* fault, Finding& finding) {
  const AddressMap map(facts.trace, facts.lifetimes, facts.uses, event);
  for (const Argument& argument : arguments_of(facts.trace, map, event, fault)) {
    const Event& birth = facts.lifetimes.birth(argument.place.allocation);
    std::string what = "parameter at byte " + std::to_string(argument.word.offset_bytes) + ": " +
                       memory_words(facts, argument.place.allocation);
    if (argument.place.distance_bytes != 0)
      what += ", from byte " + format_count(argument.place.distance_bytes) + " on";
    if (argument.place.where == Where::kFreed) what += ", freed before the launch";
    finding.related.push_back({"argument", what, birth.size_bytes, location_of(facts, birth.stack)});
  }
}

}  // namespace faultline
