// Reports as the rules would make them, for the tests of every reporter.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "base/units.h"
#include "report/report.h"

namespace faultline::samples {

inline std::uint64_t mib(double count) {
  return static_cast<std::uint64_t>(std::llround(count * static_cast<double>(kMiB)));
}

// Training as it looks from above: parameters stay, every step's activations rise and fall, what leaks piles up.
inline std::vector<CurvePoint> training_curve(double base_mib, double swing_mib, double leak_mib_per_step, int steps,
                                              double cached_mib) {
  std::vector<CurvePoint> curve;
  double reserved = 0;
  for (int at = 0; at < 240; ++at) {
    const double ramp = std::min(1.0, at / 20.0);
    const double phase = at * steps / 240.0;
    const double wave = at < 20 ? 0 : std::sin((phase - std::floor(phase)) * 3.14159265);
    const double allocated = base_mib * ramp + swing_mib * wave + leak_mib_per_step * std::floor(phase);
    reserved = std::max(reserved, allocated + cached_mib * ramp);
    curve.push_back({at * 50'000'000ll, mib(allocated), mib(reserved)});
  }
  return curve;
}

inline DeviceReport h100() {
  DeviceReport device;
  device.name = "NVIDIA H100 80GB HBM3";
  device.account.moment = "at the failure";
  device.account.capacity_known = true;
  device.account.live = {{"parameters", mib(12851.4)},   {"gradients", mib(12851.4)}, {"optimizer", mib(25702.8)},
                         {"activations", mib(22310.25)}, {"temporaries", mib(310.5)}, {"other", mib(3.42)}};
  device.account.cached = mib(4721.53);
  device.account.outside_framework = mib(644);
  device.account.free = mib(211.81);
  device.account.unknown = mib(1402.2);
  device.account.capacity = mib(12851.4) * 2 + mib(25702.8) + mib(22310.25) + mib(310.5) + mib(3.42) + mib(4721.53) +
                            mib(644) + mib(211.81) + mib(1402.2);
  device.curve = training_curve(50000, 22000, 600, 4, 4700);
  device.peak_allocated = mib(74029.77);
  device.peak_reserved = mib(78751.3);
  device.peak_event = 6702;
  device.event_count = 6805;
  device.model = {"torch-native", 2410, 2410, 96, 96, ""};
  return device;
}

inline Report out_of_memory() {
  Report report;
  report.input_kind = "torch-snapshot";
  report.input_path = "/home/ada/llm/runs/oom.pickle";
  report.input_events = 6805;
  report.lost = {{"frames_without_file", 0}};
  Finding finding;
  finding.rule = "memory/out-of-memory";
  finding.severity = Severity::kError;
  finding.confidence = Confidence::kProved;
  finding.message =
      "GPU 0 ran out of memory: 2.00 GiB was requested, and the largest free piece was 1.21 GiB although 4.61 GiB lay "
      "unused in the cache.";
  finding.cause = "fragmented";
  finding.location = {"/home/ada/llm/venv/lib/python3.11/site-packages/torch/nn/functional.py", 3494, "cross_entropy",
                      "aten::log_softmax", ""};
  finding.call_path = {{"/home/ada/llm/train.py", 83, "training_step", "", ""},
                       {"/home/ada/llm/train.py", 141, "main", "", ""},
                       {"/home/ada/llm/train.py", 150, "<module>", "", ""}};
  finding.memory = "the output of log_softmax, float32 [8192, 65536]";
  finding.bytes = 2 * kGiB;
  finding.evidence = {{"requested_bytes", std::int64_t{2 * kGiB}},
                      {"largest_free_bytes", static_cast<std::int64_t>(mib(1239.04))},
                      {"cached_free_bytes", static_cast<std::int64_t>(mib(4721.53))},
                      {"free_pieces", std::int64_t{1317}},
                      {"reserved_fraction", 0.9655},
                      {"settings", std::string("max_split_size_mb:512")}};
  finding.holders = {
      {mib(25702.8), 296, "optimizer", {"/home/ada/llm/train.py", 61, "make_optimizer", "", ""}, ""},
      {mib(12851.4), 148, "parameters", {"/home/ada/llm/model/transformer.py", 212, "__init__", "", ""}, ""},
      {mib(12851.4), 148, "gradients", {"/home/ada/llm/train.py", 90, "training_step", "", ""}, ""},
      {mib(16384),
       32,
       "activations",
       {"/home/ada/llm/model/attention/rotary/scaled_dot_product_with_bias.py", 47, "forward", "", ""},
       "32 tensors float32 [16, 32, 2048, 128]"},
      {mib(310.5), 2, "temporaries", {}, "cuBLAS workspace"}};
  finding.tries = {
      {"Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the program starts.", true, mib(4198)},
      {"Compute the loss in two halves of the batch: the logits are the largest tensor of the step.", std::nullopt, 0},
      {"Set PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8.", false, 0}};
  finding.fingerprint = "memory/out-of-memory:train.py:training_step";
  report.findings = {finding};
  report.not_judged = {{"order/stream-race", "this input records no accesses"},
                       {"access/use-after-free", "this input records no accesses"},
                       {"memory/leak", "fewer than three steps were recorded"}};
  report.devices = {h100()};
  return report;
}

inline DeviceReport small_gpu(double leak_mib_per_step) {
  DeviceReport device;
  device.name = "NVIDIA T4";
  device.account.moment = "at the peak";
  device.account.capacity_known = true;
  device.account.live = {{"parameters", mib(420)},   {"gradients", 0},   {"optimizer", mib(840)},
                         {"activations", mib(3100)}, {"temporaries", 0}, {"other", mib(1310)}};
  device.account.cached = mib(512);
  device.account.outside_framework = 0;
  device.account.free = mib(8900);
  device.account.unknown = 0;
  device.account.capacity = mib(420 + 840 + 3100 + 1310 + 512 + 8900);
  device.curve = training_curve(1470, 3100, leak_mib_per_step, 12, 400);
  device.peak_allocated = mib(5670);
  device.peak_reserved = mib(6182);
  device.peak_event = 11877;
  device.event_count = 12034;
  device.model = {"torch-native", 5204, 5201, 0, 0, ""};
  return device;
}

inline Report leak() {
  Report report;
  report.input_kind = "torch-snapshot";
  report.input_path = "/data/leak_list.pickle.xz";
  report.input_events = 12034;
  report.lost = {{"frames_without_file", 12}, {"unknown_action", 1}};
  Finding finding;
  finding.rule = "memory/leak";
  finding.severity = Severity::kError;
  finding.confidence = Confidence::kLikely;
  finding.message = "Every step keeps 100.00 MiB more than the one before.";
  finding.location = {"/home/ada/llm/evaluate.py", 27, "run", "", ""};
  finding.memory = "the graph behind 'loss', kept alive by a list";
  finding.allocated_at = {"/home/ada/llm/evaluate.py", 22, "run", "aten::mm", ""};
  finding.bytes = mib(1200);
  finding.evidence = {{"bytes_per_step", static_cast<std::int64_t>(mib(100))}, {"steps", std::int64_t{12}}};
  finding.tries = {{"Keep the number, not the tensor: losses.append(loss.item()).", std::nullopt, mib(1200)}};
  finding.fingerprint = "memory/leak:evaluate.py:run";
  report.findings = {finding, finding, finding};
  report.findings[1].bytes = mib(100);
  report.findings[2].bytes = mib(10);
  report.devices = {small_gpu(100)};
  return report;
}

inline Report fragmentation() {
  Report report = out_of_memory();
  Finding& finding = report.findings.front();
  finding.rule = "memory/fragmentation";
  finding.severity = Severity::kWarning;
  finding.cause.clear();
  finding.message = "4.61 GiB are cached in 1,317 pieces, none larger than 1.21 GiB.";
  finding.location = {"/home/ada/llm/data.py", 55, "collate", "", ""};
  finding.call_path.clear();
  finding.memory.clear();
  finding.holders.clear();
  finding.fingerprint = "memory/fragmentation:data.py:collate";
  report.devices.front().account.moment = "at the peak";
  report.not_judged.clear();
  return report;
}

inline Report clean() {
  Report report;
  report.input_kind = "torch-snapshot";
  report.input_path = "/home/ada/llm/gpt.pickle";
  report.input_events = 6805;
  report.not_judged = {{"order/stream-race", "this input records no accesses"}};
  report.devices = {small_gpu(0)};
  DeviceReport& device = report.devices.front();
  device.account.live.back().second = mib(210);
  device.account.cached = mib(400);
  device.account.free = mib(10112);
  device.peak_allocated = mib(4570);
  device.peak_reserved = mib(4970);
  device.peak_event = 1190;
  device.event_count = 6805;
  device.model = {"torch-native", 2410, 2410, 96, 96, ""};
  return report;
}

inline Report unknown_capacity() {
  Report report = leak();
  report.lost.clear();
  DeviceReport& device = report.devices.front();
  device.name.clear();
  device.account.capacity_known = false;
  device.account.free = 0;
  device.account.capacity = mib(420 + 840 + 3100 + 1310 + 512);
  device.model = {"", 0, 0, 0, 0, "the recording began after the program did"};
  return report;
}

// Strings that would paint, move the cursor, set the title, reverse the text, or break a parser.
inline Report hostile() {
  Report report = leak();
  report.findings.resize(1);
  Finding& finding = report.findings.front();
  finding.message =
      "\x1b[2J\x1b]0;owned\x07 first\nsecond\r\xc2\x9bthird \xe2\x80\xaegnp.exe \xff\xfe \xc0\xaf \xed\xa0\x80 end";
  finding.location.file = "/home/ada/llm/\x1b[31mred\xff.py";
  finding.location.function = std::string("f\0g", 3) + std::string(300, 'x');
  finding.allocated_at.file = "/a/" + std::string(200, 'b') + "/" + std::string(200, 'c') + ".py";
  finding.memory = std::string(100000, 'm');
  finding.evidence.push_back({"\x1b[5mname\xff", std::string("\x1b[5mvalue")});
  finding.evidence.push_back({"ratio", std::nan("")});
  finding.evidence.push_back({"smallest", std::int64_t{INT64_MIN}});
  finding.evidence.push_back({"most_bytes", 1e300});
  finding.holders = {{UINT64_MAX,
                      UINT64_MAX,
                      "\x1b[1mcat",
                      {"\xf0\x9f\x98\x80\xe6\x97\xa5\xe6\x9c\xac.py", UINT32_MAX, "", "\x1bop", "\x1bkernel"},
                      "\x1b]8;;http://x\x1b\\link"}};
  finding.tries.push_back({"\x1b[0mtry", true, UINT64_MAX});
  finding.rule = "memory/\x1b[31mleak";
  finding.cause = "\x1b[31m";
  report.input_path = "\x1b]0;title\x07.pickle";
  report.input_kind = "\x1b[2Jkind";
  report.lost["\x1b[2J\xff"] = UINT64_MAX;
  report.not_judged = {{"\x1b[2Jrule", "\x1b[2Jwhy"}};
  DeviceReport& device = report.devices.front();
  device.name = "GPU\x1b[2J";
  device.account.moment = "\x1b[2J";
  device.account.live.front() = {"\x1b[2Jparameters", UINT64_MAX};
  device.account.unknown = UINT64_MAX;
  device.curve.front() = {INT64_MIN, UINT64_MAX, UINT64_MAX};
  device.curve.back() = {INT64_MAX, 0, UINT64_MAX};
  device.model.why_not = "\x1b[2Jwhy";
  return report;
}

}  // namespace faultline::samples
