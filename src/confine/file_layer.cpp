#include "confine/file_layer.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <deque>

namespace faultline::confine {
namespace {

constexpr int kMostLinks = 40;  // as the kernel
constexpr off_t kSmallEnoughToCopy = 64 << 20;  // for two names that share what is written later; a larger file is linked as it is

bool lies_in(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string joined(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (path.empty() || path.back() != '/') path += '/';
  return path.append(name);
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

void split_before(std::deque<std::string>& parts, std::string_view path) {
  std::deque<std::string> more;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at) more.emplace_back(path.substr(at, slash - at));
    at = slash + 1;
  }
  parts.insert(parts.begin(), more.begin(), more.end());
}

std::string read_link(const std::string& real) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(real.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

FileLayer::FileLayer(std::string root, std::string own) : root_(std::move(root)), own_(std::move(own)) { top_.below = "/"; }

bool FileLayer::is_kernels(std::string_view path) {
  return lies_in(path, "/proc") || lies_in(path, "/sys");
}

bool FileLayer::is_own(std::string_view path) const { return !own_.empty() && lies_in(path, own_); }

std::string FileLayer::known_as(std::string_view real) const {
  if (!lies_in(real, root_)) return std::string(real);
  return real.size() == root_.size() ? "/" : std::string(real.substr(root_.size()));
}

std::string FileLayer::where_aside(std::string_view path) const { return path == "/" ? root_ : root_ + std::string(path); }

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
  int links = 0;
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
      if (++links > kMostLinks) {
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

// The folder with all above it, aside too, so that something can be put into it.
int FileLayer::touch(const std::string& path, Folder*& out) {
  Folder* folder = &top_;
  std::string at = "/";
  std::deque<std::string> parts;
  split_before(parts, path);
  for (const std::string& part : parts) {
    const Step below = into({folder, folder->below}, part);
    at = joined(at, part);
    Name& name = folder->names[part];
    if (name.folder == nullptr) {
      struct stat status {};
      const std::string aside = where_aside(at);
      if (name.stand_in) name.stand_in = false;  // a folder already: it becomes the real one
      else if (::lstat(aside.c_str(), &status) != 0 && ::mkdir(aside.c_str(), 0700) != 0) return errno;
      if (!below.below.empty() && ::stat(below.below.c_str(), &status) == 0) ::chmod(aside.c_str(), (status.st_mode & 07777) | S_IRWXU);
      name.folder = std::make_unique<Folder>();
      name.folder->below = below.below;
    }
    folder = name.folder.get();
  }
  out = folder;
  return 0;
}

int FileLayer::parent_for_change(const std::string& path, Folder*& folder, std::string& name) {
  if (path == "/") return EBUSY;
  const std::string parent = parent_of(path);
  const Step step = step_to(parent);
  const std::string real = step.folder != nullptr && step.folder != &top_ ? where_aside(parent) : step.below;
  if (::faccessat(AT_FDCWD, step.below.empty() ? real.c_str() : step.below.c_str(), W_OK | X_OK, AT_EACCESS) != 0) return errno;
  name = name_in(path);
  return touch(parent, folder);
}

void FileLayer::drop_stand_in(Folder& folder, const std::string& path, const std::string& name) {
  Name& entry = folder.names[name];
  if (!entry.stand_in) return;
  const std::string aside = where_aside(path);
  if (::unlink(aside.c_str()) != 0) ::rmdir(aside.c_str());
  entry.stand_in = false;
}

bool FileLayer::lies_below(const Folder& folder, const std::string& name) const {
  struct stat status {};
  return !folder.below.empty() && ::lstat(joined(folder.below, name).c_str(), &status) == 0;
}

void FileLayer::hide(Folder& folder, const std::string& path, const std::string& name) {
  drop_stand_in(folder, path, name);
  if (!lies_below(folder, name)) {
    folder.names.erase(name);
    return;
  }
  Name& entry = folder.names[name];
  entry.elsewhere.clear();
  entry.folder.reset();
  entry.gone = true;
}

int FileLayer::make_own(Place& place, bool content) {
  if (place.aside) return 0;
  if (place.is_folder()) {
    Folder* folder = nullptr;
    if (const int problem = touch(place.path, folder)) return problem;
  } else {
    const std::string parent = parent_of(place.path);
    Folder* folder = nullptr;
    if (const int problem = touch(parent, folder)) return problem;
    const std::string name = name_in(place.path);
    drop_stand_in(*folder, place.path, name);
    if (S_ISLNK(place.status.st_mode)) {
      if (::symlink(read_link(place.real).c_str(), where_aside(place.path).c_str()) != 0) return errno;
    } else if (const int problem = copy_plain_file(place.real, where_aside(place.path), content)) {
      ran_out_of_space_ = ran_out_of_space_ || problem == ENOSPC;
      return problem;
    }
    folder->names[name].elsewhere.clear();
  }
  place.real = where_aside(place.path);
  place.aside = true;
  place.natural = false;
  return 0;
}

int FileLayer::make_room(Place& place) {
  Folder* folder = nullptr;
  std::string name;
  if (const int problem = parent_for_change(place.path, folder, name)) return problem;
  drop_stand_in(*folder, place.path, name);
  Name& entry = folder->names[name];
  if (lies_below(*folder, name)) entry.gone = true;
  entry.elsewhere.clear();
  place.real = where_aside(place.path);
  place.aside = true;
  place.natural = false;
  return 0;
}

int FileLayer::make_folder(Place place, mode_t mode) {
  if (const int problem = make_room(place)) return problem;
  if (::mkdir(place.real.c_str(), mode | S_IRWXU) != 0) return errno;
  ::chmod(place.real.c_str(), mode | S_IRWXU);
  Folder* parent = nullptr;
  if (const int problem = touch(parent_of(place.path), parent)) return problem;
  auto folder = std::make_unique<Folder>();
  folder->listed = true;
  parent->names[name_in(place.path)].folder = std::move(folder);
  return 0;
}

int FileLayer::make_link(Place place, const std::string& target) {
  if (const int problem = make_room(place)) return problem;
  return ::symlink(target.c_str(), place.real.c_str()) == 0 ? 0 : errno;
}

int FileLayer::make_node(Place place, mode_t mode, dev_t device) {
  if (const int problem = make_room(place)) return problem;
  if (::mknod(place.real.c_str(), mode, device) != 0) return errno;
  ::chmod(place.real.c_str(), mode & 07777);
  return 0;
}

int FileLayer::remove_file(const Place& place) {
  if (place.is_folder()) return EISDIR;
  Folder* folder = nullptr;
  std::string name;
  if (const int problem = parent_for_change(place.path, folder, name)) return problem;
  if (place.aside && ::unlink(place.real.c_str()) != 0) return errno;
  hide(*folder, place.path, name);
  return 0;
}

bool FileLayer::is_empty(const Place& place) {
  Place listed = place;
  if (make_listable(listed) != 0) return false;
  DIR* folder = ::opendir(listed.real.c_str());
  if (folder == nullptr) return false;
  int entries = 0;
  while (const dirent* entry = ::readdir(folder)) entries += std::string_view(entry->d_name) != "." && std::string_view(entry->d_name) != ".." ? 1 : 0;
  ::closedir(folder);
  return entries == 0;
}

int FileLayer::remove_folder(const Place& place) {
  if (!place.is_folder()) return ENOTDIR;
  if (place.path == "/") return EBUSY;
  Folder* folder = nullptr;
  std::string name;
  if (const int problem = parent_for_change(place.path, folder, name)) return problem;
  if (!is_empty(place)) return ENOTEMPTY;
  ::rmdir(where_aside(place.path).c_str());
  hide(*folder, place.path, name);
  return 0;
}

int FileLayer::rename(const Place& from, const Place& to, bool replace) {
  if (from.is_folder() && from.path != to.path && lies_in(to.path, from.path)) return EINVAL;
  if (from.path != to.path && lies_in(from.path, to.path)) return ENOTEMPTY;
  if (to.exists()) {
    if (!replace) return EEXIST;
    if (from.status.st_dev == to.status.st_dev && from.status.st_ino == to.status.st_ino) return 0;  // two names of one thing stay
    if (from.is_folder() && !to.is_folder()) return ENOTDIR;
    if (!from.is_folder() && to.is_folder()) return EISDIR;
    if (to.is_folder() && !is_empty(to)) return ENOTEMPTY;
  }
  Folder *source = nullptr, *target = nullptr;
  std::string old_name, new_name;
  if (const int problem = parent_for_change(from.path, source, old_name)) return problem;
  if (const int problem = parent_for_change(to.path, target, new_name)) return problem;
  const std::string there = where_aside(to.path);
  if (to.exists()) {
    if (to.is_folder()) ::rmdir(there.c_str());
    else if (to.aside) ::unlink(there.c_str());
    hide(*target, to.path, new_name);
  }
  if (from.aside) {
    if (::rename(from.real.c_str(), there.c_str()) != 0) return errno;
  }
  Name moved = std::move(source->names[old_name]);
  if (!from.aside) moved = Name{};
  moved.stand_in = false;
  moved.gone = lies_below(*target, new_name);
  moved.elsewhere = from.aside ? std::string() : from.real;
  if (!from.aside) drop_stand_in(*source, from.path, old_name);
  source->names[old_name] = Name{};
  hide(*source, from.path, old_name);
  target->names[new_name] = std::move(moved);
  if (!from.aside && target->listed) stand_in_for(*target, to.path, new_name, from.real);
  return 0;
}

int FileLayer::link(Place from, Place to) {
  if (from.is_folder()) return EPERM;
  if (to.exists()) return EEXIST;
  if (!from.aside && from.is_file() && from.status.st_size <= kSmallEnoughToCopy) {
    if (const int problem = make_own(from, true)) return problem;
  }
  if (const int problem = make_room(to)) return problem;
  if (from.aside) return ::link(from.real.c_str(), to.real.c_str()) == 0 ? 0 : errno;
  Folder* folder = nullptr;
  if (const int problem = touch(parent_of(to.path), folder)) return problem;
  folder->names[name_in(to.path)].elsewhere = from.real;
  if (folder->listed) stand_in_for(*folder, to.path, name_in(to.path), from.real);
  return 0;
}

void FileLayer::stand_in_for(Folder& folder, const std::string& path, const std::string& name, const std::string& real) {
  struct stat status {};
  if (::lstat(real.c_str(), &status) != 0) return;
  const std::string aside = where_aside(path);
  int problem = 0;
  if (S_ISDIR(status.st_mode)) problem = ::mkdir(aside.c_str(), 0700);
  else if (S_ISLNK(status.st_mode)) problem = ::symlink("-", aside.c_str());
  else problem = ::mknod(aside.c_str(), S_ISFIFO(status.st_mode) ? S_IFIFO | 0600 : S_IFREG | 0600, 0);
  if (problem == 0) folder.names[name].stand_in = true;
}

int FileLayer::make_standable(Place& place) {
  if (step_to(place.path).below != place.path) return make_own(place, true);
  place.real = place.path;
  return 0;
}

int FileLayer::make_listable(Place& place) {
  const bool hides_own = !own_.empty() && parent_of(own_) == place.path;
  Step step = step_to(place.path);
  if (step.folder == nullptr && !hides_own && place.real == place.path) return 0;
  if (step.folder == &top_ && top_.names.empty() && !hides_own) return 0;
  Folder* folder = nullptr;
  if (const int problem = touch(place.path, folder)) return problem;
  if (!folder->listed && !folder->below.empty()) {
    DIR* below = ::opendir(folder->below.c_str());
    if (below == nullptr) return errno;
    while (const dirent* entry = ::readdir(below)) {
      const std::string name = entry->d_name;
      const std::string path = joined(place.path, name);
      if (name == "." || name == ".." || path == own_ || folder->names.contains(name)) continue;
      stand_in_for(*folder, path, name, joined(folder->below, name));
    }
    ::closedir(below);
    for (auto& [name, entry] : folder->names) {
      struct stat there {};
      const std::string path = joined(place.path, name);
      if (entry.stand_in || ::lstat(where_aside(path).c_str(), &there) == 0) continue;
      if (!entry.elsewhere.empty()) stand_in_for(*folder, path, name, entry.elsewhere);
      else if (!entry.gone && lies_below(*folder, name)) stand_in_for(*folder, path, name, joined(folder->below, name));
    }
  }
  folder->listed = true;
  place.real = where_aside(place.path);
  place.aside = true;
  place.natural = false;
  return 0;
}

void FileLayer::collect(const Folder& folder, const std::string& path, std::vector<Change>& changes) const {
  for (const auto& [name, entry] : folder.names) {
    const std::string here = joined(path, name);
    struct stat aside {}, below {};
    const bool is_aside = !entry.stand_in && ::lstat(where_aside(here).c_str(), &aside) == 0;
    const bool was_there = !folder.below.empty() && ::lstat(joined(folder.below, name).c_str(), &below) == 0;
    if (entry.folder != nullptr) {
      const bool moved_here = !entry.folder->below.empty() && entry.folder->below != here;
      if (entry.folder->below.empty() || moved_here) changes.push_back({was_there ? Change::Kind::kChanged : Change::Kind::kMade, here, !moved_here});
      collect(*entry.folder, here, changes);
    } else if (is_aside) {
      const bool same = was_there && aside.st_size == below.st_size && aside.st_mtim.tv_sec == below.st_mtim.tv_sec &&
                        aside.st_mtim.tv_nsec == below.st_mtim.tv_nsec && aside.st_mode == below.st_mode;
      if (!same) changes.push_back({was_there ? Change::Kind::kChanged : Change::Kind::kMade, here, false});
    } else if (!entry.elsewhere.empty()) {
      changes.push_back({was_there ? Change::Kind::kChanged : Change::Kind::kMade, here, false});
    } else if (entry.gone && was_there && folder.below == path) {
      changes.push_back({Change::Kind::kRemoved, here, S_ISDIR(below.st_mode)});
    }
  }
}

std::vector<Change> FileLayer::changes() const {
  std::vector<Change> changes;
  collect(top_, "/", changes);
  return changes;
}

}  // namespace faultline::confine
