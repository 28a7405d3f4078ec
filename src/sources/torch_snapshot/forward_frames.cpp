// forward_frames: the forward pass's traceback for a block that backward allocated, as PyTorch formats it: a list of lines such as
//   '  File "/home/user/project/model.py", line 12, in forward\n    x = self.fc(x)\n'
// outermost first.
#include <charconv>

#include "sources/torch_snapshot/object_machine.h"

namespace faultline::torch_snapshot {
namespace {

struct Line {
  std::string_view file;
  std::uint32_t number = 0;
  std::string_view function;
};

std::optional<Line> parse_line(std::string_view text) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
  const std::size_t file = text.find(kFile);
  if (file == std::string_view::npos) return {};
  const std::size_t file_end = text.find(kLine, file + kFile.size());
  if (file_end == std::string_view::npos) return {};
  Line line;
  line.file = text.substr(file + kFile.size(), file_end - file - kFile.size());
  const std::string_view rest = text.substr(file_end + kLine.size());
  const auto [stop, code] = std::from_chars(rest.data(), rest.data() + rest.size(), line.number);
  if (code != std::errc{}) return {};
  const std::string_view after = rest.substr(static_cast<std::size_t>(stop - rest.data()));
  if (after.starts_with(kIn)) line.function = after.substr(kIn.size(), after.find('\n') - kIn.size());
  return line;
}

}  // namespace

StackId ObjectMachine::stack_of_lines(Value list) {
  const std::span<const Value> lines = cells(list);
  if (lines.empty()) return {};
  const auto [known, fresh] = line_stacks_.try_emplace(list.index());
  if (!fresh) return known->second;
  StackId stack;
  for (const Value value : lines) {
    const std::optional<Line> line = parse_line(text(value));
    if (!line) continue;
    const Frame frame{trace_.strings.intern(line->function), trace_.strings.intern(line->file), line->number};
    stack = trace_.stacks.push(stack, trace_.stacks.intern_frame(frame));
  }
  known->second = stack;
  return stack;
}

}  // namespace faultline::torch_snapshot
