#include "sources/pack/pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <vector>

#include "base/characters.h"
#include "base/descriptor.h"
#include "base/plain_file.h"
#include "base/temporary_folder.h"
#include "base/zip.h"

namespace faultline {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostArchiveBytes = std::size_t{2} << 30;
constexpr std::size_t kMostNameBytes = 255, kMostDepth = 6;
constexpr std::size_t kNameAt = 30;  // of an archive's first entry

// The order of the files in the pack is that in which they were written; some are chosen by it.
Status write_file(const fs::path& path, const std::string& content, std::time_t changed) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file)
    return errno == EEXIST || errno == EISDIR ? Error{"the pack holds a file twice", {}, {}}
                                              : file_error("cannot be unpacked", errno);
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t wrote = ::write(file.number(), content.data() + done, content.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      return Error{"it cannot be unpacked: " + file_error("the folder for temporary files", errno).message(),
                   {},
                   "Set TMPDIR to a folder with more space."};
    done += static_cast<std::size_t>(wrote);
  }
  const timespec times[2] = {{changed, 0}, {changed, 0}};
  ::futimens(file.number(), times);
  return Ok{};
}

constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
std::array<char, 4096> going{};  // the folder that goes with the process

// Nothing but what a handler may do: another program takes the folder away, then the signal does what it would have done.
void end_with_folder(int signal) {
  if (const pid_t process = ::_Fork(); process == 0) {
    ::execl("/bin/rm", "rm", "-rf", "--", going.data(), nullptr);
    ::_exit(1);
  } else if (process > 0) {
    ::waitpid(process, nullptr, 0);
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// While one of these lives, what ends the process takes the folder along; signals that somebody else hears or ignores are left to them.
class GoesWithProcess {
 public:
  explicit GoesWithProcess(const std::string& folder) {
    if (folder.empty() || folder.size() >= going.size()) return;
    std::copy(folder.begin(), folder.end(), going.begin());
    going[folder.size()] = '\0';
    for (const int signal : kEnding) {
      struct sigaction before {};
      if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) continue;
      struct sigaction ours {};
      ours.sa_handler = end_with_folder;
      ours.sa_flags = SA_NODEFER;
      ::sigfillset(&ours.sa_mask);
      ::sigdelset(&ours.sa_mask, signal);
      if (::sigaction(signal, &ours, nullptr) == 0) changed_.push_back(signal);
    }
  }
  ~GoesWithProcess() {
    for (const int signal : changed_) ::signal(signal, SIG_DFL);
  }
  GoesWithProcess(const GoesWithProcess&) = delete;
  GoesWithProcess& operator=(const GoesWithProcess&) = delete;

 private:
  std::vector<int> changed_;
};

}  // namespace

bool is_packed_name(std::string_view name) {
  if (name.size() > kMostNameBytes || !(name.starts_with(kPackFolder) || name.starts_with(kPackFile))) return false;
  std::size_t depth = 0;
  for (std::string_view rest = name; !rest.empty(); ++depth) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    const bool is_plain = std::all_of(part.begin(), part.end(), [](char c) {
      return is_letter(c) || is_digit(c) || std::string_view("._-+=,@").find(c) != std::string_view::npos;
    });
    if (!is_plain || part.empty() || part == "." || part == ".." || end + 1 == rest.size()) return false;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return depth >= 2 && depth <= kMostDepth;
}

bool looks_like_pack(std::span<const std::uint8_t> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  return text.starts_with("PK\x03\x04") && text.size() > kNameAt && text.substr(kNameAt).starts_with(kPackNote);
}

Result<Input> read_pack(ByteStream& stream, const std::string&) {
  thread_local bool is_inside = false;
  if (is_inside) return Error{"a pack in a pack is not read", {}, {}};
  is_inside = true;
  const struct Leave {
    ~Leave() { is_inside = false; }
  } leave;
  Result<std::string> archive = stream.read_all(kMostArchiveBytes);
  if (!archive) return archive.error();
  // no signal comes between the folder and the promise that it goes
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<TemporaryFolder> folder = TemporaryFolder::make();
  const GoesWithProcess goes(folder ? folder->path() : std::string());
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!folder) return folder.error();
  const fs::path top = folder->path();
  std::string first, file;
  std::time_t changed = 1;
  const Status unpacked =
      read_zip({reinterpret_cast<const std::uint8_t*>(archive->data()), archive->size()},
               [&](const std::string& name, const std::string& content) -> Status {
                 if (name == kPackNote || name == kPackTakenOut) return Ok{};
                 if (!is_packed_name(name))
                   return Error{"this pack holds a name that no pack has", {}, "It is not read."};
                 if (looks_like_pack({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()}))
                   return Error{"a pack in a pack is not read", {}, {}};
                 std::error_code problem;
                 fs::create_directories((top / name).parent_path(), problem);
                 if (problem) return Error{"it cannot be unpacked: " + problem.message(), {}, {}};
                 if (!first.empty() && (name.starts_with(kPackFile) || first.starts_with(kPackFile)))
                   return Error{"this pack holds more than one recording", {}, "It is not read."};
                 first = name;
                 if (name.starts_with(kPackFile)) file = name;
                 return write_file(top / name, content, changed++);
               });
  if (!unpacked) return unpacked.error();
  archive->clear(), archive->shrink_to_fit();
  std::error_code problem;
  if (!file.empty()) return open_input((top / file).string(), NamedBy::kInput);
  if (!fs::is_directory(top / kPackFolder, problem)) return Error{"this pack holds nothing to read", {}, {}};
  return open_input((top / kPackFolder).string());
}

}  // namespace faultline
