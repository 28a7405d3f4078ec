#include "confine/calls.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <unordered_map>

namespace faultline::confine {
namespace {

constexpr int kNoFolder = -1;  // the call has no argument for a folder: it counts from the working folder
constexpr int kChangeModeAt = 452, kSetXattrAt = 463, kGetXattrAt = 464, kListXattrAt = 465, kRemoveXattrAt = 466;  // newer than the headers
constexpr unsigned kMostMessages = 1024;  // the kernel takes no more

// One call and what it is looked at with.
struct Asked {
  Confinement& confinement;
  const Tracee& tracee;
  const Registers& registers;

  FileLayer& files() const { return confinement.files; }
  std::uint64_t number(int index) const { return argument(registers, index); }
  int small(int index) const { return static_cast<int>(argument(registers, index)); }
};

// Where the words of a call lead, or what becomes of it without going there. Words that cannot be read end the call: what is not known is not let through.
struct Named {
  Place place;
  std::optional<Decision> settled;
};

// `fresh`: for a name that is to be made, where a slash at the end does not lead through a link.
Named named(const Asked& call, int folder, int path, bool follow, bool fresh = false) {
  std::optional<std::string> words = read_path(call.tracee.thread, call.number(path));
  if (!words) return {{}, Decision::answer(call.number(path) == 0 ? -EFAULT : -ENAMETOOLONG)};
  if (words->empty()) return {{}, Decision::pass()};  // a descriptor alone, or nothing
  std::string start = "/";
  if (words->front() != '/') {
    const int descriptor = folder == kNoFolder ? AT_FDCWD : call.small(folder);
    start = descriptor == AT_FDCWD ? proc_link(call.tracee.thread, "cwd") : proc_link(call.tracee.thread, "fd/" + std::to_string(descriptor));
    if (start.empty()) return {{}, Decision::answer(-EBADF)};
    if (start.front() != '/') return {{}, Decision::answer(-ENOTDIR)};
  }
  const bool as_folder = words->back() == '/';
  if (fresh) words->erase(std::min(words->find_last_not_of('/'), words->size() - 1) + 1);
  Named named{call.files().find(start, *words, follow, {std::to_string(call.tracee.process), std::to_string(call.tracee.thread)}), {}};
  named.place.as_folder = as_folder;
  if (named.place.natural && call.files().is_own(named.place.path)) named.settled = Decision::pass();
  return named;
}

bool has_no_words(const Asked& call, int path) {
  if (call.number(path) == 0) return true;
  const std::optional<std::string> words = read_path(call.tracee.thread, call.number(path));
  return words && words->empty();
}

bool is_kept(const Place& place) { return !FileLayer::is_kernels(place.path); }

Decision rewritten(int argument, const std::string& path) {
  Decision decision;
  decision.kind = Decision::Kind::kRewrite;
  decision.bytes.emplace_back(argument, path + '\0');
  return decision;
}

Decision look_when_it_returns(Pending::Kind what) {
  Decision decision;
  decision.kind = Decision::Kind::kPassAndLook;
  decision.look = what;
  return decision;
}

// For calls that only read. What does not exist is never asked of the kernel, which may know better.
Decision found(const Place& place, int path) {
  if (!is_kept(place) && place.natural) return Decision::pass();
  if (!place.exists()) return Decision::answer(-place.error);
  return place.natural ? Decision::pass() : rewritten(path, place.real);
}

Decision read_call(const Asked& call, int folder, int path, bool follow) {
  if (call.number(path) == 0) return Decision::pass();  // a descriptor alone, or a mistake
  Named at = named(call, folder, path, follow);
  if (at.settled) return *at.settled;
  // A folder that was moved is the same one to whoever asks for its number first and opens it then.
  if (at.place.is_folder() && !at.place.natural && !at.place.aside) call.files().make_own(at.place, true);
  return found(at.place, path);
}

Decision change_folder(const Asked& call) {
  Named at = named(call, kNoFolder, 0, true);
  if (at.settled) return *at.settled;
  if (at.place.natural || !at.place.exists()) return found(at.place, 0);
  if (!at.place.is_folder()) return Decision::answer(-ENOTDIR);
  const int problem = call.files().make_standable(at.place);
  return problem != 0 ? Decision::answer(-problem) : rewritten(0, at.place.real);
}

Decision working_folder(const Asked& call) {
  const std::string folder = proc_link(call.tracee.thread, "cwd");
  if (call.files().known_as(folder) == folder) return Decision::pass();
  return look_when_it_returns(Pending::Kind::kWorkingFolder);
}

// An open of something aside goes through no link, whoever puts one there meanwhile.
Decision opened(const Place& place, std::uint64_t flags, std::uint64_t mode) {
  constexpr std::uint64_t kWithPathOnly = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const bool makes = (flags & O_PATH) == 0 && ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE);
  open_how how{};
  how.flags = (flags & O_PATH) != 0 ? flags & kWithPathOnly : flags;
  how.mode = makes ? mode & 07777 : 0;
  how.resolve = place.aside ? RESOLVE_NO_SYMLINKS : 0;
  Decision decision = rewritten(1, place.real);
  decision.bytes.emplace_back(2, std::string(reinterpret_cast<const char*>(&how), sizeof how));
  decision.numbers = {{0, static_cast<std::uint64_t>(AT_FDCWD)}, {3, sizeof how}};
  decision.as_call = SYS_openat2;
  return decision;
}

// What is asked of an open, however it is said.
struct Opening {
  int folder = kNoFolder;
  int path = 0;
  std::uint64_t flags = 0;
  std::uint64_t mode = 0;
};

Decision found_to_open(const Place& place, std::uint64_t flags, std::uint64_t mode) {
  const Decision decision = found(place, 1);
  return decision.kind == Decision::Kind::kRewrite ? opened(place, flags, mode) : decision;
}

Decision open_call(const Asked& call, const Opening& asked) {
  const auto [folder, path, flags, mode] = asked;
  const bool only_path = (flags & O_PATH) != 0;
  const bool unnamed = !only_path && (flags & O_TMPFILE) == O_TMPFILE;
  const bool writes = !only_path && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0);
  const bool makes = !only_path && !unnamed && (flags & O_CREAT) != 0;
  const bool must_be_new = makes && (flags & O_EXCL) != 0;
  Named at = named(call, folder, path, (flags & O_NOFOLLOW) == 0 && !must_be_new);
  Place& place = at.place;
  if (at.settled) return *at.settled;
  if (place.is_folder() && !writes && !unnamed && !only_path && !must_be_new) {
    const int problem = call.files().make_listable(place);
    return problem != 0 ? Decision::answer(-problem) : found_to_open(place, flags, mode);
  }
  if (!is_kept(place)) return found_to_open(place, flags, mode);
  if (makes && place.as_folder && (place.exists() || place.parent_exists)) return Decision::answer(-EISDIR);
  if (!place.exists()) {
    if (!makes || !place.parent_exists) return found_to_open(place, flags, mode);
    const int problem = call.files().make_room(place);
    return problem != 0 ? Decision::answer(-problem) : opened(place, flags, mode);
  }
  if (must_be_new) return Decision::answer(-EEXIST);
  if (place.is_folder()) {
    const int problem = unnamed ? call.files().make_own(place, true) : 0;
    return problem != 0 ? Decision::answer(-problem) : found_to_open(place, flags, mode);
  }
  if (!writes || !place.is_file() || place.aside) return found_to_open(place, flags, mode);
  if (::faccessat(AT_FDCWD, place.real.c_str(), W_OK, AT_EACCESS) != 0) return Decision::answer(-errno);
  const int problem = call.files().make_own(place, (flags & O_TRUNC) == 0);
  return problem != 0 ? Decision::answer(-problem) : opened(place, flags, mode);
}

Decision open_with_how(const Asked& call) {
  open_how how{};
  if (!read_memory(call.tracee.thread, call.number(2), &how, std::min<std::uint64_t>(sizeof how, call.number(3)))) return Decision::answer(-EFAULT);
  if ((how.resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH)) != 0) return Decision::answer(-ENOSYS);  // who asks for that has another way for older kernels
  return open_call(call, {0, 1, how.flags, how.mode});
}

// Changes of mode, owner, times, length and attributes: of a copy aside, by the kernel.
Decision attribute_call(const Asked& call, int folder, int path, bool follow, bool owner_only) {
  Named at = named(call, folder, path, follow);
  Place& place = at.place;
  if (at.settled) return *at.settled;
  if (!place.exists() || !is_kept(place) || place.aside) return found(place, path);
  if (!place.is_file() && !place.is_folder() && !S_ISLNK(place.status.st_mode)) return Decision::answer(0);
  if (owner_only && ::geteuid() != 0 && place.status.st_uid != ::geteuid()) return Decision::answer(-EPERM);
  if (!owner_only && ::faccessat(AT_FDCWD, place.real.c_str(), W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0) return Decision::answer(-errno);
  const int problem = call.files().make_own(place, true);
  return problem != 0 ? Decision::answer(-problem) : rewritten(path, place.real);
}

// What a descriptor leads to, as /proc names it; AT_FDCWD is the working folder.
std::string link_of(const Asked& call, int index) {
  const int descriptor = call.small(index);
  return proc_link(call.tracee.thread, descriptor == AT_FDCWD ? "cwd" : "fd/" + std::to_string(descriptor));
}

// Something without a name, something aside, or none of the user's: the kernel may do as it is asked.
bool is_free(const Asked& call, const std::string& link) {
  if (link.empty() || link.front() != '/' || call.files().known_as(link) != link || FileLayer::is_kernels(link) || call.files().is_own(link)) return true;
  struct stat status {};
  return link.ends_with(" (deleted)") && ::lstat(link.c_str(), &status) != 0;
}

// The same through a descriptor, which may be one that only reads a file of the user's.
Decision descriptor_call(const Asked& call, const std::function<int(const std::string&)>& change) {
  const std::string link = link_of(call, 0);
  if (is_free(call, link)) return Decision::pass();
  Place place = call.files().find("/", link, false, {});
  if (place.real != link && !place.aside) return Decision::answer(0);  // the program has removed or moved it: nobody will look
  if (!place.is_file() && !place.is_folder()) return Decision::answer(0);
  if (::geteuid() != 0 && place.status.st_uid != ::geteuid()) return Decision::answer(-EPERM);
  if (const int problem = call.files().make_own(place, true)) return Decision::answer(-problem);
  return Decision::answer(change(place.real) == 0 ? 0 : -errno);
}

Decision times_call(const Asked& call) {
  if (!has_no_words(call, 1)) return attribute_call(call, 0, 1, (call.number(3) & AT_SYMLINK_NOFOLLOW) == 0, false);
  timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  if (call.number(2) != 0 && !read_memory(call.tracee.thread, call.number(2), times, sizeof times)) return Decision::pass();
  return descriptor_call(call, [&](const std::string& real) { return ::utimensat(AT_FDCWD, real.c_str(), times, 0); });
}

Decision mode_call(const Asked& call, int mode) {
  return descriptor_call(call, [&](const std::string& real) { return ::chmod(real.c_str(), static_cast<mode_t>(call.number(mode)) & 07777); });
}

Decision owner_call(const Asked& call, int folder, int path, std::uint64_t flags) {
  if (has_no_words(call, path)) {
    return descriptor_call(call, [&](const std::string& real) { return ::lchown(real.c_str(), static_cast<uid_t>(call.number(path + 1)), static_cast<gid_t>(call.number(path + 2))); });
  }
  return attribute_call(call, folder, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, true);
}

Decision xattr_call(const Asked& call) {
  return descriptor_call(call, [](const std::string&) { return errno = EOPNOTSUPP, -1; });
}

Decision xattr_at_call(const Asked& call) {
  return has_no_words(call, 1) ? xattr_call(call) : attribute_call(call, 0, 1, (call.number(2) & AT_SYMLINK_NOFOLLOW) == 0, true);
}

mode_t mask_of(pid_t thread) {
  mode_t mask = 022;
  if (std::FILE* file = std::fopen(("/proc/" + std::to_string(thread) + "/status").c_str(), "re")) {
    char line[256];
    while (std::fgets(line, sizeof line, file) != nullptr) {
      if (std::sscanf(line, "Umask: %o", &mask) == 1) break;
    }
    std::fclose(file);
  }
  return mask;
}

// Calls that make a name: nothing may be there yet.
Decision make_call(const Asked& call, int folder, int path, bool is_folder, const std::function<int(const Place&)>& make) {
  const Named at = named(call, folder, path, false, true);
  if (at.settled) return *at.settled;
  if (!is_kept(at.place)) return found(at.place, path);
  if (at.place.exists()) return Decision::answer(-EEXIST);
  if (!at.place.parent_exists) return found(at.place, path);
  if (at.place.as_folder && !is_folder) return Decision::answer(-ENOENT);
  return Decision::answer(-make(at.place));
}

Decision make_folder_call(const Asked& call, int folder, int path) {
  return make_call(call, folder, path, true, [&](const Place& place) {
    return call.files().make_folder(place, static_cast<mode_t>(call.number(path + 1)) & 07777 & ~mask_of(call.tracee.thread));
  });
}

Decision make_node_call(const Asked& call, int folder, int path) {
  return make_call(call, folder, path, false, [&](const Place& place) {
    mode_t mode = static_cast<mode_t>(call.number(path + 1));
    if ((mode & S_IFMT) == 0) mode |= S_IFREG;
    return call.files().make_node(place, mode & ~mask_of(call.tracee.thread), static_cast<dev_t>(call.number(path + 2)));
  });
}

Decision make_link_call(const Asked& call, int folder, int path) {
  const std::optional<std::string> target = read_path(call.tracee.thread, call.number(0));
  if (!target || target->empty()) return Decision::pass();
  return make_call(call, folder, path, false, [&](const Place& place) { return call.files().make_link(place, *target); });
}

Decision remove_call(const Asked& call, int folder, int path, bool is_folder) {
  const Named at = named(call, folder, path, false, true);
  if (at.settled) return *at.settled;
  if (!at.place.exists() || !is_kept(at.place)) return found(at.place, path);
  if (at.place.as_folder && !at.place.is_folder()) return Decision::answer(-ENOTDIR);
  return Decision::answer(-(is_folder ? call.files().remove_folder(at.place) : call.files().remove_file(at.place)));
}

Decision rename_call(const Asked& call, int from_folder, int from_path, int to_folder, int to_path, std::uint64_t flags) {
  constexpr std::uint64_t kNoReplace = 1;
  const Named from = named(call, from_folder, from_path, false, true), to = named(call, to_folder, to_path, false, true);
  if (from.settled && to.settled) return Decision::pass();
  if (from.settled || to.settled) return Decision::answer(-EXDEV);
  const bool ends_early = !from.place.exists() && !from.place.parent_exists;
  if (!ends_early && !to.place.exists() && !to.place.parent_exists) return Decision::answer(-to.place.error);
  if (!from.place.exists()) return Decision::answer(-from.place.error);
  if (!is_kept(from.place) || !is_kept(to.place)) return Decision::answer(-EXDEV);
  if (flags > kNoReplace) return Decision::answer(-EINVAL);
  if ((from.place.as_folder || to.place.as_folder) && !from.place.is_folder()) return Decision::answer(-ENOTDIR);
  return Decision::answer(-call.files().rename(from.place, to.place, (flags & kNoReplace) == 0));
}

Decision link_call(const Asked& call, int from_folder, int from_path, int to_folder, int to_path, std::uint64_t flags) {
  Named to = named(call, to_folder, to_path, false, true);
  const Named from = named(call, from_folder, from_path, (flags & AT_SYMLINK_FOLLOW) != 0);
  if (!from.settled && !from.place.exists()) return Decision::answer(-from.place.error);
  if (to.settled) return *to.settled;
  if (to.place.exists()) return Decision::answer(-EEXIST);
  if (!to.place.parent_exists) return found(to.place, to_path);
  if (to.place.as_folder) return Decision::answer(-ENOENT);
  if (from.settled || !is_kept(from.place)) {  // by a descriptor
    const std::string link = from.settled ? link_of(call, from_folder == kNoFolder ? 0 : from_folder) : std::string();
    if (!is_free(call, link)) {
      const Place named_there = call.files().find("/", link, false, {});
      return Decision::answer(named_there.exists() ? -call.files().link(named_there, to.place) : -ENOENT);
    }
    if (const int problem = call.files().make_room(to.place)) return Decision::answer(-problem);
    return rewritten(to_path, to.place.real);
  }
  return Decision::answer(-call.files().link(from.place, to.place));
}

// ── sockets ─────────────────────────────────────────────────────────────────────────────────────

std::string read_address(const Asked& call, std::uint64_t address, std::uint64_t size) {
  std::string bytes(std::min<std::uint64_t>(size, sizeof(sockaddr_storage)), '\0');
  return !bytes.empty() && read_memory(call.tracee.thread, address, bytes.data(), bytes.size()) ? bytes : std::string();
}

sa_family_t family_of(const std::string& address) {
  sa_family_t family = AF_UNSPEC;
  if (address.size() >= sizeof family) std::memcpy(&family, address.data(), sizeof family);
  return family;
}

bool is_datagram(const Asked& call) {
#ifdef SYS_pidfd_getfd
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, call.tracee.process, 0));
  if (process < 0) return false;
  const int copy = static_cast<int>(::syscall(SYS_pidfd_getfd, process, call.small(0), 0));
  ::close(process);
  if (copy < 0) return false;
  int type = 0;
  socklen_t size = sizeof type;
  ::getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &size);
  ::close(copy);
  return type == SOCK_DGRAM;
#else
  return false;
#endif
}

// The words of a socket's name have little room: where they do not fit, the folder is named by a descriptor of ours.
std::string short_enough(const std::string& real) {
  constexpr std::size_t kMostFolders = 64;  // the oldest is closed then: its call was over long ago
  static std::deque<int> folders;
  if (real.size() < sizeof(sockaddr_un::sun_path)) return real;
  const std::size_t slash = real.rfind('/');
  const int folder = ::open(real.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) folders.push_back(folder);
  if (folders.size() > kMostFolders) {
    ::close(folders.front());
    folders.pop_front();
  }
  return folder < 0 ? real : "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(folder) + real.substr(slash);
}

// `argument`: where the address is given; its size follows.
Decision socket_file(const Asked& call, const std::string& address, int argument, bool makes) {
  const std::size_t head = offsetof(sockaddr_un, sun_path);
  if (address.size() <= head || address[head] == '\0') return Decision::pass();
  const std::string words = address.c_str() + head;
  const std::string start = proc_link(call.tracee.thread, "cwd");
  Place place = call.files().find(start, words, !makes, {std::to_string(call.tracee.process), std::to_string(call.tracee.thread)});
  if (!is_kept(place)) return Decision::pass();
  if (makes) {
    if (place.exists()) return Decision::answer(-EADDRINUSE);
    if (!place.parent_exists) return Decision::answer(-place.error);
    if (const int problem = call.files().make_room(place)) return Decision::answer(-problem);
  } else {
    if (place.natural) return Decision::pass();
    if (!place.exists()) return Decision::answer(-place.error);
  }
  const std::string path = short_enough(place.real);
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return Decision::answer(-ENAMETOOLONG);
  Decision decision;
  decision.kind = Decision::Kind::kRewrite;
  decision.bytes.emplace_back(argument, address.substr(0, head) + path + '\0');
  decision.numbers.emplace_back(argument + 1, head + path.size() + 1);
  return decision;
}

Decision bind_call(const Asked& call) {
  const std::string address = read_address(call, call.number(1), call.number(2));
  return family_of(address) == AF_UNIX ? socket_file(call, address, 1, true) : Decision::pass();
}

Decision connect_call(const Asked& call) {
  const std::string address = read_address(call, call.number(1), call.number(2));
  if (family_of(address) == AF_UNIX) return socket_file(call, address, 1, false);
  if (other_machine(address).empty()) return Decision::pass();
  // A datagram socket sends nothing by this; asking which way a machine would be reached is done so.
  if (is_datagram(call) && !call.confinement.network.refuses() && !other_machine(address).ends_with(":53")) return Decision::pass();
  return call.confinement.network.reaches(address) ? Decision::answer(-ENETUNREACH) : Decision::pass();
}

// A datagram to an address of no family is sent as one of the internet's.
std::string as_sent(std::string address) {
  const sa_family_t internet = AF_INET;
  if (family_of(address) == AF_UNSPEC && address.size() >= sizeof internet) std::memcpy(address.data(), &internet, sizeof internet);
  return address;
}

Decision send_to_call(const Asked& call) {
  const std::string address = read_address(call, call.number(4), call.number(5));
  if (family_of(address) == AF_UNIX) return socket_file(call, address, 4, false);
  return call.confinement.network.reaches(as_sent(address)) ? Decision::answer(-ENETUNREACH) : Decision::pass();
}

bool message_reaches(const Asked& call, std::uint64_t at) {
  msghdr message{};
  if (!read_memory(call.tracee.thread, at, &message, sizeof message) || message.msg_name == nullptr) return false;
  return call.confinement.network.reaches(as_sent(read_address(call, reinterpret_cast<std::uint64_t>(message.msg_name), message.msg_namelen)));
}

Decision send_message_call(const Asked& call, std::uint64_t count, std::size_t stride) {
  for (std::uint64_t at = 0; at < std::min<std::uint64_t>(count, kMostMessages); ++at) {
    if (message_reaches(call, call.number(1) + at * stride)) return Decision::answer(-ENETUNREACH);
  }
  return Decision::pass();
}

// ── the list ────────────────────────────────────────────────────────────────────────────────────

using Handler = std::function<Decision(const Asked&)>;

Handler reads(int folder, int path, bool follow) {
  return [=](const Asked& call) { return read_call(call, folder, path, follow); };
}
// The flags of most calls say not to follow a link, or that there are no words but a descriptor.
Handler reads_by_flags(int folder, int path, int flags) {
  return [=](const Asked& call) { return read_call(call, folder, path, (call.number(flags) & AT_SYMLINK_NOFOLLOW) == 0); };
}
Handler attributes(int folder, int path, bool follow, bool owner_only) {
  return [=](const Asked& call) { return attribute_call(call, folder, path, follow, owner_only); };
}

const std::unordered_map<int, Handler>& handlers() {
  static const std::unordered_map<int, Handler> list = {
      {SYS_open, [](const Asked& c) { return open_call(c, {kNoFolder, 0, c.number(1), c.number(2)}); }},
      {SYS_creat, [](const Asked& c) { return open_call(c, {kNoFolder, 0, O_CREAT | O_WRONLY | O_TRUNC, c.number(1)}); }},
      {SYS_openat, [](const Asked& c) { return open_call(c, {0, 1, c.number(2), c.number(3)}); }},
      {SYS_openat2, open_with_how},
      {SYS_stat, reads(kNoFolder, 0, true)},
      {SYS_lstat, reads(kNoFolder, 0, false)},
      {SYS_newfstatat, reads_by_flags(0, 1, 3)},
      {SYS_statx, reads_by_flags(0, 1, 2)},
      {SYS_access, reads(kNoFolder, 0, true)},
      {SYS_faccessat, reads(0, 1, true)},
      {SYS_faccessat2, reads_by_flags(0, 1, 3)},
      {SYS_readlink, reads(kNoFolder, 0, false)},
      {SYS_readlinkat, reads(0, 1, false)},
      {SYS_statfs, reads(kNoFolder, 0, true)},
      {SYS_getxattr, reads(kNoFolder, 0, true)},
      {SYS_lgetxattr, reads(kNoFolder, 0, false)},
      {SYS_listxattr, reads(kNoFolder, 0, true)},
      {SYS_llistxattr, reads(kNoFolder, 0, false)},
      {kGetXattrAt, reads_by_flags(0, 1, 2)},
      {kListXattrAt, reads_by_flags(0, 1, 2)},
      {SYS_inotify_add_watch, reads(kNoFolder, 1, true)},
      {SYS_execve, reads(kNoFolder, 0, true)},
      {SYS_execveat, reads_by_flags(0, 1, 4)},
      {SYS_chdir, change_folder},
      {SYS_getcwd, working_folder},
      {SYS_truncate, attributes(kNoFolder, 0, true, false)},
      {SYS_chmod, attributes(kNoFolder, 0, true, true)},
      {SYS_fchmodat, attributes(0, 1, true, true)},
      {kChangeModeAt, [](const Asked& c) { return has_no_words(c, 1) ? mode_call(c, 2) : attribute_call(c, 0, 1, (c.number(3) & AT_SYMLINK_NOFOLLOW) == 0, true); }},
      {SYS_chown, attributes(kNoFolder, 0, true, true)},
      {SYS_lchown, attributes(kNoFolder, 0, false, true)},
      {SYS_fchownat, [](const Asked& c) { return owner_call(c, 0, 1, c.number(4)); }},
      {SYS_utime, attributes(kNoFolder, 0, true, false)},
      {SYS_utimes, attributes(kNoFolder, 0, true, false)},
      {SYS_futimesat, [](const Asked& c) { return c.number(1) != 0 ? attribute_call(c, 0, 1, true, false) : Decision::answer(0); }},
      {SYS_utimensat, times_call},
      {SYS_setxattr, attributes(kNoFolder, 0, true, true)},
      {SYS_lsetxattr, attributes(kNoFolder, 0, false, true)},
      {SYS_removexattr, attributes(kNoFolder, 0, true, true)},
      {SYS_lremovexattr, attributes(kNoFolder, 0, false, true)},
      {kSetXattrAt, xattr_at_call},
      {kRemoveXattrAt, xattr_at_call},
      {SYS_fchmod, [](const Asked& c) { return mode_call(c, 1); }},
      {SYS_fchown, [](const Asked& c) { return descriptor_call(c, [&](const std::string& real) { return ::lchown(real.c_str(), static_cast<uid_t>(c.number(1)), static_cast<gid_t>(c.number(2))); }); }},
      {SYS_fsetxattr, xattr_call},
      {SYS_fremovexattr, xattr_call},
      {SYS_mkdir, [](const Asked& c) { return make_folder_call(c, kNoFolder, 0); }},
      {SYS_mkdirat, [](const Asked& c) { return make_folder_call(c, 0, 1); }},
      {SYS_mknod, [](const Asked& c) { return make_node_call(c, kNoFolder, 0); }},
      {SYS_mknodat, [](const Asked& c) { return make_node_call(c, 0, 1); }},
      {SYS_symlink, [](const Asked& c) { return make_link_call(c, kNoFolder, 1); }},
      {SYS_symlinkat, [](const Asked& c) { return make_link_call(c, 1, 2); }},
      {SYS_unlink, [](const Asked& c) { return remove_call(c, kNoFolder, 0, false); }},
      {SYS_rmdir, [](const Asked& c) { return remove_call(c, kNoFolder, 0, true); }},
      {SYS_unlinkat, [](const Asked& c) { return remove_call(c, 0, 1, (c.number(2) & AT_REMOVEDIR) != 0); }},
      {SYS_rename, [](const Asked& c) { return rename_call(c, kNoFolder, 0, kNoFolder, 1, 0); }},
      {SYS_renameat, [](const Asked& c) { return rename_call(c, 0, 1, 2, 3, 0); }},
      {SYS_renameat2, [](const Asked& c) { return rename_call(c, 0, 1, 2, 3, c.number(4)); }},
      {SYS_link, [](const Asked& c) { return link_call(c, kNoFolder, 0, kNoFolder, 1, 0); }},
      {SYS_linkat, [](const Asked& c) { return link_call(c, 0, 1, 2, 3, c.number(4)); }},
      {SYS_bind, bind_call},
      {SYS_connect, connect_call},
      {SYS_sendto, send_to_call},
      {SYS_sendmsg, [](const Asked& c) { return send_message_call(c, 1, 0); }},
      {SYS_sendmmsg, [](const Asked& c) { return send_message_call(c, c.number(2), sizeof(mmsghdr)); }},
      {SYS_read, [](const Asked&) { return look_when_it_returns(Pending::Kind::kStandardInput); }},
  };
  return list;
}

// The filter looks at the arguments of these before it lets them stop.
bool has_filter_of_its_own(int number) { return number == SYS_newfstatat || number == SYS_sendto || number == SYS_read; }

}  // namespace

const std::vector<int>& watched_calls() {
  static const std::vector<int> numbers = [] {
    std::vector<int> list;
    for (const auto& [number, handler] : handlers()) {
      if (!has_filter_of_its_own(number)) list.push_back(number);
    }
    return list;
  }();
  return numbers;
}

Decision decide(Confinement& confinement, const Tracee& tracee, const Registers& registers) {
  const auto handler = handlers().find(static_cast<int>(registers.orig_rax));
  if (handler == handlers().end()) return Decision::pass();
  return handler->second(Asked{confinement, tracee, registers});
}

}  // namespace faultline::confine
