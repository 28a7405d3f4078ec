// The names in the folder that run and plan leave (docs/run-folder.md). Written by process, by the recorder and the Python side, read by run_folder.h.
#pragma once

#include <string_view>

namespace faultline::layout {

inline constexpr std::string_view kCommand = "command.json";  // the command, and how it ended
inline constexpr std::string_view kReport = "report.json";
inline constexpr std::string_view kRequest = "plan.json";     // what a dry run is asked for
inline constexpr std::string_view kEffects = "effects.json";  // what a dry run would have written
inline constexpr std::string_view kInput = "input";           // what a planned program read from its standard input
inline constexpr std::string_view kLog = "log.txt";           // what a run beside the first printed
inline constexpr std::string_view kPage = "page.html";        // made by view; every one begins so:
inline constexpr std::string_view kPageBegins = "<!doctype html>\n<!-- made by faultline view -->\n";
inline constexpr std::string_view kMark = "made-by-faultline.json";  // whose the folder is, and what of it is the run's
inline constexpr std::string_view kTries = "tries";    // a plan's runs under changes: a folder like this one each
inline constexpr std::string_view kLinks = "links";    // to Faultline's own files, where their path cannot be said
inline constexpr std::string_view kRanks = "ranks";    // what the ranks of a planned program tell each other
inline constexpr std::string_view kAgain = "again";    // the second run of run --again: a folder like this one
inline constexpr std::string_view kLarger = "larger";  // a plan's run on a GPU that grows: likewise

// Of each process: its number, then what follows it.
// process-12.faultline, process-12-2.faultline, process-12.json
inline constexpr std::string_view kProcess = "process-";
inline constexpr std::string_view kTraceEnd = ".faultline";
inline constexpr std::string_view kFactsEnd = ".json";
inline constexpr std::string_view kHistory = "torch-";    // torch-12-oom.pickle
inline constexpr std::string_view kTensors = "tensors-";  // tensors-12.txt: TensorFlow's tensors, a trace as text
inline constexpr std::string_view kFailure = "failure-";  // failure-12.txt: the traceback, as Python prints it
inline constexpr std::string_view kPoolMap = "pool-";     // pool-12_GPU_0_bfc.1794832646072369: TF_BFC_MEMORY_DUMP
// jax-12-oom-1794832646072369.prof when memory ran out, jax-12-1794832646072369.prof at other moments
inline constexpr std::string_view kProfile = "jax-";
inline constexpr std::string_view kCore = "core-";      // core-12
inline constexpr std::string_view kNotes = "notes-";    // notes-12.txt
inline constexpr std::string_view kImport = "import-";  // import-12.json: PyTorch's import did not end well

// process-12.json: a file of one process, by its name.
constexpr bool is_of_process(std::string_view name) {
  for (const std::string_view word :
       {kProcess, kHistory, kTensors, kFailure, kPoolMap, kProfile, kCore, kNotes, kImport}) {
    if (name.starts_with(word) && name.size() > word.size() && name[word.size()] >= '0' && name[word.size()] <= '9')
      return true;
  }
  return false;
}

}  // namespace faultline::layout
