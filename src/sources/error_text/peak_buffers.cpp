#include "sources/error_text/peak_buffers.h"

#include <algorithm>

#include "sources/error_text/log_lines.h"
#include "sources/error_text/message.h"
#include "sources/error_text/text_limits.h"

namespace faultline {
namespace {

std::string_view quoted(std::string_view line, std::string_view label) {
  const std::size_t at = line.find(label);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + label.size());
  return line.substr(0, line.find('"'));
}

// "jit(step)/jit(main)/mlp/dot_general[precision=None]" → "mlp/dot_general".
std::string operation_of(std::string_view name) {
  name = name.substr(0, name.find('['));
  const std::size_t last = name.rfind('/');
  if (last == std::string_view::npos) return std::string(name);
  const std::size_t before = name.rfind('/', last - 1);
  const std::string_view scope = name.substr(before == std::string_view::npos ? 0 : before + 1,
                                             last - (before == std::string_view::npos ? 0 : before + 1));
  return std::string(scope.find('(') == std::string_view::npos && scope != "body"
                         ? name.substr(before == std::string_view::npos ? 0 : before + 1)
                         : name.substr(last + 1));
}

void take_operator(std::string_view line, PeakBuffer& buffer) {
  if (const std::string_view name = quoted(line, "op_name=\""); !name.empty())
    buffer.operation = trimmed(operation_of(name), 120);
  const std::string_view file = quoted(line, "source_file=\"");
  const auto number = number_after(line, "source_line=");
  if (!file.empty() && number) buffer.place = trimmed(file, 300) + ":" + std::to_string(*number);
}

}  // namespace

std::vector<PeakBuffer> peak_buffers(std::string_view text, std::size_t most) {
  std::vector<PeakBuffer> buffers;
  // of a TPU: "Largest program allocations in hbm:", numbered
  std::size_t head = find_last(text, "Peak buffers:");
  const bool is_numbered = head == std::string_view::npos;
  if (is_numbered) head = find_last(text, "Largest program allocations in ");
  if (head == std::string_view::npos) return buffers;
  std::size_t lines = 0;
  bool inside = false;
  for (std::size_t begin = line_end(text, head, kLongestBufferLine) + 1;
       begin < text.size() && ++lines < kMostBufferLines;) {
    const std::size_t end = line_end(text, begin, text.size());
    const std::string_view raw = text.substr(begin, std::min(end - begin, kLongestBufferLine));
    std::string body = clean_line(raw.substr(split_prefix(raw).length), kLongestBufferLine);
    begin = end + 1;
    if (const std::size_t size = body.find(". Size: ");
        is_numbered && size < 4 && body.find_first_not_of("0123456789") == size) {
      buffers.emplace_back();
      inside = true;
      body.erase(0, size + 2);
    }
    const auto behind = [&](std::string_view label) {
      return body.starts_with(label) ? std::string_view(body).substr(label.size()) : std::string_view();
    };
    if (body.empty() || body.starts_with("====")) continue;
    if (body.starts_with("Buffer ")) {
      buffers.emplace_back();
      inside = true;
    } else if (!inside) {
      break;
    } else if (const std::string_view size = behind("Size: "); !size.empty()) {
      if (const auto token = parse_printed_size(size, 0, SizeStyle::kXla)) buffers.back().bytes = token->bytes;
    } else if (!behind("Operator: ").empty()) {
      take_operator(body, buffers.back());
    } else if (const std::string_view shape = behind("Shape: "); !shape.empty()) {
      buffers.back().shape = trimmed(shape, 200);
    } else if (const std::string_view given = behind("Entry Parameter Subshape: "); !given.empty()) {
      buffers.back().shape = trimmed(given, 200);
      buffers.back().operation = "parameter";
    } else if (is_numbered && (body.starts_with("XLA label: ") || body.starts_with("Unpadded size: ") ||
                               body.starts_with("Extra memory ") || body.starts_with("Allocation type: "))) {
      continue;
    } else if (!body.starts_with("XLA Label: ")) {
      break;  // the section is over
    } else if (buffers.back().operation.empty()) {
      buffers.back().operation = trimmed(behind("XLA Label: "), 60);
    }
  }
  std::erase_if(buffers, [](const PeakBuffer& buffer) { return buffer.bytes.max == 0; });
  std::stable_sort(buffers.begin(), buffers.end(),
                   [](const PeakBuffer& a, const PeakBuffer& b) { return a.bytes.min > b.bytes.min; });
  if (buffers.size() > most) buffers.resize(most);
  return buffers;
}

}  // namespace faultline
