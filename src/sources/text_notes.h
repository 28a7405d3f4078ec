// What a text tells around its message: how the message stands in it, and what else is in it.
#pragma once

#include <string>
#include <vector>

#include "sources/stated_error.h"

namespace faultline {

// Which of several writers of a log.
struct LogWriter {
  std::string name;      // "rank 2", "task 0", "RayTrainWorker"; empty: there is one, or nothing names it
  bool is_rank = false;  // of a distributed job
  bool is_task = false;  // of a launcher that numbers them
  friend bool operator==(const LogWriter&, const LogWriter&) = default;
};

struct TextNotes {
  // an exception of another kind that only quotes the message, "ValueError: upstream said: …, serve.py:7"; empty: the message is its exception's own
  std::string quoted_by;
  LogWriter who;                    // which of several it is of
  std::vector<std::string> also;    // messages of other errors in the same text
  bool sets_expandable = false;     // the text shows expandable_segments:True being set
  bool shows_no_exception = false;  // a failure of JAX's that only its logger tells of
  bool has_traceback = false;       // it is more than the message alone
  // that the program works on behind the message is said by words alone, not shown by the shape of the log
  bool lives_by_words = false;
  bool ended_because = false;         // the exception that ended the program was raised from this one
  bool names_torch = false;           // PyTorch is somewhere in it
  bool is_windows = false;            // by the paths in it
  bool is_of_other_language = false;  // no Python, by its stack or how it ends
  bool of_request = false;            // a server met the message while it served a request
  std::string launcher;               // "torchrun", where the text shows one
  std::string command;                // "python train.py --lr 3", where the text shows it
  std::string program;                // "/w/train.py", where its tracebacks agree on one
  struct Job {
    std::string pid, who;  // "4711", "local rank 3"
  };
  std::vector<Job> jobs;  // processes that the launcher's own lines name
  std::string refused;    // what the driver had refused before a library could not start: "17.73 GiB (line 1)"
  struct Gpu {
    std::string name, architecture, built_for;
  } gpu;  // that PyTorch says it was not built for
  struct Place {
    std::string file, function;
    std::uint64_t line = 0;
  } ended_at;  // of the exception that ended the program, where that is another
  // of a log of the system's kernel: its other lines, each of which tells of something of its own
  std::vector<StatedError> further;
};

}  // namespace faultline
