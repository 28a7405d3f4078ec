// Where Faultline's own parts are on this machine: beside the executable (a build tree, an installed package), else below FAULTLINE_HOME.
#pragma once

#include <string>

namespace faultline::process {

std::string python_part();  // the folder that holds the package `faultline`; empty: not found
// full path of "libfaultline_dryrun.so", "capture/libcuda.so.1", "vgpu/libfaultline_vgpu.so"; empty: not found
std::string library_part(const std::string& name);
std::string docs_home();  // the folder that holds docs/rules; empty: not found
std::string executable_folder();

}  // namespace faultline::process
