// The trace file of a dry run: names are interned and written once, events are stamped and appended.
//
// The first error of the file is kept and everything goes on: later records are counted as dropped by the writer, ids stay what they would have
// been. Not thread-safe; the C interface holds one lock around it and the device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "trace/file_writer.h"
#include "trace/trace.h"

namespace faultline {

class Recorder {
 public:
  static Result<std::unique_ptr<Recorder>> create(const std::string& path);

  StringId string(std::string_view text);
  FrameId frame(const Frame& frame);
  StackId stack(StackId caller, FrameId frame);
  TensorId tensor(const Tensor& tensor);

  // The id itself where it is known, else none.
  StringId known(StringId id) const { return id.index() < strings_.size() ? id : StringId{}; }
  FrameId known(FrameId id) const { return id.index() < stacks_.frame_count() ? id : FrameId{}; }
  StackId known(StackId id) const { return id.index() < stacks_.size() ? id : StackId{}; }
  TensorId known(TensorId id) const { return id.index() < tensors_.size() ? id : TensorId{}; }

  // An event of this kind that happens now, on this thread.
  Event stamp(EventKind kind, StackId stack) const;
  void append(const Event& event) { keep(writer_.append(event)); }

  // For what is defined seldom: keep(writer().define_heap(…)).
  TraceFileWriter& writer() { return writer_; }
  void keep(const Status& status) {
    if (!status && !error_) error_ = status.error().message();
  }
  void finish();
  const std::optional<std::string>& error() const { return error_; }

 private:
  explicit Recorder(std::unique_ptr<TraceFile> file) : file_(std::move(file)), writer_(*file_) {}

  std::unique_ptr<TraceFile> file_;
  TraceFileWriter writer_;
  StringTable strings_;
  StackTable stacks_;
  TensorTable tensors_;
  std::optional<std::string> error_;
};

}  // namespace faultline
