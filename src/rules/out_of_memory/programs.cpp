#include "rules/out_of_memory/programs.h"

#include <algorithm>

namespace faultline {
namespace {

constexpr auto kPrograms = std::to_array<Program>({
    {"llama.cpp",
     Platform::kOther,
     {"Put less on the GPU: fewer layers (-ngl), a shorter context (-c), a smaller quantisation, --cache-type-k "
      "q8_0."}},
    {"TensorRT",
     Platform::kCuda,
     {"A smaller workspace (setMemoryPoolLimit, --memPoolSize), smaller shapes or batch in the profile; while an "
      "engine "
      "is built, a tactic that finds no memory is skipped and need not end the build."}},
    {"CTranslate2",
     Platform::kCuda,
     {"Take compute_type=\"int8_float16\" or \"int8\", a smaller model, or a smaller batch (batch_size, beam_size); in "
      "faster-whisper shorter chunks."}},
    {"DirectML",
     Platform::kDirectX,
     {"A smaller image, batch or model, float16, attention in slices (--lowvram, --medvram in web interfaces)."}},
    {"LMDeploy",
     Platform::kCuda,
     {"A lower --cache-max-entry-count (0.8 unless told: the share of free memory for keys and values), a shorter "
      "--session-len, a quantised model, --tp 2."}},
    {"Triton Inference Server",
     Platform::kCuda,
     {"The pool is as large as --cuda-memory-pool-byte-size says (64 MiB unless told); raise it for this GPU if "
      "tensors "
      "between models should stay on it."}},
    {"Warp",
     Platform::kCuda,
     {"Warp keeps a pool: wp.set_mempool_release_threshold(device, 0) gives back what is idle."}},
    {"dlib",
     Platform::kCuda,
     {"Smaller pictures, fewer of them at once (batch_size), or number_of_times_to_upsample=0; model=\"hog\" works on "
      "the CPU."}},
    {"OpenCV",
     Platform::kCuda,
     {"Smaller pictures or a smaller network; release GpuMat objects that are no longer needed."}},
    {"MXNet",
     Platform::kCuda,
     {"A smaller batch; MXNet keeps what it frees in a pool of its own (MXNET_GPU_MEM_POOL_RESERVE leaves a share of "
      "the device to others)."}},
    {"PaddlePaddle",
     Platform::kCuda,
     {"A smaller batch; FLAGS_fraction_of_gpu_memory_to_use and FLAGS_allocator_strategy=auto_growth decide how much "
      "Paddle takes at once."}},
    {"CUDA.jl",
     Platform::kCuda,
     {"GC.gc(true); CUDA.reclaim() gives back what Julia no longer needs but has not collected."}},
    {"MindSpore", Platform::kOther, {"A smaller batch; max_device_memory in set_context limits or raises its share."}},
    {"LightGBM", Platform::kCuda, {"A smaller max_bin (63) and fewer leaves (num_leaves) shrink the histograms."}},
    {"OpenMM", Platform::kCuda, {"A smaller system, or Precision \"mixed\" or \"single\" instead of \"double\"."}},
    {"GROMACS", Platform::kCuda, {"Fewer ranks on one GPU (-ntmpi, -gpu_id), or less on it: -pme cpu, -update cpu."}},
    {"NAMD", Platform::kCuda, {"A smaller system for each GPU: more GPUs (+devices), fewer processes on one."}},
    {"LAMMPS",
     Platform::kOther,
     {"Fewer atoms for each device: more ranks and GPUs, a smaller neighbour list (neigh_modify)."}},
    {"RELION",
     Platform::kCuda,
     {"Fewer MPI ranks on a GPU, smaller boxes, --free_gpu_memory to leave more unused, --maxsig; skipping padding "
      "(--pad 1) saves most."}},
    {"Kaldi",
     Platform::kCuda,
     {"Another program on the same GPU is the usual one: nvidia-smi -c 3 (exclusive mode) and --use-gpu=wait keep them "
      "apart; else a smaller minibatch (--trainer.num-chunk-per-minibatch)."}},
    {"Blender",
     Platform::kOther,
     {"Smaller textures (Simplify, Texture Limit), fewer subdivisions, rendering in tiles (Performance, Memory, Use "
      "Tiling), or the CPU."}},
    {"OptiX",
     Platform::kCuda,
     {"A smaller scene, compacted acceleration structures (OPTIX_BUILD_FLAG_ALLOW_COMPACTION)."}},
    {"NVENC",
     Platform::kCuda,
     {"Fewer encodes at one time on this card, a lower resolution, fewer surfaces (-surfaces, -rc-lookahead)."}},
    {"NVDEC", Platform::kCuda, {"Fewer decodes at one time on this card, fewer extra frames (-extra_hw_frames)."}},
    {"COLMAP",
     Platform::kCuda,
     {"Lower --SiftMatching.max_num_matches (32768 unless told; newer: --FeatureMatching.max_num_matches), or match on "
      "the CPU: --SiftMatching.use_gpu 0.",
      "For dense stereo a smaller --PatchMatchStereo.max_image_size."}},
    {"hashcat",
     Platform::kOther,
     {"A lower workload (-w 1), optimised kernels (-O), or a smaller -n; in a virtual machine its RAM counts where the "
      "device is a CPU."}},
    {"Unreal Engine",
     Platform::kDirectX,
     {"A smaller texture pool (r.Streaming.PoolSize), lower resolution or quality."}},
    {"OpenGL", Platform::kOther, {"Smaller textures and buffers, and delete those that are no longer used."}},
    {"Darknet",
     Platform::kCuda,
     {"In the .cfg: a larger subdivisions=, a smaller batch=, width= and height=; random=0 keeps the size fixed."}},
    {"Level Zero", Platform::kIntel, {"A smaller batch or model, or a smaller type."}},
    {"Ascend", Platform::kAscend, {"A smaller batch or model; the plog files (~/ascend/log) have the sizes."}},
    {"OpenVINO", Platform::kIntel, {}},
    {"MLX",
     Platform::kMetal,
     {"A smaller batch, context or a quantised model; sudo sysctl iogpu.wired_limit_mb=… raises how much of the memory "
      "the GPU may have."}},
    {"Metal",
     Platform::kMetal,
     {"A smaller batch, context or a quantised model; the GPU shares the memory with everything else that runs."}},
    {"Ultralytics",
     Platform::kCuda,
     {"A smaller batch (batch=…, or batch=-1 to have it chosen), imgsz, or fewer objects in one picture."}},
    {"HeavyDB",
     Platform::kCuda,
     {"The query ran on the CPU instead; --gpu-buffer-mem-bytes and fewer columns decide."}},
    {"tinygrad", Platform::kOther, {"A smaller batch or model, or a smaller type (HALF=1)."}},
    {"cudarc", Platform::kCuda, {"A smaller or quantised model, a shorter context, a smaller batch."}},
});

}  // namespace

const Program* program_of(std::string_view name) {
  const auto row =
      std::find_if(kPrograms.begin(), kPrograms.end(), [&](const Program& one) { return one.name == name; });
  return name.empty() || row == kPrograms.end() ? nullptr : &*row;
}

}  // namespace faultline
