#include "confine/file_layer.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <deque>

#include "confine/paths.h"

namespace faultline::confine {
namespace {

// for two names that share what is written later; a larger file is linked as it is
constexpr off_t kSmallEnoughToCopy = 64 << 20;

}  // namespace

FileLayer::FileLayer(std::string root, std::string own) : root_(std::move(root)), own_(std::move(own)) {
  constexpr std::string_view kRunsFolder = "/.faultline";  // what runs lie in unless told (process/own_folder.h)
  const std::string above = own_.empty() ? std::string() : parent_of(own_);
  hidden_ = above.ends_with(kRunsFolder) ? above : own_;
  top_.below = "/";
}

bool FileLayer::is_kernels(std::string_view path) { return lies_in(path, "/proc") || lies_in(path, "/sys"); }

bool FileLayer::is_own(std::string_view path) const { return !own_.empty() && lies_in(path, own_); }

std::string FileLayer::known_as(std::string_view real) const {
  if (!lies_in(real, root_)) return std::string(real);
  return real.size() == root_.size() ? "/" : std::string(real.substr(root_.size()));
}

std::string FileLayer::where_aside(std::string_view path) const {
  return path == "/" ? root_ : root_ + std::string(path);
}

void FileLayer::lies_aside(Place& place) const {
  place.real = where_aside(place.path);
  place.aside = true;
  place.natural = false;
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
      // a folder already: it becomes the real one
      if (name.stand_in)
        name.stand_in = false;
      else if (::lstat(aside.c_str(), &status) != 0 && ::mkdir(aside.c_str(), 0700) != 0)
        return errno;
      if (!below.below.empty() && ::stat(below.below.c_str(), &status) == 0)
        ::chmod(aside.c_str(), (status.st_mode & 07777) | S_IRWXU);
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
  if (::faccessat(AT_FDCWD, step.below.empty() ? real.c_str() : step.below.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return errno;
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
    const std::string aside = where_aside(place.path);
    int problem = 0;
    if (!S_ISLNK(place.status.st_mode))
      problem = copy_plain_file(place.real, aside, content);
    else if (::symlink(read_link(place.real).c_str(), aside.c_str()) != 0)
      problem = errno;
    if (problem != 0) {
      if (folder->listed) stand_in_for(*folder, place.path, name, place.real);
      ran_out_of_space_ = ran_out_of_space_ || problem == ENOSPC;
      return problem;
    }
    folder->names[name].elsewhere.clear();
    if (remembers_) remember(place, aside);
  }
  lies_aside(place);
  return 0;
}

void FileLayer::remember(const Place& original, const std::string& aside) {
  constexpr std::size_t kMost = 256;  // each takes a descriptor
  struct stat copy {};
  Descriptor file(::open(aside.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (originals_.size() >= kMost || !file || ::fstat(file.number(), &copy) != 0) return;
  originals_.insert_or_assign(Identity{copy.st_dev, copy.st_ino},
                              std::pair(Identity{original.status.st_dev, original.status.st_ino}, std::move(file)));
}

std::optional<FileLayer::Identity> FileLayer::original_of(const Identity& copy) const {
  const auto known = originals_.find(copy);
  return known == originals_.end() ? std::nullopt : std::optional(known->second.first);
}

int FileLayer::make_room(Place& place) {
  Folder* folder = nullptr;
  std::string name;
  if (const int problem = parent_for_change(place.path, folder, name)) return problem;
  drop_stand_in(*folder, place.path, name);
  Name& entry = folder->names[name];
  if (lies_below(*folder, name)) entry.gone = true;
  entry.elsewhere.clear();
  lies_aside(place);
  return 0;
}

int FileLayer::make_folder(Place place, mode_t mode) {
  if (const int problem = make_room(place)) return problem;
  if (::mkdir(place.real.c_str(), mode | S_IRWXU) != 0) return errno;
  struct stat status {};
  const mode_t of_group = ::lstat(place.real.c_str(), &status) == 0 ? status.st_mode & S_ISGID : 0;  // its parent's
  ::chmod(place.real.c_str(), mode | of_group | S_IRWXU);
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

// Of a name that the real folder has: nothing else is known under it.
bool FileLayer::shows(const Folder& folder, const std::string& path, std::string_view name) const {
  return name != "." && name != ".." && !folder.names.contains(name) && joined(path, name) != own_ &&
         joined(path, name) != hidden_;
}

bool FileLayer::is_empty(const Place& place) const {
  const Step step = step_to(place.path);
  static const Folder kUnchanged;
  const Folder& folder = step.folder != nullptr ? *step.folder : kUnchanged;
  for (const auto& [name, entry] : folder.names) {
    Place inside;
    if (look(step, joined(place.path, name), name, inside)) return false;
  }
  bool empty = true;
  if (DIR* below = step.below.empty() ? nullptr : ::opendir(step.below.c_str())) {
    for (const dirent* entry = ::readdir(below); empty && entry != nullptr; entry = ::readdir(below))
      empty = !shows(folder, place.path, entry->d_name);
    ::closedir(below);
  }
  return empty;
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
    // two names of one thing stay
    if (from.status.st_dev == to.status.st_dev && from.status.st_ino == to.status.st_ino) return 0;
    if (from.is_folder() && !to.is_folder()) return ENOTDIR;
    if (!from.is_folder() && to.is_folder()) return EISDIR;
    if (to.is_folder() && !is_empty(to)) return ENOTEMPTY;
  }
  Folder *source = nullptr, *target = nullptr;
  std::string old_name, new_name;
  if (const int problem = parent_for_change(from.path, source, old_name)) return problem;
  if (const int problem = parent_for_change(to.path, target, new_name)) return problem;
  // What lies aside under the new name, if only a stand-in, is of the same kind: the kernel replaces it, or refuses and nothing has changed.
  const std::string there = where_aside(to.path);
  if (from.aside && ::rename(from.real.c_str(), there.c_str()) != 0) return errno;
  if (!from.aside && to.exists()) {
    if ((to.is_folder() ? ::rmdir(there.c_str()) : to.aside ? ::unlink(there.c_str()) : 0) != 0 && errno != ENOENT)
      return errno;
    hide(*target, to.path, new_name);
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

int FileLayer::make_stand_in(const std::string& aside) {
  if (stand_in_ && ::linkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(stand_in_.number())).c_str(), AT_FDCWD,
                            aside.c_str(), AT_SYMLINK_FOLLOW) == 0)
    return 0;
  // it has as many names as it may, or none any more, or there are no links here
  stand_in_ = Descriptor(::open(aside.c_str(), O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  return stand_in_ ? 0 : -1;
}

void FileLayer::stand_in_for(Folder& folder, const std::string& path, const std::string& name,
                             const std::string& real) {
  struct stat status {};
  if (::lstat(real.c_str(), &status) == 0) stand_in_for(folder, path, name, status.st_mode);
}

void FileLayer::stand_in_for(Folder& folder, const std::string& path, const std::string& name, mode_t kind) {
  const std::string aside = where_aside(path);
  int problem = 0;
  if (S_ISDIR(kind))
    problem = ::mkdir(aside.c_str(), 0700);
  else if (S_ISLNK(kind))
    problem = ::symlink("-", aside.c_str());
  else if (S_ISFIFO(kind))
    problem = ::mkfifo(aside.c_str(), 0600);
  else
    problem = make_stand_in(aside);
  if (problem == 0) folder.names[name].stand_in = true;
}

int FileLayer::make_standable(Place& place) {
  if (step_to(place.path).below != place.path) return make_own(place, true);
  place.real = place.path;
  return 0;
}

int FileLayer::make_listable(Place& place, bool in_part) {
  const bool hides_own = !own_.empty() && (parent_of(own_) == place.path || parent_of(hidden_) == place.path);
  Step step = step_to(place.path);
  if (step.folder == nullptr && !hides_own && place.real == place.path) return 0;
  if (step.folder == &top_ && top_.names.empty() && !hides_own) return 0;
  Folder* folder = nullptr;
  if (const int problem = touch(place.path, folder)) return problem;
  if (!folder->listed && !folder->below.empty()) {
    if (!in_part) {
      DIR* below = ::opendir(folder->below.c_str());
      if (below == nullptr) return errno;
      while (const dirent* entry = ::readdir(below)) {
        if (!shows(*folder, place.path, entry->d_name)) continue;
        const std::string name = entry->d_name, path = joined(place.path, name);
        if (entry->d_type != DT_UNKNOWN)
          stand_in_for(*folder, path, name, static_cast<mode_t>(DTTOIF(entry->d_type)));
        else
          stand_in_for(*folder, path, name, joined(folder->below, name));
      }
      ::closedir(below);
    }
    for (auto& [name, entry] : folder->names) {
      struct stat there {};
      const std::string path = joined(place.path, name);
      if (entry.stand_in || ::lstat(where_aside(path).c_str(), &there) == 0) continue;
      if (!entry.elsewhere.empty())
        stand_in_for(*folder, path, name, entry.elsewhere);
      else if (!entry.gone && lies_below(*folder, name))
        stand_in_for(*folder, path, name, joined(folder->below, name));
    }
  }
  folder->listed = folder->listed || !in_part;
  folder->in_part = !folder->listed;
  lies_aside(place);
  return 0;
}

bool FileLayer::is_large(const Place& place) const {
  constexpr int kMany = 2000;
  const Step step = step_to(place.path);
  const bool is_changed = step.folder != nullptr && !step.folder->listed && !step.below.empty();
  DIR* below = is_changed ? ::opendir(step.below.c_str()) : nullptr;
  if (below == nullptr) return false;
  int names = 0;
  while (names <= kMany && ::readdir(below) != nullptr) ++names;
  ::closedir(below);
  return names > kMany;
}

bool FileLayer::is_listed_in_part(const std::string& path) const {
  const Step step = step_to(path);
  return step.folder != nullptr && step.folder->in_part;
}

std::vector<Listed> FileLayer::below(const std::string& path) const {
  std::vector<Listed> list;
  const Step step = step_to(path);
  DIR* below = step.folder == nullptr || step.below.empty() ? nullptr : ::opendir(step.below.c_str());
  if (below == nullptr) return list;
  while (const dirent* entry = ::readdir(below)) {
    if (shows(*step.folder, path, entry->d_name)) list.push_back({entry->d_name, entry->d_ino, entry->d_type});
  }
  ::closedir(below);
  return list;
}

void FileLayer::collect(const Folder& folder, const std::string& path, std::vector<Change>& changes) const {
  for (const auto& [name, entry] : folder.names) {
    const std::string here = joined(path, name);
    struct stat aside {
    }, below{};
    const bool is_aside = !entry.stand_in && ::lstat(where_aside(here).c_str(), &aside) == 0;
    const bool was_there = !folder.below.empty() && ::lstat(joined(folder.below, name).c_str(), &below) == 0;
    if (entry.folder != nullptr) {
      const bool moved_here = !entry.folder->below.empty() && entry.folder->below != here;
      if (entry.folder->below.empty() || moved_here)
        changes.push_back({was_there ? Change::Kind::kChanged : Change::Kind::kMade, here, !moved_here});
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
