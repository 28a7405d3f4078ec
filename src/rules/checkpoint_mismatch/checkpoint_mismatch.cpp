// tensor/checkpoint-mismatch: load_state_dict refused a checkpoint whose names or shapes are not the model's; which, and what would fit.
#include "base/json_input.h"
#include "rules/checkpoint_mismatch/checkpoint_words.h"
#include "rules/describe.h"
#include "rules/rule.h"
#include "rules/stated_error.h"

namespace faultline {
namespace {

constexpr std::size_t kNamesShown = 3;

std::string list_text(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t at = 0; at < names.size() && at < kNamesShown; ++at)
    text += (at == 0 ? "`" : ", `") + names[at] + "`";
  if (names.size() > kNamesShown) text += " and " + std::to_string(names.size() - kNamesShown) + " more";
  return text;
}

void describe(const CheckpointWords& words, Finding& finding) {
  const std::string model = words.model.empty() ? "the model" : "the model (" + words.model + ")";
  std::vector<std::string> others;
  for (const OtherShape& other : words.others) {
    others.push_back("`" + other.name + "`" +
                     (other.saved && other.current ? " is " + shape_text(*other.saved) + " in the checkpoint and " +
                                                         shape_text(*other.current) + " in the model"
                                                   : " has another shape"));
  }
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  for (std::size_t at = 0; at < others.size() && at < kNamesShown; ++at) add(others[at]);
  if (others.size() > kNamesShown) add("and " + std::to_string(others.size() - kNamesShown) + " more of other shapes");
  if (!words.missing.empty()) add("the checkpoint lacks " + list_text(words.missing));
  if (!words.unexpected.empty()) add("the model has no " + list_text(words.unexpected));
  if (!words.any()) text = "of which tensors, the lines below it say, which are not in this text";
  finding.message = "A checkpoint does not fit " + model + ": " + text +
                    ". It is an error of the program itself; memory is not the problem.";
  if (!words.others.empty()) add_evidence(finding, "other_shapes", std::uint64_t{words.others.size()});
  if (!words.missing.empty()) add_evidence(finding, "missing_names", std::uint64_t{words.missing.size()});
  if (!words.unexpected.empty()) add_evidence(finding, "unexpected_names", std::uint64_t{words.unexpected.size()});

  if (!words.any()) return add_try(finding, "Give Faultline the whole message, or the whole log.");
  const std::string extra = words.extra_prefix(), lacking = words.lacking_prefix();
  if (!extra.empty()) {
    add_try(finding, "The checkpoint's names begin with `" + extra + "`" +
                         (extra == "module."      ? " (saved from DataParallel or DistributedDataParallel)"
                          : extra == "_orig_mod." ? " (saved from a compiled model)"
                                                  : "") +
                         ", the model's do not: take it off, {k.removeprefix(\"" + extra +
                         "\"): v for k, v in state.items()}.");
  } else if (!lacking.empty()) {
    add_try(finding, "The model's names begin with `" + lacking +
                         "`, the checkpoint's do not: load it into that part, " + "or put it in front, {\"" + lacking +
                         "\" + k: v for k, v in state.items()}.");
  } else if (!words.missing.empty() || !words.unexpected.empty()) {
    add_try(finding,
            "Is it the state dict itself, and of this model? A file often holds it beside other things "
            "(state[\"model\"], state[\"state_dict\"]); print its keys beside model.state_dict().keys().");
  }
  if (!words.others.empty())
    add_try(finding,
            "Build the model with the checkpoint's own configuration (number of classes, vocabulary, width), or leave "
            "those tensors out: delete their keys and load with strict=False, or ignore_mismatched_sizes=True in "
            "transformers; they then keep the values that they were made with.");
  else if (extra.empty() && lacking.empty())
    add_try(finding,
            "load_state_dict(state, strict=False) loads what fits; what the checkpoint lacks keeps the values that it "
            "was made with.");
}

}  // namespace

void judge_checkpoint_mismatch(Case& subject, std::vector<Finding>& findings, std::vector<NotJudged>&) {
  const StatedError& stated = subject.statements().error;
  if (stated.kind == MessageKind::kCheckpoint) {
    const CheckpointWords words = read_checkpoint_words(stated.text);
    Finding finding = begin_stated(subject, rule_name::kCheckpointMismatch);
    describe(words, finding);
    finish_stated(subject, finding);
    findings.push_back(std::move(finding));
    return;
  }
  // What ended a program that was dry-run.
  const auto known = subject.trace().properties.find("dry-run.exception");
  if (known == subject.trace().properties.end()) return;
  const Result<nlohmann::json> json = parse_json(known->second);
  if (!json || !json->is_object()) return;
  const auto word = [&](const char* name) {
    const auto at = json->find(name);
    return at != json->end() && at->is_string() ? at->get<std::string>() : std::string();
  };
  const std::string message = word("message");
  if (message.find("in loading state_dict for") == std::string::npos) return;
  const CheckpointWords words = read_checkpoint_words(message);
  if (!words.any()) return;
  Finding finding =
      finding_at(subject.facts(), rule_name::kCheckpointMismatch, Severity::kError, Confidence::kProved, 0, {});
  finding.location.file = word("file");
  finding.location.function = word("function");
  const auto line = json->find("line");
  if (line != json->end() && line->is_number_unsigned()) finding.location.line = line->get<std::uint32_t>();
  describe(words, finding);
  finding.fingerprint = fingerprint(rule_name::kCheckpointMismatch, finding.location);
  findings.push_back(std::move(finding));
}

}  // namespace faultline
