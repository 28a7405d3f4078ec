// The report as JSON, schema faultline.report/1: what every other form (the terminal, a page, SARIF, a script of the user's) is made from.
//
// The contract stands in docs/report.schema.json; fields may be added, never changed or left out. Numbers are integers, bytes are bytes,
// `lost` is always there, and findings are not grouped: a reader that groups has the fingerprint. Strings that are not UTF-8 (paths come
// from hostile files) have their bad bytes replaced by U+FFFD. An object or list of plain values stands on one line, so the text can be
// read and compared line by line; it ends with a newline.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "report/report.h"

namespace faultline {

std::string to_json(const Report& report);

// And back: a file that anybody may have changed. None where the text is no report.
std::optional<Report> report_of(std::string_view json_text);
std::optional<Plan> plan_of(std::string_view json_text);  // of the part that is a plan

}  // namespace faultline
