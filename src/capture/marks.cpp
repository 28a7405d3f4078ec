// Marks that the Python side sets: steps of training, and passes that other threads work for. Also the door for tests and late loaders.
#include <string_view>

#include "capture/recorder.h"

namespace {

using namespace faultline;
using namespace faultline::capture;

constexpr std::string_view kBackward = "backward";

void mark(EventKind kind, const char* name, std::uint64_t number) {
  const Recording recording;
  if (!recording || name == nullptr) return;
  guarded([&] {
    ThreadRecorder& thread = *recording;
    Event event = thread.stamp(kind);
    event.extra = thread.recorder().string(thread, name).value;
    event.size_bytes = number;
    thread.append(event);
    if (name == kBackward) thread.recorder().set_pass(kind == EventKind::kOpBegin ? event.stack : StackId{});
  });
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void faultline_mark_step(const char* name, std::uint64_t number) {
  mark(EventKind::kStepMark, name, number);
}
__attribute__((visibility("default"))) void faultline_mark_begin(const char* name) {
  mark(EventKind::kOpBegin, name, 0);
}
__attribute__((visibility("default"))) void faultline_mark_end(const char* name) { mark(EventKind::kOpEnd, name, 0); }

}  // extern "C"
