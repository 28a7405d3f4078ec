// Makes a scene smaller where its page would be too large: half the columns, half of what is shown one by one.
#pragma once

#include "view/scene.h"

namespace faultline::view {

// Of two columns the higher stands for both. Of allocations those stay that take most memory for longest, of segments the largest, of spans the longest, of calls every other.
void thin(Scene& scene);

}  // namespace faultline::view
