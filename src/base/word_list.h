// Words as exec() takes them.
#pragma once

#include <string>
#include <vector>

namespace faultline {

// To be used while the words live and stay as they are. The last one is null.
inline std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace faultline
