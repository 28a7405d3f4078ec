// A run's folder out of the bytes: each file begins with one that chooses its name; what can be read of it holds.
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "sources/run_folder/run_folder.h"
#include "trace/validate.h"

namespace {

constexpr std::array<const char*, 8> kNames = {"process-7.json",      "command.json",        "torch-7-oom.pickle",
                                               "torch-7-exit.pickle", "process-7.faultline", "core-7",
                                               "process-8.json",      "torch-8-exit.pickle"};
constexpr std::string_view kBetween = "\n----\n";

// A folder for the fuzzer's life, in memory where there is such a place.
struct Folder {
  Folder() {
    std::string name = std::string(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + "/faultline-fuzz-XXXXXX";
    path = ::mkdtemp(name.data()) != nullptr ? name : std::string();
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  static const Folder folder;
  FAULTLINE_CHECK(!folder.path.empty());
  for (const char* name : kNames) ::unlink((folder.path + "/" + name).c_str());
  std::string_view rest(reinterpret_cast<const char*>(bytes), size);
  while (!rest.empty()) {
    const std::string_view file = rest.substr(0, rest.find(kBetween));
    rest.remove_prefix(std::min(rest.size(), file.size() + kBetween.size()));
    if (file.empty()) continue;
    std::ofstream(folder.path + "/" + kNames[static_cast<unsigned char>(file[0]) % kNames.size()], std::ios::binary)
        << file.substr(1);
  }
  if (!holds_run(folder.path)) return 0;
  const Result<Input> input = open_input(folder.path);
  if (!input) return 0;
  for (const InputPart& part : input->parts) FAULTLINE_CHECK(part.trace.devices.size() <= 64);
  return 0;
}
