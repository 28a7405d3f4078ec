// The watch over a confined program: every stop of every thread of it and of its children comes here.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>

#include "confine/calls.h"
#include "confine/file_layer.h"
#include "confine/network.h"
#include "confine/tracee.h"

namespace faultline::confine {

class Watch {
 public:
  Watch(std::string root, std::string own_folder, bool offline,
        std::optional<int>
            kept_input,            // where to write what is read from standard input, or -1; none: it is not to be kept
        const GivenFiles& given);  // outlives the watch
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // The process waits to be told to go on; after this it may be.
  int begin(pid_t process);
  int run(pid_t main);  // until all have ended; main's status as waitpid gives it

  const FileLayer& files() const { return files_; }
  const Network& network() const { return network_; }
  const Processes& processes() const { return processes_; }
  bool input_was_cut() const { return input_was_cut_; }  // it was more than is kept, or could not be

 private:
  void stopped(pid_t thread, int status);
  void call_begins(Tracee& tracee);
  void call_ends(Tracee& tracee);
  void carry_out(Tracee& tracee, const Registers& registers, const Decision& decision);
  void make_room(Tracee& tracee, const Registers& registers);
  void make_visible(Tracee& tracee, const Registers& registers);
  void has_child(Tracee& parent, int event);
  void has_new_image(Tracee& tracee);
  void begin_again(Tracee& tracee, Registers registers);
  void fix_working_folder(Tracee& tracee);
  void keep_input(Tracee& tracee);
  bool takes_on(Tracee& tracee, const Registers& registers);
  void end_those_left();
  void give_back_room(Tracee& tracee);
  void fix_identity(Tracee& tracee);
  void list_more(Tracee& tracee);
  Tracee& tracee(pid_t thread);
  void forget(pid_t thread);

  FileLayer files_;
  Network network_;
  Processes processes_;
  Listings listings_;
  const GivenFiles& given_;
  std::unordered_map<pid_t, Tracee> tracees_;
  int kept_input_;
  bool keeps_input_;
  std::uint64_t kept_bytes_ = 0;
  bool input_was_cut_ = false;
  std::string input_link_;  // what standard input is, as /proc names it; empty where it is not kept
};

// What every watched thread is told to report; children are watched from their first instruction, and none outlives the watch.
long watch_options();

}  // namespace faultline::confine
