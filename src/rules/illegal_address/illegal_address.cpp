#include "rules/illegal_address/illegal_address.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "base/units.h"
#include "facts/kernel_name.h"
#include "fmt/format.h"
#include "rules/describe.h"
#include "rules/illegal_address/bad_address.h"
#include "rules/illegal_address/candidates.h"
#include "rules/illegal_address/fault_words.h"
#include "rules/illegal_address/suspects.h"
#include "rules/kernel_place.h"
#include "rules/memory_words.h"
#include "sources/rule_names.h"

namespace faultline {
namespace {

constexpr std::size_t kCandidatesTold = 16;
constexpr std::size_t kMostFaults = 64;  // different ones; each is looked for in all of the memory

struct Report {
  std::uint32_t event = 0;
  const Fault* fault = nullptr;
};

struct Told {
  // by core dumps, the same line of a kernel together, or the same instruction where no line is known
  std::vector<std::vector<Report>> dumped;
  std::optional<Report> by_driver;  // the first error that the program met: the others are echoes of it
};

Told gather(const Facts& facts) {
  const Trace& trace = facts.trace;
  Told told;
  std::map<std::tuple<StringId, std::uint64_t, StringId, std::uint32_t>, std::size_t> groups;
  for (const std::uint32_t index : facts.faults) {
    const Fault& fault = trace.faults.at(FaultId(trace.events[index].extra));
    if (fault.reported_by.value != 0) {
      if (!told.by_driver) told.by_driver = Report{index, &fault};
      continue;
    }
    const auto [at, fresh] =
        groups.try_emplace({fault.kernel, fault.line != 0 ? 0 : fault.pc, fault.file, fault.line}, told.dumped.size());
    if (fresh) told.dumped.emplace_back();
    told.dumped[at->second].push_back({index, &fault});
  }
  return told;
}

class Judge {
 public:
  explicit Judge(const Case& subject)
      : facts_(subject.facts()), trace_(subject.trace()), statements_(subject.statements()) {}

  Finding of_dump(const std::vector<Report>& reports, const std::optional<Report>& by_driver) {
    // The first that has an address speaks for all.
    const auto has_address = [](const Report& report) { return !report.fault->addresses.empty(); };
    const auto chosen = std::find_if(reports.begin(), reports.end(), has_address);
    const Report& report = chosen == reports.end() ? reports.front() : *chosen;
    const Fault& fault = *report.fault;
    const FaultKind kind = kind_of(reports, by_driver);
    Finding finding = begin(kind, report.event, text(fault.kernel));
    finding.confidence = kind == FaultKind::kTrap ? Confidence::kLikely : Confidence::kProved;
    add_place(facts_, fault, trace_.events[report.event].stack, finding);
    std::string what = std::string(words_of(kind).sentence);
    const bool of_address = kind == FaultKind::kIllegalAddress || kind == FaultKind::kMisaligned;
    if (of_address) what = describe_access(facts_, report.event, fault, kind == FaultKind::kMisaligned, finding);
    finding.message = kernel_words(fault.kernel) + " " + what + ".";
    if (kind == FaultKind::kAssert && checks_index(kernel_name(text(fault.kernel)))) as_index_check(finding);
    if (statements_.second_run_status) {
      finding.confidence = Confidence::kLikely;
      finding.message +=
          " Kernel, line and address are from a second run of the program, with the GPU core dump armed.";
    }
    add_noticed(by_driver, finding);
    add_arguments(facts_, report.event, &fault, finding);
    if (reports.size() > 1)
      finding.evidence.push_back({"faults_at_this_line", static_cast<std::int64_t>(reports.size())});
    add_thread(fault, finding);
    finish(kind, finding);
    return finding;
  }

  Finding of_driver(const Report& report) {
    const Fault& fault = *report.fault;
    const FaultKind kind = kind_of_fault(text(fault.what), fault.code);
    const Candidates candidates = launched_since_sync(trace_, report.event, statements_.waits_for_launches);
    const std::vector<Suspect> suspects = weigh(facts_, statements_, candidates, kind, report.event);
    const bool only_one = suspects.size() == 1 && candidates.complete && launch_of(suspects[0]).graph == 0;
    const bool leads = only_one || (candidates.complete && has_leader(suspects) && suspects.size() > 1);
    Finding finding = begin(kind, report.event, leads ? text(launch_of(suspects[0]).kernel) : std::string_view());
    if (leads)
      tell_leader(kind, report, candidates, suspects, only_one, finding);
    else
      tell_candidates(kind, report, candidates, suspects, finding);
    finding.evidence.push_back({"error", std::string(text(fault.what))});
    if (candidates.launches() != 0)
      finding.evidence.push_back({"launches_since_last_wait", static_cast<std::int64_t>(candidates.launches())});
    finish(kind, finding);
    add_next_step(finding);
    return finding;
  }

 private:
  std::string_view text(StringId id) const { return trace_.strings.at(id); }
  std::string kernel_words(StringId kernel) const { return faultline::kernel_words(trace_, kernel); }

  // The plainest word of all the warps'. An address that went astray may land where shared or local memory has its window, and the exception is
  // then called after that; of an access whose addresses are known it is the same fault.
  FaultKind kind_of(const std::vector<Report>& reports, const std::optional<Report>& by_driver) const {
    FaultKind kind = FaultKind::kUnknown;
    for (const Report& report : reports) {
      FaultKind here = kind_of_fault(text(report.fault->what), 0);
      if (here == FaultKind::kAddressSpace && !report.fault->addresses.empty()) here = FaultKind::kIllegalAddress;
      if (kind == FaultKind::kUnknown || here == FaultKind::kIllegalAddress) kind = here;
    }
    if (kind == FaultKind::kUnknown && by_driver)
      kind = kind_of_fault(text(by_driver->fault->what), by_driver->fault->code);
    return kind;
  }

  Finding begin(FaultKind kind, std::uint32_t event, std::string_view kernel) const {
    Finding finding =
        finding_at(facts_, words_of(kind).rule, Severity::kError, Confidence::kProved, trace_.events[event].device, {});
    finding.location.kernel = kernel_name_with_arguments(kernel);
    return finding;
  }

  void add_noticed(const std::optional<Report>& report, Finding& finding) const {
    if (!report) return;
    const Location place = location_of(facts_, trace_.events[report->event].stack);
    finding.related.push_back({"noticed", "later, in " + std::string(text(report->fault->reported_by)), 0, place});
  }

  const Launch& launch_of(const Suspect& suspect) const { return trace_.launches.at(suspect.candidate.launch); }

  void tell_leader(FaultKind kind, const Report& report, const Candidates& candidates,
                   const std::vector<Suspect>& suspects, bool only_one, Finding& finding) const {
    const Suspect& first = suspects[0];
    finding.confidence = Confidence::kLikely;
    set_launch_line(facts_, trace_.events[first.candidate.event].stack, finding);
    if (kind == FaultKind::kAssert && first.checks_index)
      as_index_check(finding);
    else
      finding.message = kernel_words(launch_of(first).kernel) + (only_one ? " " : " most likely ") +
                        std::string(words_of(kind).sentence) + ".";
    if (candidates.returned_by_launch)
      finding.message += " Its launch returned the error, and nothing else was under way.";
    else if (only_one)
      finding.message +=
          " It is the only one that can have done it: nothing else was launched since the program last waited for the "
          "device.";
    else
      finding.message += fmt::format(" Of {} launches that can have done it this one is the likeliest: {}.",
                                     format_count(candidates.launches()), reasons(first));
    add_noticed(report, finding);
    add_arguments(facts_, first.candidate.event, nullptr, finding);
    if (!only_one) add_candidates(suspects, 1, finding);
  }

  void tell_candidates(FaultKind kind, const Report& report, const Candidates& candidates,
                       const std::vector<Suspect>& suspects, Finding& finding) const {
    const Location noticed = location_of(facts_, trace_.events[report.event].stack);
    finding.confidence = Confidence::kHint;
    finding.location = noticed;
    finding.call_path = callers_of(facts_, trace_.events[report.event].stack);
    const auto may_assert = [](const Suspect& suspect) { return suspect.points > 0; };
    const bool all_check = std::any_of(suspects.begin(), suspects.end(), may_assert) &&
                           std::all_of(suspects.begin(), suspects.end(), [&](const Suspect& suspect) {
                             return suspect.checks_index || (suspect.is_library && !may_assert(suspect));
                           });
    if (kind == FaultKind::kAssert && all_check)
      as_index_check(finding);
    else
      finding.message = "A kernel " + std::string(words_of(kind).sentence) + ".";
    finding.confidence = Confidence::kHint;
    finding.message +=
        " The program noticed at " + short_place(noticed) + ", in " + std::string(text(report.fault->reported_by));
    if (candidates.launches() == 0)
      finding.message += "; no launch is known that the program had not waited for.";
    else if (candidates.launches() == 1)
      finding.message += "; one launch can have done it.";
    else
      finding.message += fmt::format(
          "; any of {} launches since it last waited for the device can have done it. The likeliest come first.",
          format_count(candidates.launches()));
    add_candidates(suspects, 0, finding);
  }

  void add_candidates(const std::vector<Suspect>& suspects, std::size_t from, Finding& finding) const {
    for (std::size_t at = from; at < std::min(suspects.size(), from + kCandidatesTold); ++at) {
      const Suspect& suspect = suspects[at];
      const Launch& launch = launch_of(suspect);
      std::string what = launch.graph != 0 ? "a graph" : kernel_name(text(launch.kernel));
      if (suspect.candidate.times > 1) what += fmt::format(" ({} times)", suspect.candidate.times);
      if (const std::string why = reasons(suspect); !why.empty()) what += ": " + why;
      finding.related.push_back(
          {"candidate", what, 0, location_of(facts_, trace_.events[suspect.candidate.event].stack)});
    }
  }

  // What would name the one.
  void add_next_step(Finding& finding) const {
    if (!statements_.second_run_status) return add_try(finding, core_dump_advice());
    add_evidence(finding, "status_of_the_second_run", *statements_.second_run_status);
    add_try(finding,
            "The second run left no GPU core dump, so it did not fault this time, or elsewhere: a fault that comes and "
            "goes hints at memory that is used too early or too late.");
  }

  void add_thread(const Fault& fault, Finding& finding) const {
    add_thread_of(fault, finding);
    if (fault.lanes != 0) finding.evidence.push_back({"threads_of_the_warp", static_cast<std::int64_t>(fault.lanes)});
    if (fault.instruction.value != 0) finding.evidence.push_back({"instruction", std::string(text(fault.instruction))});
    finding.evidence.push_back({"error", std::string(text(fault.what))});
  }

  void as_index_check(Finding& finding) const {
    finding.rule = rule_name::kIndexOutOfRange;
    finding.confidence = Confidence::kLikely;
    finding.message =
        "An index lay outside its dimension: a check in " +
        (finding.location.kernel.empty() ? "one of PyTorch's index kernels"
                                         : finding.location.kernel.substr(0, finding.location.kernel.find('<'))) +
        " failed.";
  }

  void finish(FaultKind kind, Finding& finding) const {
    if (topic_of(finding) == Topic::kTensors) {
      finding.tries.push_back(
          {"Check min() and max() of the index or target tensor before this line; the condition that failed stands on "
           "standard error (\"Assertion `…` failed\").",
           std::nullopt, 0});
    } else if (const std::string_view advice = words_of(kind).advice; !advice.empty()) {
      add_try(finding, std::string(advice));
    }
    finding.fingerprint = fingerprint(finding.rule, finding.location, finding.location.kernel);
  }

  const Facts& facts_;
  const Trace& trace_;
  const Statements& statements_;
};

}  // namespace

void judge_faults(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  const Told told = gather(subject.facts());
  Judge judge(subject);
  for (std::size_t at = 0; at < std::min(told.dumped.size(), kMostFaults); ++at)
    findings.push_back(judge.of_dump(told.dumped[at], told.by_driver));
  if (told.dumped.size() > kMostFaults) {
    not_judged.push_back({rule_name::kIllegalAddress, format_count(told.dumped.size() - kMostFaults) +
                                                          " faults beyond the first " + std::to_string(kMostFaults) +
                                                          " were not looked at"});
  }
  if (told.dumped.empty() && told.by_driver) findings.push_back(judge.of_driver(*told.by_driver));
  const ErrorKind stated = subject.statements().error.group();
  const bool speaks_of_a_fault = stated == ErrorKind::kFault || stated == ErrorKind::kNcclCall ||
                                 stated == ErrorKind::kLibraryStart || stated == ErrorKind::kLibraryFailure;
  if (speaks_of_a_fault && told.dumped.empty() && !told.by_driver) findings.push_back(describe_fault_message(subject));
}

}  // namespace faultline
