// --format text-trace: what was read, one event a line.
#include "cli/options.h"
#include "trace/text.h"

namespace faultline::cli {

int write_text_trace(const Recordings& recordings) {
  if (recordings.ready) recordings.ready();
  if (recordings.inputs.size() != 1 || recordings.inputs.front().parts.size() != 1)
    return fail(
        "--format text-trace writes one trace, and this has several: name the file of one process, for example "
        "FOLDER/process-12.faultline");
  return write_out(trace_to_text(recordings.inputs.front().parts.front().trace), recordings.status);
}

}  // namespace faultline::cli
