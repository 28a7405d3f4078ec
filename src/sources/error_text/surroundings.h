// What the rest of a text tells about the program that wrote its message: the version of PyTorch, and whether it is PyTorch at all.
#pragma once

#include <string>
#include <string_view>

namespace faultline {

// "1.13" where the text names the version ("torch 1.13.1", "torch==2.0.1+cu118", "PyTorch version: 1.6.0"; the last one named counts); "<=1.10" where only the path of its Python does, for that
// Python got no later PyTorch ("python3.6/site-packages/torch/"); empty where neither does.
std::string torch_version(std::string_view text);

// "numba", "CuPy", "llama.cpp": what else uses the GPU in this text, where nothing in it is of PyTorch. Empty where PyTorch is named or nothing is.
std::string other_framework(std::string_view text);
bool names_torch(std::string_view text);
// Whether the program is of another language than Python, by how it ends or shows its stack: R, Java, .NET, Julia, Rust, Go.
bool is_of_other_language(std::string_view text);
// Whether the paths in it are of Windows.
bool is_windows(std::string_view text);

// "torchrun", "accelerate launch", "deepspeed": what started the program, where the text shows it; empty: nothing did.
std::string launcher_of(std::string_view text);

// "python main.py --lr 3": the last command in front of `at`, where the message stands, that a prompt, a notebook's "!" or "+" of the shell shows; else the one of which the
// shell says that it ended. What was started behind the message is another attempt. Empty: there is none.
std::string command_of(std::string_view text, std::size_t at = std::string_view::npos);

// The file in which the program began, where the tracebacks of the text agree on one; empty: they do not.
std::string program_file(std::string_view text);

// PyTorch's warning of a GPU that it was not built for: "NVIDIA GeForce RTX 5090 with CUDA capability sm_120 is not compatible …", and what it was built for.
struct UnknownGpu {
  std::string name, architecture, built_for;  // "NVIDIA GeForce RTX 5090", "sm_120", "sm_50 sm_60 …"
};
UnknownGpu unknown_gpu(std::string_view text);

// Whether a command, a program or a printed environment in the text sets it; PyTorch's own advice to set it does not count.
bool sets_expandable_segments(std::string_view text);

}  // namespace faultline
