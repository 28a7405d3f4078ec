// pack PATH: one file of a recording to attach to a bug report, with what tells whose it is taken out.
#include "sources/pack/pack.h"

#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/environment.h"
#include "base/safe_text.h"
#include "base/units.h"
#include "base/whole_file.h"
#include "cli/options.h"
#include "fmt/format.h"
#include "pack/make_pack.h"
#include "process/overwriting.h"
#include "process/private_files.h"
#include "process/progress.h"
#include "process/signals.h"
#include "sources/source.h"

namespace faultline::cli {
namespace {

namespace fs = std::filesystem;

struct PackOptions {
  std::string path;
  std::string output;
  std::vector<std::string> projects;
  std::vector<std::string> words;
  bool keep_arguments = false;
};

std::string whole_path(const std::string& path) {
  std::error_code problem;
  return fs::weakly_canonical(path, problem).string();
}

pack::Owner owner_for(const PackOptions& options) {
  pack::Owner owner;
  owner.homes = {environment("HOME"), whole_path(environment("HOME"))};
  owner.users = {environment("USER"), environment("LOGNAME"), environment("SUDO_USER")};
  if (const passwd* entry = ::getpwuid(::geteuid()); entry != nullptr) {
    owner.homes.emplace_back(entry->pw_dir);
    owner.users.emplace_back(entry->pw_name);
  }
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) owner.hosts.emplace_back(name.data());
  owner.hosts.push_back(environment("HOSTNAME"));
  for (const std::string& project : options.projects) owner.projects.push_back(whole_path(project));
  std::error_code problem;
  owner.projects.push_back(fs::current_path(problem).string());
  owner.projects.push_back(fs::path(whole_path(options.path)).parent_path().string());
  owner.words = options.words;
  return owner;
}

// Not there, or a pack: nothing else is replaced.
Status check_pack(const std::string& output, const std::string& input) {
  std::error_code problem;
  if (is_same_file(output, input)) return Error{output + " is the input itself; give another name with -o", {}, {}};
  if (fs::is_directory(output, problem)) return Error{output + " is a folder; name a file with -o", {}, {}};
  if (fs::is_directory(input, problem)) {
    const fs::path inside = whole_path(output), folder = whole_path(input);
    if (std::mismatch(folder.begin(), folder.end(), inside.begin(), inside.end()).first == folder.end())
      return Error{output + " would lie in what is packed; name a file elsewhere with -o", {}, {}};
  }
  if (!fs::exists(fs::symlink_status(output, problem))) return Ok{};
  std::array<char, 128> head{};
  if (fs::is_regular_file(output, problem)) std::ifstream(output, std::ios::binary).read(head.data(), head.size());
  if (!looks_like_pack({reinterpret_cast<const std::uint8_t*>(head.data()), head.size()}))
    return Error{output + " is there already and is no pack of Faultline's; give another name with -o", {}, {}};
  return Ok{};
}

std::string told_pack(const pack::Pack& made, const std::string& output) {
  std::string text = fmt::format("Wrote {} ({}), {} file{}.\n", shown(output), format_bytes(made.archive.size()),
                                 made.files, made.files == 1 ? "" : "s");
  std::string taken;
  for (int kind = 0; kind < pack::kKindCount; ++kind) {
    const pack::Scrubber::Count& count = made.taken_out[static_cast<std::size_t>(kind)];
    if (count.times != 0)
      taken += fmt::format("  {:>7}  {}, {} different\n", format_count(count.times),
                           pack::name_of(static_cast<pack::Kind>(kind)), format_count(count.different));
  }
  text += taken.empty() ? "Nothing had to be taken out, as far as Faultline knows: look through it.\n"
                        : "Taken out, with a stand-in for each:\n" + taken;
  if (!made.left_out.empty()) {
    text += "Left out:\n";
    constexpr std::size_t kMostNamed = 20;
    for (std::size_t i = 0; i < made.left_out.size() && i < kMostNamed; ++i)
      text += fmt::format("  {}: {}\n", shown(made.left_out[i].name), shown(made.left_out[i].why));
    if (made.left_out.size() > kMostNamed)
      text += fmt::format("  and {} more, which {} names\n", made.left_out.size() - kMostNamed, kPackTakenOut);
  }
  if (const std::size_t traces = made.written_as_traces.size(); traces != 0) {
    std::string names = fmt::format(
        "{}", fmt::join(made.written_as_traces.begin(),
                        made.written_as_traces.begin() + std::ptrdiff_t(std::min<std::size_t>(traces, 3)), ", "));
    if (traces > 3) names += fmt::format(" and {} more", traces - 3);
    text += fmt::format("Written again as Faultline traces: {}.\n", shown(names));
  }
  return text +
         "Kept: names of files and functions, source lines that the report quotes, sizes, shapes, times. "
         "Look through it before you give it away.\n" +
         fmt::format("faultline explain {} shows the report again.\n", shown(output));
}

int pack_input(const PackOptions& options) {
  const std::string whole = whole_path(options.path);
  std::string name = fs::path(whole).filename().string();
  const std::string output =
      options.output.empty() ? (name.empty() ? "recording" : name) + ".pack.zip" : options.output;
  const bool replaces = is_there(output);
  if (Status allowed = check_pack(output, options.path); !allowed) return fail(allowed.error().message());
  const InterruptsNoted noted;
  pack::PackRequest request;
  request.path = options.path;
  request.owner = owner_for(options);
  request.manner.keep_arguments = options.keep_arguments;
  std::optional<Progress> progress(std::in_place);
  request.step = [&](const std::string& file, std::size_t done, std::size_t all) {
    progress->step(fmt::format("packing {}, {} of {} files", file, std::min(done + 1, all), all));
    return !interrupted();
  };
  Result<pack::Pack> made = pack::make_pack(request);
  progress.reset();
  if (!made) return fail(made.error().message(options.path));
  if (interrupted()) return fail("it was interrupted; nothing was written");
  if (Status written = write_named_file(output, made->archive, replaces); !written)
    return fail(written.error().message());
  return write_out(told_pack(*made, output), kClean);
}

}  // namespace

void add_pack(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "pack", "makes one file of PATH to attach to a bug report, with paths, arguments, tokens and names taken out");
  auto options = std::make_shared<PackOptions>();
  verb->add_option("PATH", options->path, "the folder that run or plan left, or what else explain takes")
      ->required()
      ->option_text("...");
  verb->add_option("--output,-o", options->output, "the file to write; PATH's name with .pack.zip, here by default")
      ->option_text("FILE");
  verb->add_flag("--keep-arguments", options->keep_arguments,
                 "keeps the words of command lines, apart from secrets and paths; without it options, numbers and "
                 "types alone are kept");
  verb->add_option("--project", options->projects,
                   "a folder whose path is taken out, and below which paths are kept; the working folder is one")
      ->option_text("DIR")
      ->type_size(1)
      ->allow_extra_args(false);
  verb->add_option("--take-out", options->words, "a word to take out wherever it stands; may be given several times")
      ->option_text("WORD")
      ->type_size(1)
      ->allow_extra_args(false);
  verb->footer(
      "PATH itself is not changed. Exit status: 0 the pack was written, 2 bad usage, an input that cannot be read, or "
      "a "
      "pack that cannot be written (nothing is left then), 3 internal error.");
  verb->callback([options, &status] { status = pack_input(*options); });
}

}  // namespace faultline::cli
