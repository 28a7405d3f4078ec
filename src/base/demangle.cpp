#include "base/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

// What __cxa_demangle is made of: the pieces of the name are handed out as they are found. It stands beside it in libstdc++.a; the shared library hides it.
extern "C" int __gcclibcxx_demangle_callback(const char* mangled, void (*take)(const char*, std::size_t, void*),
                                             void* to) __attribute__((weak));

namespace faultline {
namespace {

constexpr std::size_t kLongestMangled = 16 * 1024;  // the demangler takes stack in relation to it
constexpr std::size_t kLongestName = 16 * 1024;

struct Output {
  std::jmp_buf full;
  std::size_t size = 0;
  char text[kLongestName];
};

// The demangler goes on to the end whatever happens here. It holds nothing but its stack, so leaving it in the middle loses nothing.
void take_piece(const char* piece, std::size_t count, void* to) {
  auto* const output = static_cast<Output*>(to);
  if (count > sizeof output->text - output->size) std::longjmp(output->full, 1);
  std::memcpy(output->text + output->size, piece, count);
  output->size += count;
}

bool demangle(const char* mangled, Output* output) {
  if (setjmp(output->full) != 0) return false;
  return __gcclibcxx_demangle_callback(mangled, take_piece, output) == 0;
}

// Without a way to stop it: only names that cannot grow much. Each reference to an earlier part doubles the name at most.
std::string demangled_whole(const std::string& name) {
  constexpr std::ptrdiff_t kMostReferences = 12;
  if (std::count_if(name.begin(), name.end(), [](char c) { return c == 'S' || c == 'T'; }) > kMostReferences)
    return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

}  // namespace

std::string demangled(std::string_view name) {
  std::string whole(name);
  if (!name.starts_with("_Z") || name.size() > kLongestMangled) return whole;
  if (__gcclibcxx_demangle_callback == nullptr) return demangled_whole(whole);
  const auto output = std::make_unique<Output>();
  if (!demangle(whole.c_str(), output.get())) return whole;
  return std::string(output->text, output->size);
}

}  // namespace faultline
