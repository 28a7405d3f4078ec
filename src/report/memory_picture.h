// A small picture of memory over time: allocated as a filled area, reserved as a line above it, the capacity as a line across, the peak
// marked. A column stands for equally many events and shows the most that was held in them, so the peak is never lost to scaling.
#pragma once

#include "report/page.h"
#include "report/report.h"

namespace faultline {

// Nothing is printed for a device without a curve.
void print_memory_picture(Page& page, const DeviceReport& device);

}  // namespace faultline
