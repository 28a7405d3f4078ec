// The terminal that somebody sits at, behind a descriptor.
#pragma once

namespace faultline::process {

int terminal_width(int descriptor);  // columns; where it is no terminal, what COLUMNS says, else 80
bool speaks_utf8(int descriptor);

}  // namespace faultline::process
