// What the asked processes and files say, read.
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>

#include "doctor/machine.h"

namespace faultline::doctor {
namespace {

template <class Number>
Number number_in(std::string_view text) {
  Number value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

DriverAnswer parse_driver_answer(const std::string& text) {
  DriverAnswer answer;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view key = std::string_view(line).substr(0, space);
    const std::string_view value = std::string_view(line).substr(std::min(space + 1, line.size()));
    if (key == "trouble") answer.trouble = value;
    if (key == "cuda") answer.cuda_version = number_in<int>(value);
    if (key == "init") answer.init = number_in<int>(value);
    if (key == "init-name") answer.init_name = value;
    if (key == "gpu") {
      const std::size_t name = std::min(value.find(' '), value.size());
      answer.gpus.push_back({std::string(value.substr(std::min(name + 1, value.size()))),
                             number_in<std::uint64_t>(value.substr(0, name))});
    }
  }
  return answer;
}

void parse_python_answer(const std::string& text, PythonAnswer& to) {
  // What start-up files of the user's print comes first.
  const std::size_t begin = text.rfind("{\"path\"");
  const auto answer =
      nlohmann::json::parse(begin == std::string::npos ? std::string() : text.substr(begin), nullptr, false);
  if (!answer.is_object() || !answer.contains("packages") || !answer["packages"].is_object()) {
    to.trouble = "did not answer as Python does";
    return;
  }
  if (answer.contains("version") && answer["version"].is_string()) to.version = answer["version"];
  for (const auto& [name, version] : answer["packages"].items()) {
    if (version.is_string()) to.packages[name] = version;
  }
}

}  // namespace faultline::doctor
