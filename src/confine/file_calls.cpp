#include "confine/file_calls.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>

#include "confine/input_calls.h"
#include "confine/paths.h"

namespace faultline::confine {
namespace {

// open() leaves out what it does not know, openat2() refuses it.
constexpr std::uint64_t kLargeFile = 0100000;  // the kernel's; the C library's is 0 here
constexpr std::uint64_t kOpenFlags = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK |
                                     O_SYNC | O_ASYNC | O_DIRECT | kLargeFile | O_DIRECTORY | O_NOFOLLOW | O_NOATIME |
                                     O_CLOEXEC | O_PATH | O_TMPFILE;
constexpr std::uint64_t kResolves = 0x3f;

// An open of something aside goes through no link, whoever puts one there meanwhile.
Decision opened(const Place& place, std::uint64_t flags, std::uint64_t mode) {
  constexpr std::uint64_t kWithPathOnly = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const bool makes = (flags & O_PATH) == 0 && ((flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE);
  open_how how{};
  how.flags = flags & ((flags & O_PATH) != 0 ? kWithPathOnly : kOpenFlags);
  how.mode = makes ? mode & 07777 : 0;
  how.resolve = place.aside ? RESOLVE_NO_SYMLINKS : 0;
  Decision decision = rewritten(1, place.real);
  decision.bytes.emplace_back(2, std::string(reinterpret_cast<const char*>(&how), sizeof how));
  decision.numbers = {{0, static_cast<std::uint64_t>(AT_FDCWD)}, {3, sizeof how}};
  decision.as_call = SYS_openat2;
  return decision;
}

Decision found_to_open(const Place& place, std::uint64_t flags, std::uint64_t mode) {
  const Decision decision = found(place, 1);
  return decision.kind == Decision::Kind::kRewrite ? opened(place, flags, mode) : decision;
}

// By the name of a descriptor that was given open (/dev/stdout): what is written there is to arrive. One that only appends never does anything else.
std::optional<Decision> given_opened(const Asked& call, const Place& place, std::uint64_t flags, std::uint64_t mode) {
  struct stat status {};
  if (place.descriptor.empty() || ::stat(place.descriptor.c_str(), &status) != 0) return std::nullopt;
  const GivenFiles::File* given = call.confinement.given.find(status);
  if (given == nullptr) return std::nullopt;
  if (!given->only_appends) return Decision::pass();
  Place there = place;
  there.real = place.descriptor;
  there.aside = false;
  return opened(there, (flags & ~static_cast<std::uint64_t>(O_TRUNC)) | O_APPEND, mode);
}

// What a descriptor's name leads to where the file's own name is gone: one of the user's that has another name yet.
bool is_users_without_name(const Asked& call, const Place& place) {
  struct stat status {};
  if (!S_ISLNK(place.status.st_mode) || ::stat(place.real.c_str(), &status) != 0) return false;
  return S_ISREG(status.st_mode) && status.st_nlink != 0 && !lies_in(read_link(place.real), call.files().root());
}

// What the kernel shows of itself: a setting is written for real, and noted; what belongs to a process that is not watched is not.
Decision kernels_opened(const Asked& call, const Place& place, std::uint64_t flags, std::uint64_t mode, bool writes) {
  if (!writes || !place.exists()) return found_to_open(place, flags, mode);
  const int process = lies_in(place.path, "/proc") ? std::atoi(place.path.c_str() + sizeof "/proc") : 0;
  if (process > 0 && !call.confinement.processes.watches(process_of(process))) return Decision::answer(-EACCES);
  // groups of processes: who is in them, and ends or stops with them
  if (lies_in(place.path, "/sys/fs/cgroup")) return Decision::answer(-EACCES);
  if (place.path == "/proc/sysrq-trigger" || is_users_without_name(call, place)) return Decision::answer(-EPERM);
  if (process <= 0 && place.is_file() && ::faccessat(AT_FDCWD, place.real.c_str(), W_OK, AT_EACCESS) == 0)
    call.files().note_written_for_real(place.path);
  return found_to_open(place, flags, mode);
}

// A disk or the machine's memory, with everything that is on it.
bool holds_files(const Place& place) {
  constexpr unsigned kMemory = 1, kMem = 1, kKmem = 2, kPort = 4;
  if (S_ISBLK(place.status.st_mode)) return true;
  const unsigned minor_number = minor(place.status.st_rdev);
  return S_ISCHR(place.status.st_mode) && major(place.status.st_rdev) == kMemory &&
         (minor_number == kMem || minor_number == kKmem || minor_number == kPort);
}

// A change of a file through a descriptor, which may be one that only reads a file of the user's.
Decision descriptor_call(const Asked& call, const std::function<int(const std::string&)>& change) {
  const std::string link = link_of(call, 0);
  if (is_free(call, link)) return Decision::pass();
  Place place = call.files().find("/", link, false, {});
  // the program has removed or moved it: nobody will look
  if (place.real != link && !place.aside) return Decision::answer(0);
  if (!place.is_file() && !place.is_folder()) return Decision::answer(0);
  if (::geteuid() != 0 && place.status.st_uid != ::geteuid()) return Decision::answer(-EPERM);
  if (const int problem = call.files().make_own(place, true)) return Decision::answer(-problem);
  return Decision::answer(change(place.real) == 0 ? 0 : -errno);
}

mode_t mask_of(pid_t thread) { return status_number(thread, "Umask: %o", 022); }

// Calls that make a name: nothing may be there yet.
Decision make_call(const Asked& call, int folder, int path, bool is_folder,
                   const std::function<int(const Place&)>& make) {
  const Named at = named(call, folder, path, false, true);
  if (at.settled) return *at.settled;
  if (at.place.exists()) return Decision::answer(-EEXIST);
  // a folder there is no folder: it makes a group of processes, or a device
  if (!is_kept(at.place)) return at.place.parent_exists ? Decision::answer(-EPERM) : found(at.place, path);
  if (!at.place.parent_exists) return found(at.place, path);
  if (at.place.as_folder && !is_folder) return Decision::answer(-ENOENT);
  return Decision::answer(-make(at.place));
}

Decision change_owner(const Asked& call, int owner) {
  return descriptor_call(call, [&](const std::string& real) {
    return ::lchown(real.c_str(), static_cast<uid_t>(call.number(owner)), static_cast<gid_t>(call.number(owner + 1)));
  });
}

}  // namespace

Decision read_call(const Asked& call, int folder, int path, bool follow) {
  if (call.number(path) == 0) return Decision::pass();  // a descriptor alone, or a mistake
  Named at = named(call, folder, path, follow);
  if (at.settled) return *at.settled;
  // A folder that was moved is the same one to whoever asks for its number first and opens it then.
  if (at.place.is_folder() && !at.place.natural && !at.place.aside) call.files().make_own(at.place, true);
  return found(at.place, path);
}

Decision with_identity(const Asked& call, Decision decision) {
  if (!call.tracee.was_live || decision.kind == Decision::Kind::kAnswer) return decision;
  if (decision.kind == Decision::Kind::kPass) return look_when_it_returns(Pending::Kind::kIdentity);
  decision.look = Pending::Kind::kIdentity;
  return decision;
}

Decision list_call(const Asked& call) {
  const std::string folder = call.files().known_as(link_of(call, 0));
  if (!call.files().is_listed_in_part(folder)) return Decision::pass();
  if (call.registers.orig_rax == SYS_getdents64) {
    // From the beginning, or again after rewinddir().
    if (descriptor_number(call.tracee.thread, call.small(0), "pos: %lld") == 0)
      call.confinement.listings.begin({call.tracee.process, call.small(0)}, call.files().below(folder));
    return look_when_it_returns(Pending::Kind::kListing);
  }
  Place place = call.files().find("/", folder, false, {});
  call.files().make_listable(place);
  return Decision::pass();
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

Decision open_call(const Asked& call, const Opening& asked) {
  const auto [folder, path, flags, mode, resolve] = asked;
  const bool only_path = (flags & O_PATH) != 0;
  const bool unnamed = !only_path && (flags & O_TMPFILE) == O_TMPFILE;
  const bool writes = !only_path && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0);
  const bool makes = !only_path && !unnamed && (flags & O_CREAT) != 0;
  const bool must_be_new = makes && (flags & O_EXCL) != 0;
  Named at = named(call, folder, path, (flags & O_NOFOLLOW) == 0 && !must_be_new);
  Place& place = at.place;
  if (at.settled) return *at.settled;
  if ((resolve & RESOLVE_NO_SYMLINKS) != 0 && place.links != 0) return Decision::answer(-ELOOP);
  if ((resolve & RESOLVE_NO_MAGICLINKS) != 0 && !place.descriptor.empty()) return Decision::answer(-ELOOP);
  if (!only_path && opens_unseen_input(call, place)) return see_all_reads();
  if (writes) {
    if (const std::optional<Decision> given = given_opened(call, place, flags, mode)) return *given;
  }
  if (place.is_folder() && !writes && !unnamed && !only_path && !must_be_new) {
    const bool is_large = call.tracee.lists != Tracee::Lists::kCannotBeSeen && call.files().is_large(place);
    if (is_large && call.tracee.lists == Tracee::Lists::kUnseen)
      return with_filter(lists_filter(), Pending::Kind::kSeesLists);
    const int problem = call.files().make_listable(place, is_large);
    return problem != 0 ? Decision::answer(-problem) : found_to_open(place, flags, mode);
  }
  if (!is_kept(place)) return kernels_opened(call, place, flags, mode, writes);
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
  if (writes && holds_files(place)) return Decision::answer(-EROFS);
  if (!writes || !place.is_file() || place.aside) return found_to_open(place, flags, mode);
  if (::faccessat(AT_FDCWD, place.real.c_str(), W_OK, AT_EACCESS) != 0) return Decision::answer(-errno);
  const int problem = call.files().make_own(place, (flags & O_TRUNC) == 0);
  return problem != 0 ? Decision::answer(-problem) : opened(place, flags, mode);
}

Decision open_with_how(const Asked& call) {
  open_how how{};
  if (call.number(3) < sizeof how) return Decision::answer(-EINVAL);
  if (!read_memory(call.tracee.thread, call.number(2), &how, sizeof how)) return Decision::answer(-EFAULT);
  if ((how.flags & ~kOpenFlags) != 0 || (how.resolve & ~kResolves) != 0) return Decision::answer(-EINVAL);
  // who asks for that has another way for older kernels
  if ((how.resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH)) != 0) return Decision::answer(-ENOSYS);
  return open_call(call, {0, 1, how.flags, how.mode, how.resolve});
}

Decision attribute_call(const Asked& call, int folder, int path, bool follow, bool owner_only) {
  Named at = named(call, folder, path, follow);
  Place& place = at.place;
  if (at.settled) return *at.settled;
  if (!place.exists() || !is_kept(place) || place.aside) return found(place, path);
  if (!place.is_file() && !place.is_folder() && !S_ISLNK(place.status.st_mode)) return Decision::answer(0);
  if (owner_only && ::geteuid() != 0 && place.status.st_uid != ::geteuid()) return Decision::answer(-EPERM);
  if (!owner_only && ::faccessat(AT_FDCWD, place.real.c_str(), W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) != 0)
    return Decision::answer(-errno);
  const int problem = call.files().make_own(place, true);
  return problem != 0 ? Decision::answer(-problem) : rewritten(path, place.real);
}

Decision times_call(const Asked& call) {
  if (!has_no_words(call, 1)) return attribute_call(call, 0, 1, (call.number(3) & AT_SYMLINK_NOFOLLOW) == 0, false);
  timespec times[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  if (call.number(2) != 0 && !read_memory(call.tracee.thread, call.number(2), times, sizeof times))
    return Decision::pass();
  return descriptor_call(call, [&](const std::string& real) { return ::utimensat(AT_FDCWD, real.c_str(), times, 0); });
}

Decision mode_call(const Asked& call, int mode) {
  return descriptor_call(call, [&](const std::string& real) {
    return ::chmod(real.c_str(), static_cast<mode_t>(call.number(mode)) & 07777);
  });
}

Decision owner_call(const Asked& call, int folder, int path, std::uint64_t flags) {
  if (has_no_words(call, path)) return change_owner(call, path + 1);
  return attribute_call(call, folder, path, (flags & AT_SYMLINK_NOFOLLOW) == 0, true);
}

Decision descriptor_owner_call(const Asked& call) { return change_owner(call, 1); }

Decision xattr_call(const Asked& call) {
  return descriptor_call(call, [](const std::string&) { return errno = EOPNOTSUPP, -1; });
}

Decision xattr_at_call(const Asked& call) {
  return has_no_words(call, 1) ? xattr_call(call)
                               : attribute_call(call, 0, 1, (call.number(2) & AT_SYMLINK_NOFOLLOW) == 0, true);
}

Decision make_folder_call(const Asked& call, int folder, int path) {
  return make_call(call, folder, path, true, [&](const Place& place) {
    return call.files().make_folder(place,
                                    static_cast<mode_t>(call.number(path + 1)) & 07777 & ~mask_of(call.tracee.thread));
  });
}

Decision make_node_call(const Asked& call, int folder, int path) {
  return make_call(call, folder, path, false, [&](const Place& place) {
    mode_t mode = static_cast<mode_t>(call.number(path + 1));
    if ((mode & S_IFMT) == 0) mode |= S_IFREG;
    return call.files().make_node(place, mode & ~mask_of(call.tracee.thread),
                                  static_cast<dev_t>(call.number(path + 2)));
  });
}

Decision make_link_call(const Asked& call, int folder, int path) {
  const std::optional<std::string> target = read_path(call.tracee.thread, call.number(0));
  if (!target || target->empty()) return Decision::pass();
  return make_call(call, folder, path, false,
                   [&](const Place& place) { return call.files().make_link(place, *target); });
}

Decision remove_call(const Asked& call, int folder, int path, bool is_folder) {
  const Named at = named(call, folder, path, false, true);
  if (at.settled) return *at.settled;
  if (!at.place.exists()) return found(at.place, path);
  if (!is_kept(at.place)) return Decision::answer(-EPERM);
  if (at.place.as_folder && !at.place.is_folder()) return Decision::answer(-ENOTDIR);
  return Decision::answer(-(is_folder ? call.files().remove_folder(at.place) : call.files().remove_file(at.place)));
}

Decision rename_call(const Asked& call, int from_folder, int from_path, int to_folder, int to_path,
                     std::uint64_t flags) {
  constexpr std::uint64_t kNoReplace = 1;
  const Named from = named(call, from_folder, from_path, false, true),
              to = named(call, to_folder, to_path, false, true);
  for (const Named* named : {&from, &to})
    if (named->settled && named->settled->kind == Decision::Kind::kAnswer) return *named->settled;
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
  // Faultline's own folder is written for real, so nothing from elsewhere gets a name in it.
  if (to.is_own && !from.is_own) return Decision::answer(-EXDEV);
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

}  // namespace faultline::confine
