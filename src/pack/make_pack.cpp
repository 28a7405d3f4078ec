#include "pack/make_pack.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/byte_stream.h"
#include "base/characters.h"
#include "base/plain_file.h"
#include "base/zip.h"
#include "sources/pack/pack.h"
#include "sources/run_folder/layout.h"
#include "sources/run_folder/run_folder.h"
#include "sources/source.h"

namespace faultline::pack {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostFiles = 4096, kMostDepth = 3, kMostNameBytes = 120;
constexpr std::size_t kMostLearnedBytes = std::size_t{1} << 30;

constexpr std::string_view kNote =
    "This is a pack that Faultline made of a recording of GPU memory, for a bug report.\n"
    "\n"
    "    faultline explain THIS.zip      explains it as it is; view and replay take it too\n"
    "\n"
    "or unpack it, and explain folder/ or the file in file/. taken-out.json counts what was\n"
    "taken out and says what was left out. Recordings of other tools are Faultline traces here,\n"
    "under their old names. Equal stand-ins (folder-1, <token-1>) stood for equal things.\n";

struct Found {
  std::string path;
  std::vector<std::string> parts;  // of its name below the folder, as it is
  std::string name;                // in the pack, below folder/
  std::int64_t changed_ns = 0;
};

struct Stayed {
  std::vector<std::string> parts;
  std::string why;
};

struct Search {
  std::vector<Found> files;
  std::vector<Stayed> left_out;
};

// Of plain characters alone, as a pack may hold it.
std::string plain_name(std::string_view name, Scrubber& scrubber) {
  std::string plain;
  for (const char c : scrubber.scrub(name.substr(0, 4 * kMostNameBytes)))
    plain += is_letter(c) || is_digit(c) || std::string_view("._-+=,@").find(c) != std::string_view::npos ? c : '_';
  plain.resize(std::min(plain.size(), kMostNameBytes));
  return plain.empty() || plain == "." || plain == ".." ? "_" : plain;
}

std::string without_compression(std::string name) {
  for (const std::string_view ending : {".gz", ".xz", ".zst"}) {
    if (name.ends_with(ending) && name.size() > ending.size()) name.resize(name.size() - ending.size());
  }
  return name;
}

std::string only_one(std::string name, std::set<std::string>& names) {
  const std::string first = name;
  for (int more = 2; !names.insert(name).second; ++more) name = first + "-" + std::to_string(more);
  return name;
}

bool is_of_run(std::string_view name) {
  for (const std::string_view whole :
       {layout::kCommand, layout::kReport, layout::kRequest, layout::kEffects, layout::kLog}) {
    if (name == whole) return true;
  }
  return layout::is_of_process(name);
}

bool is_of_files(std::string_view name) {
  const std::string plain = without_compression(std::string(name));
  return std::any_of(all_sources().begin(), all_sources().end(), [&](const Source& source) {
    return source.kind != "pack" &&
           std::any_of(source.endings.begin(), source.endings.end(),
                       [&](std::string_view ending) { return !ending.empty() && plain.ends_with(ending); });
  });
}

Error unreadable(const std::string& name, int problem) {
  return {name + " cannot be read: " + std::strerror(problem), {}, "Nothing was written."};
}

// Links are not followed: what they lead to is not of this folder.
Status look(const std::string& folder, const std::vector<std::string>& below, bool is_run, Search& search) {
  std::error_code problem;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem))
    entries.push_back(*at);
  if (problem) return unreadable(folder, problem.value());
  std::sort(entries.begin(), entries.end());
  for (const fs::directory_entry& entry : entries) {
    const std::string name = entry.path().filename().string();
    struct stat seen {};
    if (::lstat(entry.path().c_str(), &seen) != 0) return unreadable(entry.path().string(), errno);
    std::vector<std::string> parts = below;
    parts.push_back(name);
    const auto leave_out = [&](const char* why) { search.left_out.push_back({parts, why}); };
    if (is_run && name == layout::kMark) continue;  // of the folder, not of the run
    if (S_ISLNK(seen.st_mode)) {
      leave_out("a link, which is not followed");
    } else if (S_ISDIR(seen.st_mode)) {
      const bool is_known = name == layout::kAgain || name == layout::kLarger || name == "tries" ||
                            (below.size() == 1 && below[0] == "tries");
      if (is_run && is_known && below.size() < kMostDepth) {
        if (Status looked = look(entry.path().string(), parts, is_run, search); !looked) return looked;
      } else if (name != "links" && name != "aside") {
        leave_out("a folder that is no part of the recording");
      }
    } else if (!S_ISREG(seen.st_mode)) {
      leave_out("no plain file");
    } else if (is_run && name == "input") {
      leave_out("what the program read");
    } else if (name.ends_with(".html")) {
      leave_out("a page: faultline view makes it again");
    } else if (is_run ? !is_of_run(name) : !is_of_files(name)) {
      leave_out("no part of the recording");
    } else if (search.files.size() == kMostFiles) {
      return Error{"this folder holds more than " + std::to_string(kMostFiles) + " files", {}, "Name the one to pack."};
    } else {
      search.files.push_back({entry.path().string(),
                              std::move(parts),
                              {},
                              std::int64_t{seen.st_mtim.tv_sec} * 1'000'000'000 + seen.st_mtim.tv_nsec});
    }
  }
  return Ok{};
}

// Names of users are to be known before the first text is rewritten and the first file is named. Of what is binary the bytes tell them too.
void learn_from(const std::vector<Found>& files, Scrubber& scrubber) {
  for (const Found& file : files) {
    Result<ByteStream> stream = ByteStream::open(file.path, NamedBy::kInput);
    if (!stream) continue;
    if (const Result<std::string> bytes = stream->read_all(kMostLearnedBytes)) scrubber.learn(*bytes);
  }
}

std::string packed_name(const std::vector<std::string>& parts, Scrubber& scrubber) {
  std::string name;
  for (const std::string& part : parts) name += (name.empty() ? "" : "/") + plain_name(part, scrubber);
  return name;
}

// Interrupted ones are written by nobody.
Error interrupted_error() { return {"it was interrupted; nothing was written", {}, {}}; }

std::string told(const Pack& pack) {
  Json json = {{"schema", "faultline.pack/1"}, {"files", pack.files}};
  Json& taken = json["taken_out"] = Json::array();
  for (int kind = 0; kind < kKindCount; ++kind) {
    const Scrubber::Count& count = pack.taken_out[static_cast<std::size_t>(kind)];
    if (count.times != 0)
      taken.push_back(
          {{"kind", name_of(static_cast<Kind>(kind))}, {"times", count.times}, {"different", count.different}});
  }
  Json& left = json["left_out"] = Json::array();
  for (const LeftOut& one : pack.left_out) left.push_back({{"name", one.name}, {"why", one.why}});
  json["written_as_traces"] = pack.written_as_traces;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

Result<Pack> make_pack(const PackRequest& request) {
  Scrubber scrubber(request.owner);
  Search search;
  std::error_code problem;
  const bool is_folder = fs::is_directory(request.path, problem);
  const bool is_run = is_folder && holds_run(request.path);
  if (is_folder) {
    if (Status looked = look(request.path, {}, is_run, search); !looked) return looked.error();
    if (search.files.empty())
      return Error{
          "this folder holds no run of Faultline, and no file that it reads", {}, "It reads " + known_inputs() + "."};
  } else {
    struct stat seen {};
    if (::stat(request.path.c_str(), &seen) != 0) return file_error("cannot be opened", errno);
    const std::string name = fs::path(request.path).filename().string();
    Result<Input> read = open_input(request.path);  // what explain does not take is nobody's recording
    if (!read) return read.error();
    search.files.push_back({request.path, {name}, {}, std::int64_t{seen.st_mtim.tv_sec} * 1'000'000'000});
  }
  std::stable_sort(search.files.begin(), search.files.end(),
                   [](const Found& a, const Found& b) { return a.changed_ns < b.changed_ns; });
  learn_from(search.files, scrubber);
  std::set<std::string> names;
  for (Found& file : search.files) {
    const std::string name = packed_name(file.parts, scrubber);
    file.name = only_one(is_run ? name : without_compression(name), names);
  }
  Pack pack;
  for (const Stayed& one : search.left_out) pack.left_out.push_back({packed_name(one.parts, scrubber), one.why});
  ZipWriter zip;
  if (Status added = zip.add(kPackNote, kNote); !added) return added.error();
  std::size_t done = 0;
  for (const Found& file : search.files) {
    if (request.step && !request.step(file.name, done++, search.files.size())) return interrupted_error();
    if (::access(file.path.c_str(), R_OK) != 0) return unreadable(file.path, errno);
    Result<Rewritten> rewritten = rewritten_file(file.path, scrubber, request.manner);
    if (!rewritten) {
      if (!is_folder) return rewritten.error();
      pack.left_out.push_back({file.name, scrubber.scrub(rewritten.error().message())});
      continue;
    }
    if (rewritten->is_trace) pack.written_as_traces.push_back(file.name);
    const std::string name = std::string(is_folder ? kPackFolder : kPackFile) + file.name;
    const auto changed = static_cast<std::time_t>(file.changed_ns / 1'000'000'000);
    if (Status added = zip.add(name, rewritten->content, changed); !added) return added.error();
    ++pack.files;
  }
  if (pack.files == 0) return Error{"nothing in this folder can be packed: " + pack.left_out.back().why, {}, {}};
  if (request.step && !request.step("what was taken out", done, done)) return interrupted_error();
  pack.taken_out = scrubber.counts();
  if (Status added = zip.add(kPackTakenOut, told(pack)); !added) return added.error();
  pack.archive = zip.finish();
  return pack;
}

}  // namespace faultline::pack
