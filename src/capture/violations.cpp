#include "capture/violations.h"

#include "capture/recorder.h"

namespace faultline::capture {
namespace {

constexpr std::uint32_t kMostViolations = 1 << 16;  // one kernel may have millions; the first tell enough

}  // namespace

void record_violation(const driver::CaughtAccess& access) {
  const Recording recording(Recording::Inside::kToo);  // the thread may be in the call that runs the kernel
  if (!recording) return;
  guarded([&] {
    ThreadRecorder& thread = *recording;
    Recorder& recorder = thread.recorder();
    if (recorder.violation_count() >= kMostViolations) return recorder.count("capture.violations_left_out");
    const ViolationId id = recorder.next_violation();
    Violation violation;
    static_cast<KernelPlace&>(violation) = access.place;
    violation.kind = access.kind;
    violation.access = access.access;
    violation.kernel = recorder.string(thread, access.kernel);
    violation.file = recorder.string(thread, access.file);
    violation.function = recorder.string(thread, access.function);
    (void)thread.writer().define_call(id, violation);
    Event event = thread.stamp_without_stack(EventKind::kViolation);
    recorder.set_stream(thread, event, access.stream, driver::StreamKind::kLegacy);
    event.device = access.device;
    event.address = access.address;
    event.set(kAddressKnown);
    event.size_bytes = access.size_bytes;
    event.allocation = recorder.live().beginning_at(access.memory_start);
    event.extra = id.value;
    thread.append(event);
  });
}

}  // namespace faultline::capture
