// The lines of the text form that define: heaps, streams, stacks, tensors, calls, the source, the final state. Fills everything of the trace but its
// events, and knows the names that later lines call things by.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "trace/text_calls.h"
#include "trace/text_words.h"
#include "trace/trace.h"

namespace faultline::text {

class TextDefinitions {
 public:
  explicit TextDefinitions(Trace& trace) : trace_(trace), calls_(trace) {}

  // Nothing is added that no line says.
  void set_exact() { exact_ = true; }
  // The rest of a line that begins with `verb`.
  Status read(std::string_view verb, LineReader& line);
  // After the last line: what may name things defined later, and the defaults.
  Status finish();

  Result<StackId> read_stack(LineReader& line);  // [STACK >] FRAME > FRAME …, to the end of the line
  Result<HeapId> find_heap(const std::string& label);
  void add_default_heaps();  // unless there are heaps, or the text is exact
  Status set_stack(const LineReader::Field& field, StackId& to);
  Status set_stream(const LineReader::Field& field, StreamId& to);
  Status set_tensor(const LineReader::Field& field, TensorId& to);
  const TextCalls& calls() const { return calls_; }

  bool has_source() const { return has_source_; }
  bool has_capabilities() const { return has_capabilities_; }

 private:
  using Field = LineReader::Field;

  Result<FrameId> read_frame(LineReader& line);
  Result<FrameId> read_frame(const Field& place, LineReader& line);
  Status read_shape(const Field& word, Tensor& tensor);
  Status read_shape(std::string_view dtype, std::string_view shape, Tensor& tensor);
  Status read_stack_line(LineReader& line);
  Status read_frame_line(LineReader& line);
  Status read_string_line(LineReader& line);
  Status read_tensor_line(LineReader& line);
  Status read_heap(LineReader& line);
  Status read_stream(LineReader& line);
  Status read_device(LineReader& line);
  Status read_property(LineReader& line);
  Status read_source(LineReader& line);
  Status read_capabilities(LineReader& line);
  Status read_lost(LineReader& line);
  Status read_segment(LineReader& line);
  Status set_blocks(const Field& field, FinalSegment& segment);
  Status read_block(LineReader& line);

  Trace& trace_;
  TextCalls calls_;
  bool exact_ = false;
  bool has_source_ = false;
  bool has_capabilities_ = false;
  bool nested_blocks_ = true;                           // a block belongs to the segment above it
  std::vector<std::pair<HeapId, std::string>> belows_;  // a heap may stand on one that is defined later
  HashMap<std::string, HeapId> heaps_;
  HashMap<std::string, StackId> stacks_;
  HashMap<std::string, TensorId> tensors_;
};

}  // namespace faultline::text
