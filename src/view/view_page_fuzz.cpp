// Whatever a trace says, its page is whole, within its bound, and has no script but its own.
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "sources/input.h"
#include "sources/run_folder/layout.h"
#include "trace/text.h"
#include "view/html_page.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  Result<Trace> trace = parse_trace_text(std::string_view(reinterpret_cast<const char*>(bytes), size));
  if (!trace) return 0;
  Input input(std::move(*trace));
  input.parts.front().statements = read_statements(input.parts.front().trace);
  view::PageOptions options;
  options.with_source = false;
  const std::string page = view::make_page(view::look_at(input), options);
  FAULTLINE_CHECK(page.starts_with(layout::kPageBegins) && page.ends_with("</html>\n"));
  FAULTLINE_CHECK(page.size() <= view::kMostPageBytes);
  std::size_t scripts = 0;
  for (std::size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at + 1)) ++scripts;
  FAULTLINE_CHECK(scripts == 0 || scripts == 2);
  return 0;
}
