#include "confine/asked.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace faultline::confine {

Named named(const Asked& call, int folder, int path, bool follow, bool fresh) {
  std::optional<std::string> words = read_path(call.tracee.thread, call.number(path));
  if (!words) {  // too long, or not all there
    char last = 0;
    const bool is_there = read_memory(call.tracee.thread, call.number(path) + PATH_MAX - 1, &last, 1);
    return {{}, Decision::answer(is_there ? -ENAMETOOLONG : -EFAULT)};
  }
  if (words->empty()) return {{}, Decision::pass()};  // a descriptor alone, or nothing
  std::string start = "/";
  if (words->front() != '/') {
    start = folder == kNoFolder ? proc_link(call.tracee.thread, "cwd") : link_of(call, folder);
    if (start.empty()) return {{}, Decision::answer(-EBADF)};
    if (start.front() != '/') return {{}, Decision::answer(-ENOTDIR)};
  }
  const bool as_folder = words->back() == '/';
  if (fresh) words->erase(std::min(words->find_last_not_of('/'), words->size() - 1) + 1);
  Named named{call.files().find(start, *words, follow,
                                {std::to_string(call.tracee.process), std::to_string(call.tracee.thread)}),
              {}};
  named.place.as_folder = as_folder;
  named.is_own = named.place.natural && call.files().is_own(named.place.path);
  if (named.is_own) named.settled = Decision::pass();
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

Decision found(const Place& place, int path) {
  if (!is_kept(place) && place.natural) return Decision::pass();
  if (!place.exists()) return Decision::answer(-place.error);
  return place.natural ? Decision::pass() : rewritten(path, place.real);
}

std::string link_of(const Asked& call, int index) {
  const int descriptor = call.small(index);
  return proc_link(call.tracee.thread, descriptor == AT_FDCWD ? "cwd" : "fd/" + std::to_string(descriptor));
}

bool is_free(const Asked& call, const std::string& link) {
  if (link.empty() || link.front() != '/' || call.files().known_as(link) != link || FileLayer::is_kernels(link) ||
      call.files().is_own(link))
    return true;
  struct stat status {};
  return link.ends_with(" (deleted)") && ::lstat(link.c_str(), &status) != 0;
}

}  // namespace faultline::confine
