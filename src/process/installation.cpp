#include "process/installation.h"

#include <filesystem>
#include <vector>

#include "base/environment.h"

namespace faultline::process {
namespace {

namespace fs = std::filesystem;

std::string first_with(const std::vector<fs::path>& folders, const fs::path& file) {
  std::error_code problem;
  for (const fs::path& folder : folders) {
    if (!folder.empty() && fs::exists(folder / file, problem))
      return fs::weakly_canonical(folder / file, problem).string();
  }
  return {};
}

fs::path at_home(const char* folder) {
  const std::string home = environment("FAULTLINE_HOME");
  return home.empty() ? fs::path() : fs::path(home) / folder;
}

}  // namespace

std::string executable_folder() {
  std::error_code problem;
  return fs::read_symlink("/proc/self/exe", problem).parent_path().string();
}

std::string python_part() {
  const fs::path here = executable_folder();
  // A build tree (build/faultline, python/), a package (faultline/bin/faultline or faultline/faultline), FAULTLINE_HOME.
  const std::string marker =
      first_with({here / ".." / "python", here / ".." / "..", here / "..", at_home("python"), at_home("")},
                 fs::path("faultline") / "_inject" / "sitecustomize.py");
  return marker.empty() ? std::string() : fs::path(marker).parent_path().parent_path().parent_path().string();
}

std::string library_part(const std::string& name) {
  const fs::path here = executable_folder();
  return first_with({here, here / ".." / "lib", here / "lib", at_home(""), at_home("build"), at_home("lib")}, name);
}

std::string docs_home() {
  const fs::path here = executable_folder();
  const std::string rules = first_with({here / "..", here, at_home("")}, fs::path("docs") / "rules");
  return rules.empty() ? std::string() : fs::path(rules).parent_path().parent_path().string();
}

}  // namespace faultline::process
