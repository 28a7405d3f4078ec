#include <array>

#include "sources/bfc_dump/memory_dump.h"
#include "sources/bfc_log/bfc_log.h"
#include "sources/core_dump/core_dump.h"
#include "sources/error_text/error_text.h"
#include "sources/files_folder/files_folder.h"
#include "sources/jax_profile/jax_profile.h"
#include "sources/notebook/notebook.h"
#include "sources/pack/pack.h"
#include "sources/run_folder/run_folder.h"
#include "sources/source.h"
#include "sources/torch_snapshot/torch_snapshot.h"
#include "sources/trace_file/trace_file.h"
#include "sources/written_report/written_report.h"
#include "trace/file_reader.h"

namespace faultline {
namespace {

// Most sources find one trace.
template <Result<Trace> (*read)(ByteStream&, const std::string&)>
Result<Input> one(ByteStream& stream, const std::string& path) {
  Result<Trace> trace = read(stream, path);
  if (!trace) return trace.error();
  return Input(std::move(*trace));
}

constexpr auto kSources = std::to_array<Source>({
    {.kind = "trace",
     .what = "a Faultline trace",
     .endings = {".faultline"},
     .recognises = looks_like_trace_file,
     .read = one<read_trace_file_source>},
    {.kind = "trace-text",
     .what = "a Faultline trace as text",
     .endings = {".txt"},
     .recognises = recognises_trace_text,
     .read = one<read_trace_text_source>},
    {.kind = "pack",
     .what = "a pack that faultline pack made",
     .endings = {".pack.zip"},
     .recognises = looks_like_pack,
     .read = read_pack},
    {.kind = "report",
     .what = "a report of Faultline's (--format json)",
     .endings = {".json"},
     .recognises = looks_like_report,
     .read = read_report},
    {.kind = "core-dump",
     .what = "a GPU core dump",
     .endings = {".core", ".nvcudmp"},
     .recognises = looks_like_core_dump,
     .read = one<read_core_dump>},
    {.kind = "notebook",
     .what = "a notebook with its output (.ipynb)",
     .endings = {".ipynb"},
     .recognises = looks_like_notebook,
     .read = one<read_notebook>},
    {.kind = "torch-snapshot",
     .what = "a PyTorch memory snapshot (pickle or JSON)",
     .endings = {".pickle", ".pkl", ".json"},
     .recognises = looks_like_torch_snapshot,
     .read = one<read_torch_snapshot>},
    {.kind = "bfc-memory-dump",
     .what = "a memory dump of TensorFlow's or JAX's allocator (TF_BFC_MEMORY_DUMP)",
     .endings = {".pb", ".memory_dump"},
     .recognises = looks_like_memory_dump,
     .read = one<read_memory_dump>},
    {.kind = "jax-profile",
     .what = "a profile of JAX's device memory (save_device_memory_profile)",
     .endings = {".prof", ".pprof"},
     .recognises = looks_like_jax_profile,
     .read = one<read_jax_profile>},
    {.kind = "bfc-log",
     .what = "a log of TensorFlow's or JAX's allocator (TF_CPP_VMODULE=bfc_allocator=4)",
     .endings = {".log", ".txt", ".out", ".err"},
     .recognises = looks_like_bfc_log,
     .read = one<read_bfc_log>},
    {.kind = "error-text",
     .what = "text with a GPU error message in it",
     .endings = {".log", ".txt", ".out", ".err"},
     .recognises = recognises_error_text,
     .read = one<read_error_text>},
    {.kind = "run",
     .what = "the folder that run or plan left",
     .recognises_folder = holds_run,
     .read_folder = read_run},
    {.kind = "folder",
     .what = "a folder with such files in it",
     .recognises_folder = holds_files,
     .read_folder = read_files},
});

}  // namespace

std::span<const Source> all_sources() { return kSources; }

std::string known_inputs() {
  std::string words;
  for (const Source& source : kSources) words += (words.empty() ? "" : ", ") + std::string(source.what);
  return words;
}

}  // namespace faultline
