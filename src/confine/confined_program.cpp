#include "confine/confined_program.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/word_list.h"
#include "confine/filter.h"
#include "confine/given_files.h"
#include "confine/watch.h"

namespace faultline::confine {

Error not_program(const std::string& word) {
  std::error_code problem;
  if (word.ends_with(".ipynb"))
    return {word + " is a notebook, not a program: jupyter nbconvert --to script " + word +
                " makes a program of it, to be run by python",
            {},
            {}};
  const bool is_there = std::filesystem::exists(word, problem);
  if (is_there && word.ends_with(".py"))
    return {word + " is a Python file that is not executable by itself: put python before it (python " + word + ")",
            {},
            {}};
  return {word + (is_there && word.find('/') != std::string::npos ? " is not executable" : " was not found"), {}, {}};
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNotConfined = "faultline: the program was not started: its files could not be kept aside\n";
constexpr std::string_view kNotStarted = "faultline: the program could not be started: the system cannot run it\n";

// One that stays where it is stays as it is: closed to the program where it was given closed.
void put_descriptor(int from, int to) {
  if (from != to) ::dup2(from, to);
}

bool is_program(const std::string& path) {
  std::error_code problem;
  return ::access(path.c_str(), X_OK) == 0 && !fs::is_directory(path, problem);
}

// Where the word leads, as a shell would find it.
Result<std::string> program_of(const std::string& program, const std::vector<std::string>& environment) {
  if (program.find('/') != std::string::npos) {
    if (is_program(program)) return program;
    return not_program(program);
  }
  std::string path = "/usr/local/bin:/bin:/usr/bin";
  for (const std::string& entry : environment) {
    if (entry.starts_with("PATH=")) path = entry.substr(5);
  }
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    std::string candidate = path.substr(at, end - at);
    candidate += (candidate.empty() ? "./" : "/") + program;
    if (is_program(candidate)) return candidate;
    at = end + 1;
  }
  return not_program(program);
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) ends[0] = ends[1] = -1;
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
};

void remove_aside(const std::string& folder) {
  std::error_code problem;
  fs::remove_all(folder, problem);
  if (!problem) return;
  // Folders that the program made unreadable, even for itself.
  for (auto at = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, problem);
       !problem && at != fs::recursive_directory_iterator(); at.increment(problem)) {
    if (at->is_directory(problem) && !at->is_symlink(problem))
      fs::permissions(at->path(), fs::perms::owner_all, fs::perm_options::add, problem);
  }
  fs::remove_all(folder, problem);
}

// access() is one call or the other, by the C library's age.
int argument_of_access(const Registers& registers) { return registers.orig_rax == SYS_access ? 0 : 1; }

}  // namespace

struct ConfinedProgram::State {
  Program program;
  pid_t process = -1;
  bool ended = false;
  int status = 0;
  GivenFiles given;
  std::unique_ptr<Watch> watch;  // looks at `given`
};

ConfinedProgram::ConfinedProgram(std::unique_ptr<State> state) : state_(std::move(state)) {}

ConfinedProgram::~ConfinedProgram() {
  if (!state_->ended && state_->process > 0) {
    ::kill(state_->process, SIGKILL);
    wait();
  }
  remove_aside(state_->program.aside);
}

pid_t ConfinedProgram::process() const { return state_->process; }

Result<std::unique_ptr<ConfinedProgram>> ConfinedProgram::start(Program program) {
  const Result<std::string> path = program_of(program.command.front(), program.environment);
  if (!path) return path.error();
  const auto failed = [&](const std::string& what, int problem) {
    remove_aside(program.aside);
    return Error{what + ": " + std::strerror(problem), {}, {}};
  };
  if (::mkdir(program.aside.c_str(), 0700) != 0)  // one that is there is somebody's
    return Error{"the folder " + program.aside + " could not be made: " + std::strerror(errno), {}, {}};
  const bool keeps_input = !program.keep_input.empty();
  std::optional<int> kept;
  if (keeps_input)
    kept = ::open(program.keep_input.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  auto state = std::make_unique<State>();
  auto watch = std::make_unique<Watch>(program.aside, program.own_folder, program.offline, kept, state->given);

  std::vector<std::string> as_script = {"sh", *path};  // a file that is no program is a script of the shell's
  as_script.insert(as_script.end(), program.command.begin() + 1, program.command.end());
  std::vector<char*> arguments = pointers_to(program.command), script_arguments = pointers_to(as_script),
                     variables = pointers_to(program.environment);
  const std::vector<sock_filter> filter = confining_filter(keeps_input ? Watched::kFilesAndInput : Watched::kFiles);
  Pipe go;
  if (go.ends[0] < 0) return failed("the program could not be started", errno);
  const pid_t process = ::fork();
  if (process < 0) return failed("the program could not be started", errno);
  if (process == 0) {
    char word = 0;
    ::close(go.ends[1]);
    if (::read(go.ends[0], &word, 1) != 1) ::_exit(127);
    put_descriptor(program.input, STDIN_FILENO);
    put_descriptor(program.output, STDOUT_FILENO);
    put_descriptor(program.error, STDERR_FILENO);
    if (program.in_child != nullptr) program.in_child();
    if (confine_this_process(filter) != 0) {
      [[maybe_unused]] const ssize_t told = ::write(STDERR_FILENO, kNotConfined.data(), kNotConfined.size());
      ::_exit(127);
    }
    ::execve(path->c_str(), arguments.data(), variables.data());
    if (errno == ENOEXEC) ::execve("/bin/sh", script_arguments.data(), variables.data());
    [[maybe_unused]] const ssize_t told = ::write(STDERR_FILENO, kNotStarted.data(), kNotStarted.size());
    ::_exit(126);
  }
  if (const int problem = watch->begin(process)) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, __WALL);
    return failed("the program cannot be watched", problem);
  }
  [[maybe_unused]] const ssize_t told = ::write(go.ends[1], "g", 1);

  state->program = std::move(program);
  state->process = process;
  state->watch = std::move(watch);
  return std::unique_ptr<ConfinedProgram>(new ConfinedProgram(std::move(state)));
}

Status find_program(const std::string& word) {
  const char* path = std::getenv("PATH");
  const Result<std::string> found =
      program_of(word, path != nullptr ? std::vector{"PATH=" + std::string(path)} : std::vector<std::string>{});
  if (!found) return found.error();
  return Ok{};
}

Status may_confine() {
  const Error forbidden{"this machine does not let Faultline watch a program's calls (ptrace with seccomp)", {}, {}};
  Pipe go;
  const std::vector<sock_filter> filter = confining_filter(Watched::kFiles);
  if (go.ends[0] < 0) return forbidden;
  const pid_t child = ::fork();
  if (child < 0) return forbidden;
  if (child == 0) {
    char word = 0;
    ::close(go.ends[1]);
    if (::read(go.ends[0], &word, 1) != 1 || confine_this_process(filter) != 0) ::_exit(1);
    ::_exit(::access("/", F_OK) == 0 ? 1 : 0);  // to be answered by the watch: it is not there
  }
  bool as_answered = ::ptrace(PTRACE_SEIZE, child, nullptr, watch_options()) == 0;
  if (as_answered)
    as_answered = ::write(go.ends[1], "g", 1) == 1;
  else
    ::kill(child, SIGKILL);
  for (int status = 0; ::waitpid(child, &status, __WALL) == child;) {
    if (!WIFSTOPPED(status)) {
      as_answered = as_answered && WIFEXITED(status) && WEXITSTATUS(status) == 0;
      break;
    }
    std::optional<Registers> registers = read_registers(child);
    char word = 0;
    if (status >> 16 == PTRACE_EVENT_SECCOMP && registers &&
        read_memory(child, argument(*registers, argument_of_access(*registers)), &word, 1) && word == '/') {
      registers->orig_rax = static_cast<unsigned long long>(-1);
      registers->rax = static_cast<unsigned long long>(-ENOENT);
      write_registers(child, *registers);
    }
    ::ptrace(PTRACE_CONT, child, nullptr, 0L);
  }
  if (!as_answered) return forbidden;
  return Ok{};
}

int ConfinedProgram::wait() {
  if (state_->ended) return state_->status;
  state_->status = state_->watch->run(state_->process);
  state_->ended = true;
  return state_->status;
}

Effects ConfinedProgram::effects() const {
  const Watch& watch = *state_->watch;
  std::vector<std::string> done_for_real = state_->given.changed();
  done_for_real.insert(done_for_real.end(), watch.files().written_for_real().begin(),
                       watch.files().written_for_real().end());
  return {watch.files().changes(), watch.files().ran_out_of_space(), watch.input_was_cut(),
          watch.network().count(), watch.network().places(),         watch.network().refuses(),
          done_for_real,           watch.processes().unsent_count(), watch.processes().unsent()};
}

}  // namespace faultline::confine
