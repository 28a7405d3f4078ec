// Whose device a message is about, and how its tools, settings and calls are called there.
//
// Advice is written in CUDA's words; for_platform() gives it in those of the device's own maker, and takes out what has no counterpart there.
#pragma once

#include "rules/finding.h"
#include "sources/statements.h"

namespace faultline {

Platform platform_of(const StatedError& stated);
// What shows who holds such a device: "rocm-smi --showpids --showmeminfo vram".
std::string_view shows_holders(Platform platform);
void for_platform(Platform platform, Finding& finding);

}  // namespace faultline
