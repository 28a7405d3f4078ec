// Opens the real driver past the dlopen that this library shows to the program.
#pragma once

namespace faultline::capture {

void* open_real_driver(const char* path);

}  // namespace faultline::capture
