// rule [NAME]: the page of a rule, as reports name it; without a name the rules there are.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "base/nearest_word.h"
#include "cli/options.h"
#include "report/rule_pages.h"
#include "rules/registry.h"

namespace faultline::cli {
namespace {

int rule(const std::string& name) {
  const TerminalOptions terminal = terminal_options({});
  if (name.empty()) return write_out(to_terminal(rule_pages(), terminal), kClean);
  if (const RulePage* page = find_rule_page(name)) return write_out(to_terminal(*page, terminal), kClean);
  std::vector<RulePage> group;
  for (const RulePage& page : rule_pages()) {
    if (group_of(page.rule) == name) group.push_back(page);
  }
  if (!group.empty()) return write_out(to_terminal(group, terminal), kClean);
  std::vector<std::string> words;
  for (const RulePage& page : rule_pages()) {
    words.emplace_back(page.rule);
    words.emplace_back(page.rule.substr(page.rule.find('/') + 1));
  }
  const std::string nearest = nearest_word(name, words);
  return fail(nearest.empty()
                  ? fmt::format("there is no rule {}; faultline rule lists them", name)
                  : fmt::format("there is no rule {}; the nearest is {}", name, find_rule_page(nearest)->rule));
}

}  // namespace

void add_rule(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("rule", "prints the page of a rule, as reports name it; alone it lists them");
  auto name = std::make_shared<std::string>();
  std::string known;
  for (const RulePage& page : rule_pages()) known += (known.empty() ? "" : ",") + std::string(page.rule);
  verb->add_option("NAME", *name,
                   "the rule: memory/leak, or leak where that is clear; memory: those whose names begin so")
      ->type_name("{" + known + "}")
      ->option_text(" ");
  verb->footer("Exit status: 0 printed, 2 there is no such rule.");
  verb->callback([name, &status] { status = rule(*name); });
}

}  // namespace faultline::cli
