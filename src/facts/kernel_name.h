// Kernel names as people can read them.
#pragma once

#include <string>
#include <string_view>

namespace faultline {

// "at::native::vectorized_elementwise_kernel" of its mangled name: no result, parameters, nor template arguments. What is not mangled stays.
std::string kernel_name(std::string_view mangled);

// With its template arguments, shortened: "vectorized_elementwise_kernel<4, FillFunctor<float>, …>".
std::string kernel_name_with_arguments(std::string_view mangled);

}  // namespace faultline
