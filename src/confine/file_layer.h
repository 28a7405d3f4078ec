// The files as a confined program sees them: the machine's own, under a layer of its own changes. The machine's own files are never written.
//
// Every path the program names is walked here, component by component, through two things at once: the real tree, and the tree of what changed.
// A folder in which something changed has a Folder in memory and a twin below `root` ("aside"), which lies at root + the folder's own path, so that
// a path aside and the path the program knows are told from each other by their first letters:
//
//   /home/u/run/ck.pt           the user's file, only ever read
//   ROOT/home/u/run/ck.pt       what the program made of it: copied there at the first opening for writing
//   Folder(/home/u/run).names   what is gone, what was moved here from elsewhere without being changed, what is a stand-in
//
// A folder that is to be listed gets a stand-in aside for every name below it (an empty file, folder or link of the right kind), so that the kernel
// lists it without our help; the walk knows the stand-ins and looks through them. Unchanged things that are renamed are not copied: their
// name remembers where they are. Nothing is written down: the layer lives as long as this object, and what lies aside is removed with it.
//
// Calls answer 0 or an errno. One thread uses a layer.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "confine/listings.h"

namespace faultline::confine {

// Where a path leads.
struct Place {
  std::string path;  // as the program is to know it: absolute, no "..", no symbolic link but perhaps the last
  // where it is: aside, or the path itself, or where an unchanged thing was before it was moved; empty: nothing is there
  std::string real;
  struct stat status {};  // of `real`
  bool natural = true;    // of something that exists: the kernel would have found the same by the program's own words
  bool aside = false;
  int error = 0;  // why there is nothing: ENOENT, ENOTDIR, ELOOP, EACCES, …
  bool parent_exists = false;
  bool as_folder = false;  // the words end in a slash
  int links = 0;           // that the walk went through
  std::string
      descriptor;  // the last of them, where it is the kernel's own and stands for something open: /proc/1234/fd/1
  bool exists() const { return !real.empty(); }
  bool is_folder() const { return exists() && S_ISDIR(status.st_mode); }
  bool is_file() const { return exists() && S_ISREG(status.st_mode); }
};

struct Change {
  enum class Kind : std::uint8_t { kMade, kChanged, kRemoved };
  Kind kind = Kind::kMade;
  std::string path;
  bool folder = false;  // one whose content is told by itself; one that was moved whole counts as one thing
};

class FileLayer {
 public:
  // `root`: an empty folder for what is written. `own`: a folder of Faultline's that the confined program's recorder writes for real; it is not shown in
  // its parent's listing, nor is the .faultline it lies in. Both absolute, without symbolic links.
  FileLayer(std::string root, std::string own);

  // `start`: the folder that a relative path counts from, absolute, aside or not. `self`: what /proc/self and /proc/thread-self mean.
  struct Self {
    std::string process, thread;
  };
  Place find(std::string_view start, std::string_view path, bool follow, const Self& self);

  // For writing: the content is there to be changed, aside. Without `content` it will be cut to nothing anyway.
  int make_own(Place& place, bool content);
  // What does not exist yet and the kernel is about to make: real is where.
  int make_room(Place& place);
  // `in_part`: only what lies aside is there for the kernel to list; below() tells the others.
  int make_listable(Place& place, bool in_part = false);
  bool is_large(const Place& folder) const;  // so many names that stand-ins for them would take a while
  bool is_listed_in_part(const std::string& folder) const;
  std::vector<Listed> below(const std::string& folder) const;

  int make_folder(Place place, mode_t mode);
  int make_link(Place place, const std::string& target);
  int make_node(Place place, mode_t mode, dev_t device);
  int remove_file(const Place& place);
  int remove_folder(const Place& place);
  int rename(const Place& from, const Place& to, bool replace);
  int link(Place from, Place to);

  // The kernel's own trees, where nothing is kept.
  static bool is_kernels(std::string_view path);
  bool is_own(std::string_view path) const;
  // The path as the program knows it, of one aside.
  std::string known_as(std::string_view real) const;
  std::string where_aside(std::string_view path) const;
  // The folder to stand in: the real one where that has the same name, else aside.
  int make_standable(Place& folder);
  const std::string& root() const { return root_; }

  std::vector<Change> changes() const;
  // Which file a copy was made of: from now on, for copies made from now on.
  struct Identity {
    dev_t device = 0;
    ino_t number = 0;
    auto operator<=>(const Identity&) const = default;
  };
  void remember_identities() { remembers_ = true; }
  std::optional<Identity> original_of(const Identity& copy) const;

  bool ran_out_of_space() const { return ran_out_of_space_; }
  // The kernel's own settings, which are not kept aside.
  void note_written_for_real(const std::string& path) { written_for_real_.insert(path); }
  const std::set<std::string>& written_for_real() const { return written_for_real_; }

 private:
  struct Folder;
  struct Name {
    bool gone = false;      // what the real folder has under this name is not to be seen
    bool stand_in = false;  // what lies aside under this name only stands for something
    std::string elsewhere;  // an unchanged thing that was moved or linked here
    std::unique_ptr<Folder> folder;
  };
  struct Folder {
    std::string below;  // the real folder under it; empty: none
    std::map<std::string, Name, std::less<>> names;
    bool listed = false;
    bool in_part = false;
  };
  struct Step {
    Folder* folder = nullptr;  // null: nothing changed there
    std::string below;         // empty: nothing there
  };

  void lies_aside(Place& place) const;
  Step step_to(std::string_view path) const;
  Step into(const Step& from, std::string_view name) const;
  bool look(const Step& in, const std::string& path, std::string_view name, Place& found) const;
  int touch(const std::string& folder, Folder*& out);
  int parent_for_change(const std::string& path, Folder*& folder, std::string& name);
  void drop_stand_in(Folder& folder, const std::string& path, const std::string& name);
  void hide(Folder& folder, const std::string& path, const std::string& name);
  bool is_empty(const Place& folder) const;
  bool shows(const Folder& folder, const std::string& path, std::string_view name) const;
  bool lies_below(const Folder& folder, const std::string& name) const;
  void stand_in_for(Folder& folder, const std::string& path, const std::string& name, const std::string& real);
  void stand_in_for(Folder& folder, const std::string& path, const std::string& name, mode_t kind);
  void collect(const Folder& folder, const std::string& path, std::vector<Change>& changes) const;

  void remember(const Place& original, const std::string& aside);
  int make_stand_in(const std::string& aside);

  std::string root_, own_, hidden_;  // hidden_: own_, or the folder made for it
  Folder top_;
  bool remembers_ = false;
  std::map<Identity, std::pair<Identity, Descriptor>>
      originals_;            // by the copy's, whose number is not given away while it is open
  Descriptor stand_in_{-1};  // a file that stands for others: its further names cost less than further files
  bool ran_out_of_space_ = false;
  std::set<std::string> written_for_real_;
};

// Content, mode, owner where allowed and times; holes stay holes.
int copy_plain_file(const std::string& from, const std::string& to, bool content);

}  // namespace faultline::confine
