#include "sources/stated_error.h"

namespace faultline {

void StatedError::set_maker(std::string_view name) {
  framework = framework_named(name);
  program = framework == Framework::kOther ? std::string(name) : std::string();
}

std::string StatedError::maker_name() const {
  return framework == Framework::kOther ? program : std::string(file_name_of(framework));
}

std::string StatedError::other_words() const {
  return other_framework == Framework::kOther ? other_program : std::string(words_of(other_framework));
}

StatedAllocator StatedError::allocator() const {
  if (pool.empty() || pool.ends_with("_bfc") || pool.find("cpu") != std::string::npos) return StatedAllocator::kUsual;
  return pool == kAsyncPool || pool.starts_with("gpu_async_") ? StatedAllocator::kAsync
         : pool == kMetalPool                                 ? StatedAllocator::kMetal
                                                              : StatedAllocator::kOther;
}

std::optional<ByteInterval> StatedError::outside() const {
  return this_process && reserved ? std::optional(*this_process - *reserved) : std::nullopt;
}

}  // namespace faultline
