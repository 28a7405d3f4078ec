#include "rules/error_text/error_text.h"

#include "rules/error_text/judgement.h"
#include "sources/error_text/error_text.h"

namespace faultline {

void judge_error_text(const Trace& trace, std::vector<Finding>& findings, std::vector<NotJudged>& not_judged) {
  if (trace.source_kind != kErrorTextSource || trace.events.empty()) return;
  const std::string_view kind = stated_word(trace, "kind");
  Finding finding;
  if (kind == "out-of-memory" || kind == "pool-growth") {
    finding = finding_from(trace, "memory/out-of-memory");
    judge_out_of_memory(trace, finding);
    not_judged.push_back({"memory/leak", "a message shows one moment; growth needs a recording over several steps"});
    not_judged.push_back({"memory/fragmentation", "a message does not say which blocks pin which segments; a snapshot does"});
  } else if (kind == "nccl-oom" || kind.starts_with("cublas-") || kind.starts_with("cudnn-") || kind.starts_with("cusolver-") ||
             kind == "nccl-cuda-error") {
    const bool memory = kind == "nccl-oom" || kind.ends_with("-alloc");
    finding = finding_from(trace, memory ? "memory/out-of-memory" : "api/launch-error");
    judge_library(trace, finding);
  } else if (kind == "device-assert") {
    finding = finding_from(trace, "api/launch-error");
    judge_assertion(trace, finding);
  } else {
    const char* rule = kind == "illegal-address" ? "access/illegal-address" : kind == "misaligned-address" ? "access/misaligned" : "api/launch-error";
    finding = finding_from(trace, rule);
    judge_kernel_error(trace, finding);
    not_judged.push_back(
        {"access/out-of-bounds", "the message names neither the kernel's address nor a tensor; a GPU core dump or a recorded run does"});
  }
  if (finding.count > 1) {
    add_evidence(finding, "messages", finding.count);
    add_evidence(finding, "different_messages", counter_of(trace, "distinct"));
  }
  add_evidence(finding, "line_in_text", counter_of(trace, "line"));
  add_evidence(finding, "writer", std::string(stated_word(trace, "tag")));
  add_evidence(finding, "text", std::string(stated_word(trace, "text")));
  findings.push_back(std::move(finding));
}

}  // namespace faultline
