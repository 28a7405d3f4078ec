// The forms that --format knows, a row each (formats.cpp): the help, the completion and the check of what was given are made from it.
//
// A form of reports is one document of one report or several. A form of recordings is made of what was read itself; a written report holds none. Verbs that
// answer with something else than reports (replay, diff, doctor) write their own document in the forms that have their name.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/exchange/exchange.h"
#include "report/report.h"
#include "report/terminal.h"
#include "sources/input.h"

namespace faultline::cli {

namespace format_name {
inline constexpr std::string_view kTerminal = "terminal", kJson = "json", kMarkdown = "markdown";
}

struct ReportsOptions {
  const TerminalOptions& terminal;
  const ExchangeOptions& exchange;
  bool as_list = false;  // several were given, whatever could be read of them
};

struct Recordings {
  std::span<const Input> inputs;
  int status = 0;
  std::function<int(const Report&)> judged = {};  // where they are judged on the way: its status
  std::function<void()> ready = {};               // before anything is written
};

// The forms of recordings, each in a file of its own.
using RecordingsForm = int(const Recordings& recordings);
RecordingsForm write_perfetto, write_text_trace;

struct Format {
  std::string_view name;
  std::string_view verbs;  // that have it, " " around each
  std::string (*of_reports)(std::span<const Report> reports, const ReportsOptions& options) = nullptr;
  RecordingsForm* of_recordings = nullptr;  // writes it to standard output
  bool is_binary = false;

  bool is_of(std::string_view verb) const {
    return verbs.find(" " + std::string(verb) + " ") != std::string_view::npos;
  }
};

std::span<const Format> all_formats();
// One of the table.
const Format& format_named(std::string_view name);

}  // namespace faultline::cli
