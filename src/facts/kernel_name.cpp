#include "facts/kernel_name.h"

#include <vector>

#include "base/demangle.h"

namespace faultline {
namespace {

constexpr std::size_t kLongestArguments = 48;

struct Parts {
  std::string name;                    // with namespaces, without arguments
  std::vector<std::string> arguments;  // of the last template argument list
};

// Splits "void ns::f<A, B<C> >(int, float)" at depth 0. "(anonymous namespace)" and "{lambda(int)#1}" are parts of names.
Parts split(std::string_view text) {
  Parts parts;
  int depth = 0;
  std::string argument;
  const auto end_argument = [&] {
    while (!argument.empty() && argument.back() == ' ') argument.pop_back();
    if (!argument.empty()) parts.arguments.push_back(std::move(argument));
    argument.clear();
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (depth == 0) {
      constexpr std::string_view kAnonymous = "(anonymous namespace)";
      if (text.substr(at).starts_with(kAnonymous)) {
        at += kAnonymous.size() - 1;
        if (text.substr(at + 1).starts_with("::")) at += 2;
        continue;
      }
      if (c == '(' || c == '[') break;  // parameters
      if (c == '<') {
        depth = 1;
        parts.arguments.clear();
      } else if (c == ' ' && !parts.name.ends_with("operator")) {
        parts.name.clear();  // the result's type stands before
        parts.arguments.clear();
      } else {
        parts.name += c;
      }
      continue;
    }
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (depth == 0) {
      end_argument();
    } else if (c == ',' && depth == 1) {
      end_argument();
    } else if (!(c == ' ' && argument.empty())) {
      argument += c;
    }
  }
  return parts;
}

std::string without_namespaces(const std::string& name) {
  const std::size_t at = name.rfind("::");
  return at == std::string::npos ? name : name.substr(at + 2);
}

// An argument in a few words: a number or type stays, a functor gives its name and its own first arguments.
std::string shortened(const std::string& argument, int depth) {
  if (argument.find("{lambda") != std::string::npos) return "lambda";
  const Parts parts = split(argument);
  std::string text = parts.name.empty() ? argument : without_namespaces(parts.name);
  if (parts.arguments.empty() || depth == 0) return text;
  std::string inner;
  for (const std::string& part : parts.arguments) inner += (inner.empty() ? "" : ", ") + shortened(part, depth - 1);
  return text + "<" + inner + ">";
}

}  // namespace

std::string kernel_name(std::string_view mangled) {
  const std::string text = demangled(mangled);
  if (text == mangled) return text;
  std::string name = split(text).name;
  return name.empty() ? text : name;
}

std::string kernel_name_with_arguments(std::string_view mangled) {
  const std::string text = demangled(mangled);
  if (text == mangled) return text;
  const Parts parts = split(text);
  if (parts.name.empty()) return text;
  std::string inner;
  for (const std::string& argument : parts.arguments) {
    const std::string part = shortened(argument, 1);
    if (inner.size() + part.size() > kLongestArguments) {
      inner += inner.empty() ? "…" : ", …";
      break;
    }
    inner += (inner.empty() ? "" : ", ") + part;
  }
  return inner.empty() ? parts.name : parts.name + "<" + inner + ">";
}

}  // namespace faultline
