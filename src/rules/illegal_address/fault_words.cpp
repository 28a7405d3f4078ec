#include "rules/illegal_address/fault_words.h"

#include <algorithm>
#include <array>

#include "sources/rule_names.h"

namespace faultline {

const FaultWords& words_of(FaultKind kind) {
  static constexpr std::array<std::pair<FaultKind, FaultWords>, 18> kWords = {{
      {FaultKind::kUnknown, {rule_name::kLaunchError, "was stopped by an error", ""}},
      {FaultKind::kIllegalAddress,
       {rule_name::kIllegalAddress, "touched an address that is not mapped on the device", "", true,
        "An index out of range, a tensor freed while a kernel still used it, or a custom kernel's own arithmetic",
        "PyTorch's index kernels check and would have said device-side assert."}},
      {FaultKind::kLocalRange,
       {rule_name::kIllegalAddress, "touched an address outside its shared or local memory",
        "Check the index into shared memory, and that the launch asks for as much dynamic shared memory as the kernel "
        "uses.",
        true}},
      {FaultKind::kMisaligned,
       {rule_name::kMisaligned, "touched an address that its access is not aligned to", "", true,
        "Usually a view that starts at an odd offset, handed to a kernel that loads several values at once: try "
        ".clone() on what goes into custom or half-precision kernels."}},
      {FaultKind::kAssert,
       {rule_name::kLaunchError, "failed a check of its own (a device-side assert)",
        "The kernel printed the condition that failed on standard error: a line with \"Assertion `…` failed\"."}},
      {FaultKind::kIllegalInstruction,
       {rule_name::kLaunchError, "ran into an instruction that the device does not know",
        "A jump through a damaged function pointer, or code built for another architecture.", true}},
      {FaultKind::kInvalidPc,
       {rule_name::kLaunchError, "jumped to an address that holds no code",
        "A damaged function pointer or return address: look for a write beyond a local array."}},
      {FaultKind::kAddressSpace,
       {rule_name::kLaunchError,
        "used an address of one kind of memory (shared, local, global) with an instruction for another",
        "Look for a pointer to shared memory that is kept or passed on as one to global memory."}},
      {FaultKind::kStack,
       {rule_name::kLaunchError, "used more stack than there was, or damaged it",
        "Deep recursion needs a larger stack (cudaDeviceSetLimit(cudaLimitStackSize, …)); a write beyond a local array "
        "looks the same."}},
      {FaultKind::kTimeout,
       {rule_name::kLaunchError, "ran longer than the driver allows",
        "Split its work, or run it on a device that drives no display."}},
      {FaultKind::kHardware,
       {rule_name::kLaunchError,
        "was stopped because the device reported an error of its own: hardware, not the program",
        "nvidia-smi -q -d ECC, and lines with Xid in dmesg, show more; reset or replace the device."}},
      {FaultKind::kLaunchFailure,
       {rule_name::kLaunchError, "was stopped by the hardware without a more precise reason",
        "An illegal access can end like this; if it comes at random places, look at the device too: nvidia-smi -q -d "
        "ECC, and "
        "Xid lines in dmesg.",
        true}},
      {FaultKind::kTrap,
       {rule_name::kLaunchError, "was stopped by a trap instruction: __trap(), or a check that a compiler made one",
        "Look at the condition that leads to the line named."}},
      {FaultKind::kResources,
       {rule_name::kLaunchError, "requested more registers or shared memory than one block can have on this device",
        "Use fewer threads per block for it."}},
      {FaultKind::kConfiguration,
       {rule_name::kLaunchError, "was launched with a shape that the device does not allow",
        "Often a tensor with no elements, or more than 65535 blocks in one dimension."}},
      {FaultKind::kNoKernelImage,
       {rule_name::kLaunchError, "has no code for this device's architecture in the program",
        "Install a build for it: python -c \"import torch; print(torch.cuda.get_arch_list())\" shows what there is."}},
      {FaultKind::kEarlierError,
       {rule_name::kLaunchError, "was refused because of an earlier error",
        "The first error in the log is the one to look at."}},
      {FaultKind::kSharedMemoryLimit,
       {rule_name::kLaunchError, "requested more shared memory than one block can have",
        "Smaller block sizes or fewer stages (num_stages) for that kernel."}},
  }};
  const auto found = std::find_if(kWords.begin(), kWords.end(), [&](const auto& row) { return row.first == kind; });
  return found == kWords.end() ? kWords.front().second : found->second;
}

bool checks_index(std::string_view kernel) {
  static constexpr std::array<std::string_view, 12> kMarks = {
      "indexSelect", "index_elementwise", "indexing_backward", "index_put", "index_kernel", "indexFunc",
      "gather",      "scatter",           "embedding",         "nll_loss",  "take_put",     "ClassNLL"};
  const bool is_torch = kernel.find("at::native") != std::string_view::npos ||
                        kernel.find("at6native") != std::string_view::npos ||
                        kernel.find("cunn_") != std::string_view::npos;
  return is_torch && std::any_of(kMarks.begin(), kMarks.end(),
                                 [&](std::string_view mark) { return kernel.find(mark) != std::string_view::npos; });
}

std::string core_dump_advice() {
  return "Run it with faultline run --core-dump (or --again, which does so by itself after a fault): the GPU core dump "
         "names the instruction, its line and the address. The driver then ends the program "
         "at the fault.";
}

}  // namespace faultline
