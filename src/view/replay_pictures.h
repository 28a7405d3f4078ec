// What-ifs side by side: of each replay its curve beside the recorded one, and what it comes to. Readable and printed without a script.
#pragma once

#include <string>

#include "view/html_page.h"

namespace faultline::view {

std::string replay_section(const Viewed& viewed);  // empty where nothing was replayed

}  // namespace faultline::view
