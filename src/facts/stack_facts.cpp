#include "facts/stack_facts.h"

#include <algorithm>

#include "facts/libraries.h"

namespace faultline {
namespace {

bool any_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text == word; });
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// /usr/lib/python3.12/threading.py, /usr/lib64/python3/…, C:\Python310\lib\threading.py; not a folder of the user's whose name only begins so.
bool is_inside_python(std::string_view path) {
  if (contains(path, "\\lib\\")) return true;
  constexpr std::string_view kFolder = "/python3";
  for (std::size_t at = path.find(kFolder); at != std::string_view::npos; at = path.find(kFolder, at + 1)) {
    const std::string_view rest = path.substr(at + kFolder.size());
    const std::size_t end = rest.find_first_not_of(".0123456789");
    const std::string_view parent = path.substr(0, at);
    if (end != std::string_view::npos && rest[end] == '/' && (parent.ends_with("/lib") || parent.ends_with("/lib64")))
      return true;
  }
  return false;
}

// load_weights, create_layers, init_params: what a function says it does to a model.
bool sets_up_model(std::string_view function) {
  static constexpr std::string_view kVerbs[] = {"load_", "build_", "create_", "make_", "init_", "setup_", "restore_"};
  static constexpr std::string_view kObjects[] = {"model",      "weight", "checkpoint", "ckpt",
                                                  "state_dict", "param",  "layers",     "shard"};
  const auto verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                 [&](std::string_view word) { return function.starts_with(word); });
  return verb != std::end(kVerbs) && std::any_of(std::begin(kObjects), std::end(kObjects),
                                                 [&](std::string_view word) { return contains(function, word); });
}

struct FrameKind {
  bool user = false;
  bool lined = false;  // a line of source stands behind it
  std::uint16_t roles = 0;
  bool is_closure = false;  // what an optimizer calls for the loss
};

// Compiled code of the user's own: it has a line, and its whole path leads where neither packages nor build farms keep theirs.
bool is_own_source(std::string_view file, std::uint32_t line) {
  if (line == 0 || !file.starts_with('/') || is_toolkit_file(file)) return false;
  for (const std::string_view ending : {".cpp", ".cc", ".c", ".cxx", ".cu", ".h", ".hpp", ".cuh"}) {
    if (!file.ends_with(ending)) continue;
    static constexpr std::string_view kElsewhere[] = {"/usr/",
                                                      "/opt/",
                                                      "/build/",
                                                      "/builds/",
                                                      "/builddir/",
                                                      "/buildroot/",
                                                      "/pytorch/",
                                                      "/dvs/",
                                                      "/proc/",
                                                      "/__w/",
                                                      "/var/",
                                                      "/croot/",
                                                      "/project/",
                                                      "/io/",
                                                      "/home/runner/work/",
                                                      "/home/conda/feedstock_root/"};
    static constexpr std::string_view kInside[] = {"/site-packages/", "/dist-packages/", "/_deps/",   "/torch/csrc/",
                                                   "/ATen/",          "/c10/",           "/Python-3", "/cpython"};
    return std::none_of(std::begin(kElsewhere), std::end(kElsewhere),
                        [&](std::string_view place) { return file.starts_with(place); }) &&
           !is_inside_python(file) && std::none_of(std::begin(kInside), std::end(kInside), [&](std::string_view place) {
             return contains(file, place);
           });
  }
  return false;
}

FrameKind judge_frame(std::string_view file, std::string_view function, std::uint32_t line) {
  FrameKind kind;
  // compiled, and no line of it is known
  const bool is_module = line == 0 && file.starts_with('/') && !file.ends_with(".py");
  if (is_native_file(file) || is_module || is_toolkit_file(file)) {
    kind.user = kind.lined = is_own_source(file, line);
    if (contains(function, "torch::autograd::Engine") || contains(function, "torch::autograd::Node"))
      kind.roles |= kInBackward;
    return kind;
  }
  kind.lined = true;
  kind.user = !is_library_file(file);
  const bool module_py = file.ends_with("torch/nn/modules/module.py");
  if (module_py && any_of(function, {"_call_impl", "_wrapped_call_impl", "__call__", "_slow_forward"}))
    kind.roles |= kInModuleCall;
  if (function == "forward") kind.roles |= kInModuleCall;  // by its name, where no module stands behind it
  if (module_py && any_of(function, {"_apply", "convert", "to_empty"})) kind.roles |= kMovesModule;
  if (any_of(function, {"__init__", "reset_parameters", "_reset_parameters", "register_buffer", "_init_weights"}) ||
      sets_up_model(function))
    kind.roles |= kConstructs;
  if (contains(file, "torch/nn/init.py")) kind.roles |= kConstructs;
  if (any_of(function, {"load_state_dict", "_load_from_state_dict", "from_pretrained", "load_file", "get_tensor",
                        "_rebuild_tensor", "_rebuild_tensor_v2", "persistent_load", "load_tensor",
                        "set_module_tensor_to_device", "load_checkpoint_in_model", "_load_parameter_into_model",
                        "_load_state_dict_into_meta_model", "load_shard_file"}) ||
      file.ends_with(
          "transformers/core_model_loading.py") ||  // on threads of its own, which from_pretrained does not stand behind
      file.ends_with("torch/serialization.py")) {
    kind.roles |= kLoadsState;
  }
  if (function == "zero_grad") {
    kind.roles |= kInZeroGrad;
  } else if (contains(file, "torch/optim/") || (function == "step" && contains(file, "optim"))) {
    kind.roles |= kInOptimizer;
    if (any_of(function, {"_init_group", "_init_state", "init_state", "_init_optimizer_state"}))
      kind.roles |= kInitsOptimizer;
  }
  const bool autograd_py = contains(file, "torch/autograd/") || file.ends_with("torch/_tensor.py");
  if (autograd_py && any_of(function, {"backward", "_engine_run_backward", "_make_grads", "grad", "apply"}))
    kind.roles |= kInBackward;
  if (file.ends_with("torch/utils/checkpoint.py") && any_of(function, {"recompute_fn", "backward", "unpack_hook"}))
    kind.roles |= kRecomputes;
  if (file.ends_with("torch/cuda/graphs.py")) kind.roles |= kCapturesGraph;
  kind.is_closure = (kind.roles & (kInModuleCall | kInBackward)) != 0 || contains(function, "closure");
  return kind;
}

}  // namespace

bool is_native_file(std::string_view path) {
  if (path.empty() || path == "??" || path == "<unknown>") return true;
  for (const std::string_view ending : {".cpp", ".cc", ".c", ".cxx", ".cu", ".h", ".hpp", ".cuh", ".S", ".so"}) {
    if (path.ends_with(ending)) return true;
  }
  return contains(path, ".so.");
}

bool is_library_file(std::string_view path) {
  if (is_own_source(path, 1)) return false;
  if (is_native_file(path) || is_toolkit_file(path) || path.starts_with("<frozen ")) return true;
  // compiled packages name their sources so: "cupy/cuda/memory.pyx"
  if (path.ends_with(".pyx") && !path.starts_with('/')) return true;
  // Code that torch.compile, torch.fx, attrs and others write for themselves; a dry run knows of more (_file_owner.py).
  if (contains(path, "/torchinductor_") || path.starts_with("<eval_with_key>") || path.starts_with("<generated>") ||
      path.starts_with("<attrs generated "))
    return true;
  if (!installed_part(path).empty() || is_inside_python(path)) return true;
  // A traceback may have been shortened to what stands behind the folder of packages.
  return contains(path, "torch/nn/modules/") || contains(path, "/torch/_dynamo/") ||
         contains(path, "/torch/_inductor/");
}

StackFacts::StackFacts(const Trace& trace) {
  std::vector<FrameKind> kinds(trace.stacks.frame_count());
  for (std::size_t index = 1; index < kinds.size(); ++index) {
    const Frame& frame = trace.stacks.frame(FrameId(static_cast<std::uint32_t>(index)));
    kinds[index] = judge_frame(trace.strings.at(frame.file), trace.strings.at(frame.function), frame.line);
  }
  nodes_.resize(trace.stacks.size());
  const bool has_lines = std::any_of(kinds.begin(), kinds.end(), [](const FrameKind& kind) { return kind.user; });
  const bool of_pools =
      std::any_of(trace.heaps.begin(), trace.heaps.end(), [](const Heap& heap) { return heap.kind == HeapKind::kBfc; });
  HashMap<std::uint64_t, StackId> programs;  // caller << 32 | frame
  for (std::size_t index = 1; index < nodes_.size(); ++index) {
    const StackId stack(static_cast<std::uint32_t>(index));
    const FrameKind& kind = kinds[trace.stacks.frame_id(stack).index()];
    Node node = nodes_[trace.stacks.parent(stack).index()];
    // A forward or backward pass that an optimizer's step runs (L-BFGS, Lightning, skorch) is none of its own doing.
    if (kind.is_closure) node.roles &= static_cast<std::uint16_t>(~(kInOptimizer | kInitsOptimizer));
    node.roles = static_cast<std::uint16_t>(node.roles | kind.roles);
    if (kind.lined) node.python = stack;
    if (kind.user) {
      node.user = stack;
      if (!(node.roles & kInModuleCall)) {
        const std::uint64_t place = std::uint64_t{node.program.value} << 32 | trace.stacks.frame_id(stack).value;
        node.program = programs.try_emplace(place, stack).first->second;
      }
    }
    if (of_pools && !has_lines) node.program = stack;
    nodes_[index] = node;
  }
}

}  // namespace faultline
