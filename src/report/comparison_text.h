// A comparison (report/comparison.h) as a page, as JSON (schema faultline.diff/1, docs/cli.md) and as Markdown.
#pragma once

#include <string>

#include "report/comparison.h"
#include "report/exchange/exchange.h"
#include "report/terminal.h"

namespace faultline {

// What was compared: the two reports the comparison was made of.
struct ComparedReports {
  const Report& before;
  const Report& after;
};
std::string to_terminal(const Comparison& change, const ComparedReports& compared, const TerminalOptions& options);
std::string to_json(const Comparison& change, const ComparedReports& compared);
std::string to_markdown(const Comparison& change, const ComparedReports& compared, const ExchangeOptions& options);

// "GPU 0: peak 2.50 GiB (+1.50 GiB), 3 lines hold more; 1 new finding"
std::string summary_of(const Comparison& change);

}  // namespace faultline
