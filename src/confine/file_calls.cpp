#include "confine/file_calls.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>

#include "confine/input_calls.h"
#include "confine/paths.h"

namespace faultline::confine {
namespace {

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

Decision found_to_open(const Place& place, std::uint64_t flags, std::uint64_t mode) {
  const Decision decision = found(place, 1);
  return decision.kind == Decision::Kind::kRewrite ? opened(place, flags, mode) : decision;
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
  if (!is_kept(at.place)) return found(at.place, path);
  if (at.place.exists()) return Decision::answer(-EEXIST);
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
  const auto [folder, path, flags, mode] = asked;
  const bool only_path = (flags & O_PATH) != 0;
  const bool unnamed = !only_path && (flags & O_TMPFILE) == O_TMPFILE;
  const bool writes = !only_path && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC) != 0);
  const bool makes = !only_path && !unnamed && (flags & O_CREAT) != 0;
  const bool must_be_new = makes && (flags & O_EXCL) != 0;
  Named at = named(call, folder, path, (flags & O_NOFOLLOW) == 0 && !must_be_new);
  Place& place = at.place;
  if (at.settled) return *at.settled;
  if (!only_path && opens_unseen_input(call, place)) return see_all_reads();
  if (place.is_folder() && !writes && !unnamed && !only_path && !must_be_new) {
    const int problem = call.files().make_listable(place);
    return problem != 0 ? Decision::answer(-problem) : found_to_open(place, flags, mode);
  }
  if (!is_kept(place)) {
    const bool is_setting = lies_in(place.path, "/sys") || lies_in(place.path, "/proc/sys");
    if (writes && is_setting && place.is_file() && ::faccessat(AT_FDCWD, place.real.c_str(), W_OK, AT_EACCESS) == 0)
      call.files().note_written_for_real(place.path);
    return found_to_open(place, flags, mode);
  }
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
  if (!read_memory(call.tracee.thread, call.number(2), &how, std::min<std::uint64_t>(sizeof how, call.number(3))))
    return Decision::answer(-EFAULT);
  // who asks for that has another way for older kernels
  if ((how.resolve & (RESOLVE_IN_ROOT | RESOLVE_BENEATH)) != 0) return Decision::answer(-ENOSYS);
  return open_call(call, {0, 1, how.flags, how.mode});
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
  if (!at.place.exists() || !is_kept(at.place)) return found(at.place, path);
  if (at.place.as_folder && !at.place.is_folder()) return Decision::answer(-ENOTDIR);
  return Decision::answer(-(is_folder ? call.files().remove_folder(at.place) : call.files().remove_file(at.place)));
}

Decision rename_call(const Asked& call, int from_folder, int from_path, int to_folder, int to_path,
                     std::uint64_t flags) {
  constexpr std::uint64_t kNoReplace = 1;
  const Named from = named(call, from_folder, from_path, false, true),
              to = named(call, to_folder, to_path, false, true);
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

}  // namespace faultline::confine
