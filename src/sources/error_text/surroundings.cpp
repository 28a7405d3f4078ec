#include "sources/error_text/surroundings.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/characters.h"
#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"
#include "sources/error_text/plain_text.h"
#include "sources/error_text/traceback.h"
#include "trace/framework.h"

namespace faultline {
namespace {

constexpr std::size_t kMostLooks = 20000;

// "1.13" at the start of `rest`, of "1.13.1+cu117".
std::string version_at(std::string_view rest) {
  const auto major = number_at(rest, 0);
  const std::size_t dot = rest.find_first_not_of("0123456789");
  if (!major || *major > 3 || dot == std::string_view::npos || rest[dot] != '.') return {};
  const auto minor = number_at(rest, dot + 1);
  if (!minor || *minor > 99 || (*major == 0 && *minor < 1)) return {};
  return std::to_string(*major) + "." + std::to_string(*minor);
}

// What may stand between the name and the number: blanks, signs, and the word "version". A bound ("torch>=1.6") is no version.
std::string version_behind(std::string_view rest) {
  std::size_t at = 0;
  while (at < rest.size() && at < 60 && !is_digit(rest[at])) {
    const std::string_view here = rest.substr(at);
    if (here.starts_with("version") || here.starts_with("Version")) {
      at += 7;
    } else if (std::string_view(" \t=:\"'_-(v").find(rest[at]) != std::string_view::npos) {
      ++at;
    } else {
      return {};
    }
  }
  return at == 0 || at >= rest.size() ? std::string() : version_at(rest.substr(at));
}

// The last PyTorch that was made for each Python.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kLastOfPython = {
    {{"python3.5", "1.5"}, {"python3.6", "1.10"}, {"python3.7", "1.13"}, {"python3.8", "2.4"}, {"python3.9", "2.8"}}};

constexpr std::size_t kLongestCommand = 160;

// The words of one command, up to what the shell does with its output; lines that go on behind a backslash are joined.
std::string one_command(std::string_view text) {
  std::string command;
  char quote = 0;
  std::size_t opened = 0;
  for (std::size_t at = 0; at < text.size() && command.size() <= kLongestCommand; ++at) {
    const char c = text[at];
    if (text.substr(at, 2) == "\\\n") {
      at = std::min(text.find_first_not_of(" \t", at + 2), text.size()) - 1;
      continue;
    }
    if (c == '\n' || (quote == 0 && std::string_view("|;&<>`").find(c) != std::string_view::npos)) {
      // "2>&1": the number is the stream's
      if (c == '>' && command.size() > 2 && is_digit(command.back()) && command[command.size() - 2] == ' ')
        command.pop_back();
      break;
    }
    if (c == '#' && quote == 0 && command.ends_with(' ')) break;
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      opened = command.size();
    } else if (c == quote) {
      quote = 0;
    }
    command += c;
  }
  if (quote != 0) command.resize(opened);  // not this command's own
  while (!command.empty() && (command.back() == ' ' || command.back() == kOverwritten)) command.pop_back();
  return command.size() <= kLongestCommand ? command : std::string();
}

// The last one that stands behind one of the marks.
std::string last_command(std::string_view text, std::span<const std::string_view> marks) {
  static constexpr std::array<std::string_view, 4> kStarters = {"python", "torchrun ", "accelerate launch ",
                                                                "deepspeed "};
  std::size_t looks = 0;
  for (const std::string_view starter : kStarters) {
    for (std::size_t at = text.rfind(starter); at != std::string_view::npos && ++looks < kMostLooks;
         at = at == 0 ? std::string_view::npos : text.rfind(starter, at - 1)) {
      const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
      std::string_view before = text.substr(begin, at - begin);
      while (!before.empty() && before.back() == ' ') before.remove_suffix(1);
      if (std::none_of(marks.begin(), marks.end(), [&](std::string_view mark) { return before.ends_with(mark); }))
        continue;
      std::string command = one_command(text.substr(at, 4 * kLongestCommand));
      if (command.find(".py") != std::string::npos || command.find(" -m ") != std::string::npos) return command;
    }
  }
  return {};
}

}  // namespace

std::string torch_version(std::string_view text) {
  std::string version;
  std::size_t looks = 0;
  for (std::size_t at = text.find("orch"); at != std::string_view::npos && ++looks < kMostLooks;
       at = text.find("orch", at + 4)) {
    if (at == 0 || (text[at - 1] != 't' && text[at - 1] != 'T')) continue;
    std::size_t begin = at - 1;
    if (begin >= 2 && (text[begin - 1] == 'y') && (text[begin - 2] == 'P' || text[begin - 2] == 'p')) begin -= 2;
    if (begin > 0 && (is_letter(text[begin - 1]) || is_digit(text[begin - 1]) ||
                      std::string_view("-_/.").find(text[begin - 1]) != std::string_view::npos))
      continue;
    if (text.substr(0, begin).ends_with("to build ")) continue;  // "CUDA used to build PyTorch: 9.2"
    if (std::string found = version_behind(text.substr(at + 4, 80)); !found.empty()) version = std::move(found);
  }
  if (!version.empty()) return version;
  for (const auto& [python, last] : kLastOfPython) {
    for (const std::string_view packages : {"/site-packages/torch/", "/dist-packages/torch/"}) {
      if (text.find(std::string(python) + std::string(packages)) != std::string_view::npos)
        return "<=" + std::string(last);
    }
  }
  return {};
}

bool names_torch(std::string_view text) {
  for (const std::string_view word : {"torch", "Torch", "THC"}) {
    if (text.find(word) != std::string_view::npos) return true;
  }
  return false;
}

bool is_of_other_language(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kPython = {"Traceback (most recent call last)", ".py\"", ".py:"};
  if (has_any(text, kPython)) return false;
  // R, Java, .NET, Julia, Rust and Go, by how each ends or shows its stack
  static constexpr std::array<std::string_view, 14> kMarks = {"Execution halted",
                                                              "do.call -> ",
                                                              "/lantern/",
                                                              "Calls: ",
                                                              ".java:",
                                                              "Native Method)",
                                                              ".cs:line ",
                                                              "   at System.",
                                                              "Unhandled exception. ",
                                                              ".jl:",
                                                              "' panicked at",
                                                              ".rs:",
                                                              "goroutine ",
                                                              ".go:"};
  return has_any(text, kMarks);
}

bool is_windows(std::string_view text) {
  for (const std::string_view path :
       {"File \"C:\\", "File \"D:\\", "File \"E:\\", ":\\Users\\", ":\\Program", "PS C:\\", ":\\actions-runner\\"}) {
    if (text.find(path) != std::string_view::npos) return true;
  }
  return false;
}

std::string other_framework(std::string_view text) {
  if (names_torch(text)) return {};
  static constexpr auto kMarks = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"whisper_", "whisper.cpp"},
       {"ggml", "llama.cpp"},
       {"llama_model", "llama.cpp"},
       {"TensorRT-LLM", "TensorRT-LLM"},
       {"tensorrt_llm", "TensorRT-LLM"},
       {"TRT-LLM", "TensorRT-LLM"},
       {"[TRT]", "TensorRT"},
       {"TensorRT", "TensorRT"},
       {"defaultAllocator.cpp", "TensorRT"},
       {"numba.", "numba"},
       {"/numba/", "numba"},
       {"CudaAPIError", "numba"},
       {"cupy", "CuPy"},
       {"pycuda", "PyCUDA"},
       {"jaxlib", words_of(Framework::kJax)},
       {"jax.", words_of(Framework::kJax)},
       {"external/xla", words_of(Framework::kJax)},
       {"external/org_tensorflow", words_of(Framework::kJax)},
       {"tensorflow", words_of(Framework::kTensorFlow)},
       {"external/local_xla", words_of(Framework::kTensorFlow)},
       {"external/local_tsl", words_of(Framework::kTensorFlow)},
       {"OpenMM", "OpenMM"},
       {"openmm", "OpenMM"},
       {"FahCore", "Folding@home"},
       {"Error creating array", "OpenMM"},
       {"Error allocating array", "OpenMM"},
       {"AMDGPU", "AMDGPU.jl"},
       {".julia/", "CUDA.jl"},
       {"ERROR: LoadError", "CUDA.jl"},
       {"CUDAdrv", "CUDA.jl"},
       {"catboost", "CatBoost"},
       {"darknet", "Darknet"},
       {"dark_cuda", "Darknet"},
       {"MXNet", "MXNet"},
       {"mxnet", "MXNet"},
       {"pooled_storage_manager", "MXNet"},
       {"dlib", "dlib"},
       {"Open3D", "Open3D"},
       {"LightGBM", "LightGBM"},
       {"lightgbm", "LightGBM"},
       {"xgboost", "XGBoost"},
       {"colmap", "COLMAP"},
       {"dgl/", "DGL"},
       {"dgl.", "DGL"},
       {"tvm/", "TVM"},
       {"tvm.", "TVM"},
       {"taichi", "Taichi"},
       {"cuda_driver.h:operator()", "Taichi"},
       {"Error when executing GPU operator", "DALI"},
       {"cuvidCreateDecoder", "NVDEC"},
       {"_nvenc @", "NVENC"},
       {"OPTIX_ERROR", "OptiX"},
       {"ctranslate2", "CTranslate2"},
       {"gromacs", "GROMACS"},
       {"kaldi", "Kaldi"}});
  for (const auto& [mark, name] : kMarks) {
    if (text.find(mark) != std::string_view::npos) return std::string(name);
  }
  return {};
}

std::string launcher_of(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kMarks = {
      {{"/bin/accelerate", "accelerate launch"},
       {"accelerate/commands/launch", "accelerate launch"},
       {"/bin/deepspeed", "deepspeed"},
       {"deepspeed/launcher/", "deepspeed"},
       {"deepspeed.launcher", "deepspeed"},
       {"torchrun", "torchrun"},
       {"torch/distributed/run.py", "torchrun"},
       {"torch.distributed.elastic", "torchrun"},
       {"torch/distributed/elastic", "torchrun"}}};
  for (const auto& [mark, name] : kMarks) {
    if (text.find(mark) != std::string_view::npos) return std::string(name);
  }
  return {};
}

std::string command_of(std::string_view text, std::size_t at) {
  // What stands before a command: a prompt, "!" of a notebook, "+" of set -x; or how the shell says that it ended.
  static constexpr std::array<std::string_view, 5> kPrompts = {"$", "%", "#", "!", "+"};
  static constexpr std::array<std::string_view, 6> kEnds = {"Killed",    "Aborted",    "(core dumped)",
                                                            "Bus error", "Terminated", "Segmentation fault"};
  const std::string shown = last_command(text.substr(0, at), kPrompts);
  return shown.empty() ? last_command(text, kEnds) : shown;
}

std::string program_file(std::string_view text) {
  constexpr std::string_view kModule = " in <module>";  // after a comma, or as Python's faulthandler writes it
  std::string program;
  std::size_t looks = 0;
  for (std::size_t at = text.find(kModule); at != std::string_view::npos && ++looks < kMostLooks;
       at = text.find(kModule, at + 1)) {
    const std::size_t begin = text.rfind('\n', at) + 1;
    const std::string_view line = text.substr(begin, at - begin);
    const std::size_t name = line.find("File \"");
    if (name == std::string_view::npos) continue;
    const std::string_view file = line.substr(name + 6, line.find('"', name + 6) - name - 6);
    if (!file.ends_with(".py") || file.find("/lib/python") != std::string_view::npos ||
        file.find("-packages") != std::string_view::npos)
      continue;
    if (!program.empty() && program != file) return {};
    program = file;
  }
  return program;
}

UnknownGpu unknown_gpu(std::string_view text) {
  constexpr std::string_view kWith = " with CUDA capability ", kNot = " is not compatible with the current PyTorch",
                             kBuilt = "install supports CUDA capabilities ";
  UnknownGpu gpu;
  const std::size_t refused = text.find(kNot);
  const std::size_t with = refused == std::string_view::npos ? refused : text.rfind(kWith, refused);
  if (with == std::string_view::npos || refused - with > 60) return gpu;
  gpu.architecture = text.substr(with + kWith.size(), refused - with - kWith.size());
  std::size_t begin = with > 80 ? with - 80 : 0;
  if (const std::size_t line = text.substr(begin, with - begin).rfind('\n'); line != std::string_view::npos)
    begin += line + 1;
  if (const std::size_t label = text.substr(begin, with - begin).rfind(": "); label != std::string_view::npos)
    begin += label + 2;
  gpu.name = text.substr(begin, with - begin);
  while (gpu.name.starts_with(' ')) gpu.name.erase(0, 1);
  if (const std::size_t built = text.find(kBuilt, refused); built != std::string_view::npos && built - refused < 400) {
    const std::string_view list = text.substr(built + kBuilt.size(), 200);
    gpu.built_for = list.substr(0, list.find_first_of(".\n"));
  }
  return gpu;
}

bool sets_expandable_segments(std::string_view text) {
  constexpr std::string_view kSetting = "expandable_segments:True";
  std::size_t looks = 0;
  for (std::size_t at = text.find(kSetting); at != std::string_view::npos && ++looks < kMostLooks;
       at = text.find(kSetting, at + 1)) {
    const std::size_t from = at > 120 ? at - 120 : 0;
    const std::string_view before = text.substr(from, at - from), line = before.substr(before.rfind('\n') + 1);
    const bool advice = line.find("try setting") != std::string_view::npos ||
                        line.find(" set ") != std::string_view::npos ||
                        line.find("setting ") != std::string_view::npos || line.find("try ") != std::string_view::npos;
    if (!advice && line.find("ALLOC_CONF") != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace faultline
