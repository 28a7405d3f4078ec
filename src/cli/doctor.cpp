// doctor: what this machine can do for Faultline, what not, why, and what to do about it.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>

#include "base/environment.h"
#include "base/safe_text.h"
#include "cli/options.h"
#include "doctor/judgement.h"
#include "doctor/machine.h"
#include "fmt/format.h"
#include "report/text.h"

namespace faultline::cli {
namespace {

using namespace doctor;

using Json = nlohmann::ordered_json;

// columns: 0 keeps each ability on one line.
std::string page(const std::vector<Ability>& abilities, int columns) {
  std::size_t width = 0;
  for (const Ability& one : abilities) width = std::max(width, one.name.size());
  std::string text;
  for (const Ability& one : abilities) {
    std::string head = fmt::format("{:<6}  {:<{}}  ", name_of(one.mark), one.name, width);
    // paths and versions are others' words: whatever is in them, it stays one line
    const std::string says = shown(one.says + (one.advice.empty() ? "" : "; " + one.advice)) + ".";
    for (const std::string& part :
         wrap(says, columns == 0 ? INT_MAX : std::max(columns - static_cast<int>(head.size()), 20))) {
      text += head + part + "\n";
      head.assign(head.size(), ' ');
    }
  }
  return text;
}

Json json_of(const Machine& machine, const std::vector<Ability>& abilities) {
  Json out{{"schema", "faultline.doctor/1"},
           {"version", FAULTLINE_VERSION},
           {"works", main_jobs_work(abilities)},
           {"abilities", Json::array()}};
  for (const Ability& one : abilities) {
    out["abilities"].push_back({{"name", one.name},
                                {"mark", name_of(one.mark)},
                                {"says", one.says},
                                {"advice", one.advice},
                                {"main", one.is_main}});
  }
  Json gpus = Json::array();
  for (const SeenGpu& gpu : machine.driver.gpus) gpus.push_back({{"name", gpu.name}, {"memory", gpu.memory_bytes}});
  out["machine"] = {
      {"driver",
       {{"path", machine.driver_path},
        {"release", machine.driver_release},
        {"cuda", machine.driver.cuda_version},
        {"init", machine.driver.init ? Json(*machine.driver.init) : Json()},
        {"init_name", machine.driver.init_name},
        {"gpus", gpus}}},
      {"recorder", machine.recorder_path},
      {"virtual_driver", machine.virtual_path},
      {"python",
       {{"path", machine.python.path}, {"version", machine.python.version}, {"packages", machine.python.packages}}},
      {"folder", {{"path", machine.folder}, {"free", machine.free_bytes}}},
      {"glibc", machine.glibc},
      {"tools", machine.tools}};
  return out;
}

int run_doctor(const OutputOptions& output) {
  const Machine machine = look_at_machine();
  const std::vector<Ability> abilities = judge_machine(machine);
  const int status = main_jobs_work(abilities) ? kClean : kFindings;
  if (output.format == format_name::kJson)
    return write_out(
        escaped_json(json_of(machine, abilities).dump(2, ' ', false, Json::error_handler_t::replace) + "\n"), status);
  // else it is for a program: a line each
  const bool is_seen = ::isatty(STDOUT_FILENO) != 0 || !environment("COLUMNS").empty();
  return write_out(page(abilities, is_seen ? terminal_options(output).width : 0), status);
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("doctor", "what this machine can do, what not, why, and what to do about it");
  auto output = std::make_shared<OutputOptions>();
  verb->footer(
      "Exit status: 0 all that needs no GPU works, 1 explain, replay, plan or run --gpu virtual does not, 2 bad "
      "usage.");
  add_format_option(*verb, *output);
  verb->callback([output, &status] { status = run_doctor(*output); });
}

}  // namespace faultline::cli
