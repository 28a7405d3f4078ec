// Where a path leads, through the real tree and the tree of what changed.
#include <unistd.h>

#include <cerrno>
#include <deque>

#include "confine/file_layer.h"
#include "confine/paths.h"

namespace faultline::confine {
namespace {

constexpr int kMostLinks = 40;  // as the kernel

}  // namespace

FileLayer::Step FileLayer::into(const Step& from, std::string_view name) const {
  Step step{nullptr, from.below.empty() ? std::string() : joined(from.below, name)};
  if (from.folder == nullptr) return step;
  const auto known = from.folder->names.find(name);
  if (known == from.folder->names.end()) return step;
  if (known->second.folder != nullptr) return {known->second.folder.get(), known->second.folder->below};
  if (!known->second.elsewhere.empty()) return {nullptr, known->second.elsewhere};
  return known->second.gone ? Step{} : step;
}

// By names alone: the path has no symbolic links in it.
FileLayer::Step FileLayer::step_to(std::string_view path) const {
  Step step{const_cast<Folder*>(&top_), "/"};
  std::deque<std::string> parts;
  split_before(parts, path);
  for (const std::string& part : parts) step = into(step, part);
  return step;
}

// What the folder has under this name; false: nothing.
bool FileLayer::look(const Step& in, const std::string& path, std::string_view name, Place& found) const {
  found.real.clear();
  found.aside = false;
  const Name* known = nullptr;
  if (in.folder != nullptr) {
    if (const auto at = in.folder->names.find(name); at != in.folder->names.end()) known = &at->second;
  }
  const auto is_at = [&](std::string real) {
    if (::lstat(real.c_str(), &found.status) != 0) {
      found.error = errno;
      return false;
    }
    found.real = std::move(real);
    found.error = 0;
    return true;
  };
  if (known != nullptr) {
    if (!known->stand_in && is_at(where_aside(path))) return found.aside = true;
    if (!known->elsewhere.empty()) return is_at(known->elsewhere);
    if (known->gone) {
      found.error = ENOENT;
      return false;
    }
  }
  if (in.below.empty()) {
    found.error = ENOENT;
    return false;
  }
  return is_at(joined(in.below, name));
}

Place FileLayer::find(std::string_view start, std::string_view words, bool follow, const Self& self) {
  Place place;
  if (words.empty()) {
    place.error = ENOENT;
    return place;
  }
  bool from_aside = false;
  std::string at = "/";
  std::deque<std::string> parts;
  const auto go_to_top = [&](std::string_view path) {  // an absolute path, which may be one aside
    from_aside = from_aside || lies_in(path, root_);
    at = "/";
    split_before(parts, lies_in(path, root_) ? known_as(path) : path);
  };
  if (words.front() == '/') {
    go_to_top(words);
  } else {
    go_to_top(start);
    std::string here = "/";
    for (const std::string& part : parts) here = joined(here, part);
    parts.clear();
    at = here;
    split_before(parts, words);
  }
  place.as_folder = words.ends_with('/');
  const bool must_be_folder = place.as_folder || words.ends_with("/.") || words == ".";
  follow = follow || place.as_folder;

  bool natural_links = true;
  Step in = step_to(at);
  place.path = at;
  place.parent_exists = true;
  const auto settle_on_folder = [&] {  // the walk ended in a folder that it did not come to by its name
    if (at == "/") {
      place.real = root_;
      place.aside = true;
      if (!top_.listed && top_.names.empty()) {
        place.real = "/";
        place.aside = false;
      }
      return ::stat(place.real.c_str(), &place.status) == 0;
    }
    const Step parent = step_to(parent_of(at));
    return look(parent, at, name_in(at), place);
  };
  if (parts.empty() && !settle_on_folder()) return place;

  while (!parts.empty()) {
    std::string name = std::move(parts.front());
    parts.pop_front();
    const bool last = parts.empty();
    if (name == "." || name == "..") {
      natural_links = natural_links && in.below == at;  // the kernel goes through this folder too
      if (name == "..") at = parent_of(at);
      in = step_to(at);
      place.path = at;
      if (last && !settle_on_folder()) return place;
      continue;
    }
    if (at == "/proc" && name == "self") name = self.process;
    if (at == "/proc" && name == "thread-self") name = self.process + "/task/" + self.thread;
    const std::string path = joined(at, name);
    place.path = path;
    place.parent_exists = true;
    if (!look(in, path, name, place)) {
      place.parent_exists = last && place.error == ENOENT;
      return place;
    }
    if (S_ISLNK(place.status.st_mode) && (!last || follow)) {
      const std::string target = read_link(place.real);
      if (last && is_kernels(path) && at.ends_with("/fd")) place.descriptor = place.real;
      if (++place.links > kMostLinks) {
        place.real.clear();
        place.error = ELOOP;
        place.parent_exists = false;
        return place;
      }
      natural_links = natural_links && place.real == path;
      // A link of the kernel's own may lead to something without a path.
      if (target.empty() || (is_kernels(path) && target.front() != '/')) return place;
      if (target.front() == '/') {
        if (struct stat there; is_kernels(path) && ::lstat(target.c_str(), &there) != 0) return place;
        go_to_top(target);
      } else {
        split_before(parts, target);
      }
      in = step_to(at);
      if (parts.empty() && !settle_on_folder()) return place;
      continue;
    }
    if (!last && !S_ISDIR(place.status.st_mode)) {
      place.real.clear();
      place.error = ENOTDIR;
      place.parent_exists = false;
      return place;
    }
    in = into(in, name);
    at = path;
  }
  if (must_be_folder && !S_ISDIR(place.status.st_mode)) {
    place.real.clear();
    place.error = ENOTDIR;
  }
  place.natural = !from_aside && natural_links && place.real == place.path;
  return place;
}

}  // namespace faultline::confine
