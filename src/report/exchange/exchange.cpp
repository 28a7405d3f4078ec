#include "report/exchange/exchange.h"

#include "base/safe_text.h"

namespace faultline {

std::string_view below(std::string_view folder, std::string_view file) {
  while (folder.ends_with('/')) folder.remove_suffix(1);
  const bool is_below =
      !folder.empty() && file.starts_with(folder) && file.size() > folder.size() + 1 && file[folder.size()] == '/';
  return is_below ? file.substr(folder.size() + 1) : file;
}

std::string advice(const Finding& finding) {
  std::string text;
  for (const Try& attempt : finding.tries) {
    if (attempt.confirmed == false) continue;
    text += "\nTry" + std::string(attempt.confirmed ? " (confirmed): " : ": ") + shown(attempt.what);
  }
  return text;
}

}  // namespace faultline
