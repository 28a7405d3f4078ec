// completion SHELL: what a shell completes a command line with, and the manual's page. Both are made from the verbs and options themselves.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/help.h"
#include "cli/options.h"
#include "models/gpus.h"

namespace faultline::cli {
namespace {

std::vector<const CLI::Option*> options_of(const CLI::App& verb) {
  std::vector<const CLI::Option*> options = shown_options(verb);
  std::erase_if(options, [](const CLI::Option* option) { return option->get_positional(); });
  return options;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_min() != 0; }

// The words that an option takes, where they can be listed; " " between them.
std::string values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();  // "TEXT:{terminal,json}"
  const std::size_t open = type.find('{'), close = type.rfind('}');
  const bool has_list = open != std::string::npos && close != std::string::npos && open < close;
  std::string words = has_list ? type.substr(open + 1, close - open - 1) : std::string();
  std::replace(words.begin(), words.end(), ',', ' ');
  if (words.empty() && option.check_lname("gpu")) {
    for (const GpuEntry& entry : gpu_catalogue()) words += (words.empty() ? "" : " ") + std::string(entry.gpu.name);
  }
  return words;
}

// Bash takes "virtual:T4" for three words: of those with a colon what stands before it, and, behind "virtual:", the rest.
struct ColonWords {
  std::string first, before, behind;
};
ColonWords at_colon(const std::string& words) {
  ColonWords parts;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t end = std::min(words.find(' ', at), words.size());
    const std::string word = words.substr(at, end - at);
    const std::size_t colon = word.find(':');
    if (colon == std::string::npos) {
      parts.first += word + " ";
    } else {
      parts.before = word.substr(0, colon);
      parts.behind += word.substr(colon + 1) + " ";
    }
    at = end + 1;
  }
  return parts;
}

// The words that stand behind a verb, where they can be listed.
std::string given_words(const CLI::App& verb) {
  std::string words;
  for (const CLI::Option* given : verb.get_options([](const CLI::Option* one) { return one->get_positional(); }))
    words += values_of(*given);
  return words;
}

std::string replaced(std::string text, std::initializer_list<std::pair<char, std::string_view>> rules) {
  std::string out;
  for (const char c : text) {
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const auto& one) { return one.first == c; });
    rule == rules.end() ? out += c : out += rule->second;
  }
  return out;
}

std::string bash(const CLI::App& app) {
  std::string verbs, options, values, given;
  for (const CLI::App* verb : shown_verbs(app)) {
    verbs += verb->get_name() + " ";
    std::string names;
    for (const CLI::Option* option : options_of(*verb)) {
      for (const std::string& name : names_of(*option)) names += name + " ";
      const std::string words = values_of(*option);  // else it is a file, as everything is
      if (words.empty()) continue;
      const ColonWords parts = at_colon(words);
      for (const std::string& name : names_of(*option))
        values += fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n",
                              verb->get_name(), name, parts.first);
      if (!parts.behind.empty())
        values += fmt::format(
            "    '{0} {1}') COMPREPLY=($(compgen -W '{2}' -- \"${{current#:}}\")); return ;;\n"
            "    '{0} :') COMPREPLY=($(compgen -W '{2}' -- \"$current\")); return ;;\n",
            verb->get_name(), parts.before, parts.behind);
    }
    if (const std::string words = given_words(*verb); !words.empty())
      given +=
          fmt::format("    {}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); return ;;\n", verb->get_name(), words);
    options += fmt::format("      {}) COMPREPLY=($(compgen -W '{}' -- \"$current\")) ;;\n", verb->get_name(), names);
  }
  return fmt::format(R"(# faultline completion bash > ~/.local/share/bash-completion/completions/faultline
_faultline() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} verb=${{COMP_WORDS[1]}} at
  for ((at = 2; at < COMP_CWORD; at++)); do
    if [[ ${{COMP_WORDS[at]}} == -- ]]; then
      if declare -F _command_offset > /dev/null; then _command_offset $((at + 1)); else COMPREPLY=($(compgen -c -f -- "$current")); fi
      return
    fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{}--help --version' -- "$current"))
    return
  fi
  case "$verb $before" in
{}  esac
  if [[ $current == -* ]]; then
    case $verb in
{}    esac
    return
  fi
  case $verb in
{}  esac
  COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _faultline faultline
)",
                     verbs, values, options, given);
}

std::string zsh(const CLI::App& app) {
  const auto quoted = [](const std::string& text) {
    return replaced(text, {{'\'', "'\\''"}, {'[', "\\["}, {']', "\\]"}, {':', "\\:"}, {'\\', "\\\\"}});
  };
  std::string verbs, cases;
  for (const CLI::App* verb : shown_verbs(app)) {
    verbs += fmt::format("    '{}:{}'\n", verb->get_name(), quoted(verb->get_description()));
    std::string specs;
    for (const CLI::Option* option : options_of(*verb)) {
      for (const std::string& name : names_of(*option)) {
        const std::string words = values_of(*option);
        const std::string value = !takes_value(*option) ? ""
                                  : words.empty()       ? ":value:_files"
                                                        : fmt::format(":value:({})", replaced(words, {{':', "\\:"}}));
        specs += fmt::format(" \\\n        '{}[{}]{}'", name, quoted(option->get_description()), value);
      }
    }
    const std::string words = given_words(*verb);
    const std::string rest = takes_program(verb->get_name()) ? "'*::program:_normal'"
                             : words.empty()                 ? "'*:file:_files'"
                                                             : fmt::format("'*:word:({})'", words);
    cases += fmt::format("    {})\n      _arguments{} \\\n        {} ;;\n", verb->get_name(), specs, rest);
  }
  return fmt::format(R"(#compdef faultline
# faultline completion zsh > a folder of $fpath/_faultline
_faultline() {{
  local -a verbs=(
{}  )
  if (( CURRENT == 2 )); then _describe verb verbs; return; fi
  local verb=$words[2]
  shift words; (( CURRENT-- ))
  case $verb in
{}  esac
}}
_faultline "$@"
)",
                     verbs, cases);
}

std::string fish(const CLI::App& app) {
  const auto quoted = [](const std::string& text) { return replaced(text, {{'\'', "\\'"}, {'\\', "\\\\"}}); };
  std::string lines = "# faultline completion fish > ~/.config/fish/completions/faultline.fish\n";
  for (const CLI::App* verb : shown_verbs(app)) {
    lines += fmt::format("complete -c faultline -n __fish_use_subcommand -a {} -d '{}'\n", verb->get_name(),
                         quoted(verb->get_description()));
    if (const std::string words = given_words(*verb); !words.empty())
      lines += fmt::format("complete -c faultline -n '__fish_seen_subcommand_from {}' -f -a '{}'\n", verb->get_name(),
                           words);
    for (const CLI::Option* option : options_of(*verb)) {
      lines += fmt::format("complete -c faultline -n '__fish_seen_subcommand_from {}'", verb->get_name());
      for (const std::string& name : option->get_lnames()) lines += " -l " + name;
      for (const std::string& name : option->get_snames()) lines += " -s " + name;
      if (takes_value(*option)) lines += " -r";
      if (const std::string words = values_of(*option); !words.empty()) lines += fmt::format(" -f -a '{}'", words);
      lines += fmt::format(" -d '{}'\n", quoted(option->get_description()));
    }
  }
  return lines;
}

// roff: a line that begins with a full stop or a quote would be a command.
std::string roff(std::string_view text) {
  const std::string plain = replaced(std::string(text), {{'\\', "\\e"}, {'-', "\\-"}});
  return plain.starts_with('.') || plain.starts_with('\'') ? "\\&" + plain : plain;
}

std::string manual(const CLI::App& app) {
  std::string page =
      fmt::format(".TH FAULTLINE 1 \"\" \"faultline {}\" \"User Commands\"\n.SH NAME\nfaultline \\- {}\n.SH SYNOPSIS\n",
                  FAULTLINE_VERSION, roff("finds the line behind a GPU memory fault"));
  std::string verbs;
  for (const CLI::App* verb : shown_verbs(app)) {
    page += fmt::format(".B faultline {}\n[\\fIOPTIONS\\fR]", roff(verb->get_name()));
    for (const CLI::Option* given : verb->get_options([](const CLI::Option* one) { return one->get_positional(); }))
      page += fmt::format(" \\fI{}\\fR", roff(given->get_single_name()));
    page += takes_program(verb->get_name()) ? " \\-\\- \\fICOMMAND\\fR...\n.br\n" : "\n.br\n";
    verbs += fmt::format(".SH \"{}\"\n{}\n", roff(verb->get_name()), roff(verb->get_description()));
    for (const CLI::Option* option : options_of(*verb)) {
      verbs += fmt::format(".TP\n\\fB{}\\fR", roff(fmt::format("{}", fmt::join(names_of(*option), ", "))));
      if (takes_value(*option)) verbs += fmt::format(" \\fI{}\\fR", roff(option->get_option_text()));
      verbs += "\n" + roff(option->get_description()) + "\n";
    }
    if (!verb->get_footer().empty()) verbs += ".PP\n" + roff(verb->get_footer()) + "\n";
  }
  return page + verbs + ".SH \"EXIT STATUS\"\n" + roff(app.get_footer()) + "\n";
}

}  // namespace

void add_completion(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand(
      "completion", "prints what bash, zsh or fish completes command lines with, or the manual's page (man)");
  auto shell = std::make_shared<std::string>();
  verb->add_option("SHELL", *shell, "bash, zsh, fish, or man")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish", "man"}))
      ->option_text("...");
  verb->footer("Exit status: 0 printed, 2 bad usage.");
  verb->callback([shell, &app, &status] {
    status = write_out(*shell == "bash"   ? bash(app)
                       : *shell == "zsh"  ? zsh(app)
                       : *shell == "fish" ? fish(app)
                                          : manual(app),
                       kClean);
  });
}

}  // namespace faultline::cli
