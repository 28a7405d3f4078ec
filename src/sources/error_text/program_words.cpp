// What programs that people use print when memory runs out, each in its own words: a row for each of them.
#include <algorithm>
#include <array>

#include "base/characters.h"
#include "sources/error_text/known_messages.h"
#include "sources/error_text/log_lines.h"

namespace faultline {
namespace {

using Force = KnownWords::Force;
constexpr bool kAsError = false, kAnywhere = true;
constexpr std::string_view kOom = "out-of-memory";

constexpr auto kPrograms = std::to_array<KnownWords>({
    // llama.cpp, and what is built on it
    {"model requires more system memory (", "host-too-large", kAnywhere, "ollama",
     "system memory ({requested}) than is available ({free})"},
    {"model loading was stopped due to insufficient system resources", "host-too-large", kAnywhere, "LM Studio",
     "requires approximately {requested} of memory"},
    {"llama runner process has terminated: signal: killed", "host-killed", kAnywhere, "ollama", "", Force::kWeak},
    {"unable to allocate cuda", kOom, kAsError, "llama.cpp", "", Force::kWeak, " buffer"},
    {"unable to allocate rocm", kOom, kAsError, "llama.cpp", "", Force::kWeak, " buffer"},
    {"unable to allocate vulkan", kOom, kAsError, "llama.cpp", "", Force::kWeak, " buffer"},
    {"unable to allocate metal", kOom, kAsError, "llama.cpp", "", Force::kWeak, " buffer"},
    {"unable to allocate cpu buffer", "host-alloc-ggml", kAsError, "llama.cpp", "", Force::kWeak},
    {"alloc_tensor_range: failed to allocate ", kOom, kAnywhere, "llama.cpp", "buffer of size {requested:n}",
     Force::kWeak},
    {"alloc_tensor_range: failed to allocate cpu buffer", "host-alloc-ggml", kAnywhere, "llama.cpp",
     "buffer of size {requested:n}"},
    {"ggml_gallocr_reserve_n: failed to allocate ", kOom, kAnywhere, "llama.cpp", "buffer of size {requested:n}",
     Force::kWeak},
    {"ggml_gallocr_reserve_n_impl: failed to allocate ", kOom, kAnywhere, "llama.cpp", "buffer of size {requested:n}",
     Force::kWeak},
    {"ggml_gallocr_reserve_n: failed to allocate cpu buffer", "host-alloc-ggml", kAnywhere, "llama.cpp",
     "buffer of size {requested:n}"},
    {"ggml_aligned_malloc: insufficient memory", "host-alloc-ggml", kAnywhere, "llama.cpp",
     "attempted to allocate {requested}"},
    {"ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate", "host-alloc-ggml", kAnywhere, "llama.cpp",
     "buffer of size {requested:n}", Force::kWeak},
    {"failed to allocate buffer for kv cache", kOom, kAsError, "llama.cpp", "", Force::kWeak},
    {"failed to allocate compute buffers", kOom, kAsError, "llama.cpp", "", Force::kWeak},
    {"hipmalloc failed: out of memory", kOom, kAsError, "llama.cpp", "allocating {requested} on device {device}"},
    {"warning: failed to mlock ", "harmless-mlock", kAnywhere, "llama.cpp"},
    {"whisper_kv_cache_init: failed to allocate memory for the kv", kOom, kAnywhere, "llama.cpp", "", Force::kWeak},
    {"ggml_assert(data != null && \"failed to allocate buffer\") failed", "host-alloc-ggml", kAnywhere, "llama.cpp"},
    {"ggml_assert: ", "host-alloc-ggml", kAnywhere, "llama.cpp", "", Force::kStrong, "failed to allocate buffer"},
    {"llama runner exited, you may not have enough available memory", "model-runner", kAsError, "ollama"},
    // engines that serve models
    {"cuda out of memory occurred when warming up sampler with", "vllm-sampler", kAsError, "vLLM"},
    {"this happens when other processes sharing the same container", "vllm-profiling", kAsError, "vLLM"},
    {"is preempted by preemptionmode", "serving-preempt", kAnywhere, "vLLM", "", Force::kBenign},
    {"the memory capacity is unbalanced. some gpus may be occupied", "serving-unbalanced", kAsError, "SGLang"},
    {"executor creation failed due to insufficient gpu memory", kOom, kAsError, "TensorRT-LLM"},
    {"requested amount of gpu memory (", kOom, kAnywhere, "TensorRT", "({requested:n} bytes) could not be allocated",
     Force::kWeak},
    {"cuda failed with error out of memory", kOom, kAsError, "CTranslate2"},
    {"cuda failed with error an illegal memory access", "illegal-address", kAsError, "CTranslate2"},
    {"prefill out of memory. try to lower your batch size", "serving-prefill", kAsError, "SGLang"},
    {"decode out of memory. try to lower your batch size", "serving-prefill", kAsError, "SGLang"},
    {"not enough memory. please try to increase --mem-fraction-static", "serving-static", kAsError, "SGLang"},
    {"kv cache pool is full. retract requests", "serving-retract", kAsError, "SGLang", "", Force::kBenign},
    {"decode out of memory happened", "serving-retract", kAsError, "SGLang", "", Force::kBenign},
    {"prefill tokens. you need to decrease", "serving-warmup", kAnywhere, "TGI", "to handle {tokens:n}"},
    {"insufficient vram for model and cache", "model-vram", kAsError, "ExLlama"},
    {"insufficient vram in split for model and cache", "model-vram", kAsError, "ExLlama"},
    {"insufficient gpu memory error: the available single gpu memory", "model-vram", kAsError, "MLC LLM",
     "memory is {free}"},
    {"[tm][error] cuda runtime error: out of memory", kOom, kAsError, "LMDeploy"},
    {"[ft][error] cuda runtime error: out of memory", kOom, kAsError, "FasterTransformer"},
    {"failed to allocate cuda memory with byte size ", kOom, kAnywhere, "Triton Inference Server",
     "byte size {requested:n} on gpu {device}", Force::kBenign},
    {"memoryerror: allocation of ", kOom, kAsError, "tinygrad", "allocation of {requested}used: {allocated}",
     Force::kStrong, " failed on "},
    {"warp cuda error 2: out of memory", kOom, kAsError, "Warp", "", Force::kWeak},
    {"warp cuda error 700:", "illegal-address", kAsError, "Warp", "", Force::kWeak},
    {"bytes on device 'cuda:", kOom, kAnywhere, "Warp",
     "failed to allocate {requested:n} bytes on device 'cuda:{device}"},
    // libraries
    {"there is not enough gpu video memory available", kOom, kAnywhere, "DirectML", "allocate tensor with {requested}"},
    {"8007000e not enough memory resources are available", kOom, kAnywhere, "DirectML", "", Force::kWeak, "dml"},
    {"code: 2, reason: out of memory", kOom, kAsError, ""},
    {"(-217:gpu api call) out of memory", kOom, kAnywhere, "OpenCV"},
    {"(-4:insufficient memory) failed to allocate ", "host-alloc", kAnywhere, "OpenCV",
     "failed to allocate {requested}"},
    {"cudamalloc retry failed: out of memory", kOom, kAsError, "MXNet"},
    {"memory allocation failed out of memory", kOom, kAsError, "MXNet"},
    {"out of memory error on gpu ", kOom, kAnywhere, "PaddlePaddle",
     "cannot allocate {requested} memory on gpu {device}, {used} memory has been allocated and available memory is "
     "only "
     "{free}"},
    {"out of gpu memory trying to allocate ", kOom, kAnywhere, "CUDA.jl",
     "trying to allocate {requested}% ({used}/{capacity}) memory pool usage: {allocated} ({reserved} reserved"},
    {"cuda.outofgpumemoryerror(", kOom, kAnywhere, "CUDA.jl"},
    {"memory isn't enough and alloc failed", kOom, kAnywhere, "MindSpore", "alloc size: {requested:n}", Force::kStrong,
     "device"},
    {"bytes of device memory for device [", kOom, kAnywhere, "ND4J", "failed to allocate [{requested:n}] bytes"},
    {"memory object allocation failure", "opencl-memory", kAsError, ""},
    {"mem_object_allocation_failure", "opencl-memory", kAsError, "", "", Force::kWeak},
    {"] bytes from device [", kOom, kAnywhere, "ND4J", "failed to allocate [{requested:n}"},
    {"out of [device] memory, host memory will be used instead", kOom, kAnywhere, "ND4J",
     "requested bytes: [{requested:n}", Force::kBenign},
    {"can't allocate [host] memory: ", "host-alloc", kAnywhere, "ND4J", "[host] memory: {requested:n}"},
    {"tornadooutofmemoryexception: ", kOom, kAnywhere, "TornadoVM", "unable to allocate {requested:n} bytes"},
    {"gpuretryoom: gpu outofmemory", kOom, kAnywhere, "Spark RAPIDS", "", Force::kBenign, "retrying"},
    {"gpuretryoom: gpu outofmemory", kOom, kAnywhere, "Spark RAPIDS"},
    {"gpusplitandretryoom: gpu outofmemory", kOom, kAnywhere, "Spark RAPIDS"},
    {"cudaexception: erroroutofmemory: ", kOom, kAnywhere, "ManagedCuda"},
    {"cuda ran out of available memory", kOom, kAnywhere, "CUDALink"},
    {"failed with error code 2 (out of memory)", kOom, kAsError, "Futhark"},
    {"failed with error code 700 (an illegal memory access", "illegal-address", kAsError, "Futhark"},
    {"cuda error 2 (cudaerrormemoryallocation)", kOom, kAsError, ""},
    {"cusparse api failed at line ", "cusparse-alloc", kAsError, "cusparse", "", Force::kStrong,
     "insufficient resources"},
    {"drivererror(cuda_error_out_of_memory", kOom, kAnywhere, "cudarc"},
    {"drivererror(cuda_error_illegal_address", "illegal-address", kAnywhere, "cudarc"},
    {"drivererror(cuda_error_misaligned_address", "misaligned-address", kAnywhere, "cudarc"},
    {"drivererror(cuda_error_launch_failed", "launch-failure", kAnywhere, "cudarc"},
    {"arrayfire exception (device out of memory", kOom, kAnywhere, "ArrayFire"},
    {"cuda failed with error 2 out of memory", kOom, kAsError, "spconv"},
    {"cuda failed with error 700 an illegal memory access", "illegal-address", kAsError, "spconv"},
    {"cuda runtime error: out of memory", kOom, kAsError, ""},
    {"cuda error cuda_error_out_of_memory", kOom, kAsError, ""},
    {"cuda: out of memory", kOom, kAsError, "", "", Force::kWeak},
    {"[cuda] out of memory", kOom, kAsError, ""},
    {"driver api error = 0002", kOom, kAnywhere, ""},
    {"driver api error = 0700", "illegal-address", kAnywhere, ""},
    {"cuda allocation failed", kOom, kAsError, "", "", Force::kWeak},
    {"nvjpeg_status_allocator_failure", kOom, kAsError, "nvJPEG"},
    {"error: out of memory. requested ", kOom, kAsError, "CatBoost", "requested {requested}; free {free}"},
    {"error: not enough memory for tree-ctrs: ", kOom, kAsError, "CatBoost"},
    {"cuda failure 2: out of memory", kOom, kAsError, "onnxruntime", "", Force::kStrong, "onnxruntime"},
    {"cuda failure 2: out of memory", kOom, kAsError, ""},
    {"cuda failure 700: an illegal memory access", "illegal-address", kAsError, "onnxruntime", "", Force::kStrong,
     "onnxruntime"},
    {"cuda failure 700: an illegal memory access", "illegal-address", kAsError, ""},
    {"enforce allocating <= available failed, ", kOom, kAnywhere, "PaddlePaddle", "failed, {requested:n} > {free:n}"},
    {"paddlecheckerror: out of memory", kOom, kAsError, "PaddlePaddle"},
    {"out of memory!!! request memory size: ", kOom, kAsError, "MindSpore", "request memory size: {requested:n}"},
    {"check failed: [error == cudasuccess]", kOom, kAnywhere, "ThunderGBM", "", Force::kStrong, "out of memory"},
    {"out of host memory", "opencl-host", kAsError, "", "", Force::kStrong, "lightgbm"},
    {"in device::create_", kOom, kAsError, "wgpu", "", Force::kStrong, "not enough memory left"},
    {"wgpu error: out of memory", kOom, kAsError, "wgpu"},
    {"is greater than the maximum buffer size (", "buffer-limit", kAnywhere, "wgpu",
     "buffer size {requested:n} is greater than the maximum buffer size ({limit:n}"},
    {"no pool handles allocation of size ", "buffer-limit", kAsError, "CubeCL", "of size {requested:n}"},
    {"returned error 2 (cuda_error_out_of_memory)", kOom, kAnywhere, "OpenACC", "", Force::kWeak},
    {"returned error 700: illegal address", "illegal-address", kAnywhere, "OpenACC"},
    {"returned error 2: out of memory", kOom, kAnywhere, "OpenACC", "", Force::kWeak},
    {"bytes of device memory", kOom, kAnywhere, "OpenACC",
     "out of memory allocating {requested:n} bytes of device memorytotal/free cuda memory: {capacity:n}/{free:n}"},
    {"curesult error result=2 ", kOom, kAsError, "torch_memory_saver"},
    {"mkl_malloc: failed to allocate memory", "host-alloc", kAsError, "MKL"},
    {"cudaerrorlaunchoutofresources", "launch-resources", kAnywhere, "", "", Force::kWeak},
    {"cuda_error_launch_out_of_resources", "launch-resources", kAnywhere, "", "", Force::kWeak},
    {"out of resource: registers", "triton-registers", kAsError, "Triton"},
    {"out of resource: tensor memory", "triton-tensor-memory", kAsError, "Triton"},
    {"failed to create cublas handle: the resource allocation failed", "cublas-alloc", kAsError, "cublas"},
    {"device memory is insufficient to use tactic", "harmless-tactic", kAnywhere, "TensorRT"},
    {"skipping tactic ", "harmless-tactic", kAnywhere, "TensorRT", "", Force::kStrong, "insufficient memory"},
    // simulation and measurement
    {"failed to allocate a memory region of ", kOom, kAnywhere, "Kaldi",
     "memory region of {requested:n}memory info: free:{free}, used:{used}, total:{capacity}"},
    {"allocation of the device buffer failed", kOom, kAsError, "GROMACS"},
    {"fatal error: cuda error cuda", kOom, kAnywhere, "NAMD", "", Force::kStrong, ": out of memory"},
    {"gpubuffer::allocate failed out of memory", kOom, kAnywhere, "AMBER"},
    {"an illegal memory access was encountered launching kernel", "illegal-address", kAsError, "AMBER"},
    {"insufficient memory on accelerator", kOom, kAsError, "LAMMPS"},
    {"error( cudaerrormemoryallocation): out of memory", kOom, kAnywhere, "Kokkos"},
    {"you ran out of memory on the gpu(s).", kOom, kAsError, "RELION"},
    {"cudacustomallocator out of memory", kOom, kAnywhere, "RELION"},
    {"(error-code 2)", kOom, kAnywhere, "RELION", "", Force::kStrong, "out of memory in "},
    {"cuda error #2 (cudaerrormemoryallocation): out of memory", kOom, kAnywhere, "GROMACS"},
    {"using memoryspace named \"cuda", kOom, kAnywhere, "Kokkos", "allocation of size {requested}", Force::kStrong,
     "failed"},
    {"using memoryspace named \"hip", kOom, kAnywhere, "Kokkos", "allocation of size {requested}", Force::kStrong,
     "failed"},
    {"using memoryspace named \"host\"", "host-alloc", kAnywhere, "Kokkos", "allocation of size {requested}",
     Force::kStrong, "failed"},
    {"fatal cuda error out of memory at ", kOom, kAsError, "Charm++"},
    {"bytes requested; status = 2(out of memory)", kOom, kAnywhere, "NVIDIA Fortran", "{requested:n} bytes requested"},
    {"bytes requested; not enough memory", "host-alloc", kAnywhere, "NVIDIA Fortran", "{requested:n} bytes requested"},
    {"caught amgx exception: insufficient memory", kOom, kAnywhere, "AmgX"},
    {"failed: 700(an illegal memory access was encountered)", "illegal-address", kAnywhere, "NVIDIA Fortran"},
    {"failed: 719(unspecified launch failure)", "launch-failure", kAnywhere, "NVIDIA Fortran"},
    {"error in cumemalloc: out of memory", kOom, kAsError, "OpenMP"},
    {"amgx error: insufficient memory", kOom, kAnywhere, "AmgX", "", Force::kWeak},
    {"failed (cuda out of memory) on sequence ", kOom, kAsError, "ESMFold"},
    {"failed (cuda out of memory) to predict batch ", kOom, kAsError, "ESMFold"},
    {"gpu allocpinnedmemory fail to allocate memory", "host-pinned", kAnywhere, "PhysX"},
    {"amrex::abort::", kOom, kAnywhere, "AMReX", "", Force::kStrong, ": out of memory"},
    {"out of gpu memory. free: ", kOom, kAsError, "AMReX", "free: {free:n} asked: {requested:n}"},
    {"simplecudamalloc_impl.hpp(", kOom, kAnywhere, "mallocMC", "", Force::kStrong, "out of memory"},
    {"cuda error !!!!! <out of memory> !!!!!", kOom, kAnywhere, "SPECFEM3D"},
    {"no compatible cuda device is available", "setup-no-gpu", kAsError, "OpenMM"},
    {"insufficient memory to run circuit ", "host-too-large", kAnywhere, "Qiskit Aer",
     "required memory: {requested}, max memory: {free}"},
    // pictures, video, rendering
    {"system is out of gpu memory", kOom, kAsError, "Blender"},
    {"system is out of gpu and shared host memory", kOom, kAsError, "Blender"},
    {"out of memory in cumem", kOom, kAsError, "Blender"},
    {"out of memory in cuarray", kOom, kAsError, "Blender"},
    {"optix_error_device_out_of_memory", kOom, kAsError, "OptiX"},
    {"openencodesessionex failed: out of memory", "nvenc-session", kAnywhere, "NVENC"},
    {"failed: out of memory (10)", kOom, kAnywhere, "NVENC", "", Force::kWeak},
    {"nv_enc_err_out_of_memory", kOom, kAnywhere, "NVENC"},
    {"nvencopenencodesessionex(", "nvenc-session", kAnywhere, "NVENC", "", Force::kStrong, "out_of_memory"},
    {"your gpu memory is full", kOom, kAsError, "DaVinci Resolve"},
    {"out-of-memory exception caught, purging memory", kOom, kAnywhere, "DaVinci Resolve", "", Force::kBenign},
    {"windows reports memory too low on gpu ", kOom, kAsError, "Sapphire",
     "low on gpu {device} to reliably allocate {requested:n}", Force::kBenign},
    {"out of memory in cuda queue", kOom, kAsError, "Blender"},
    {"out of memory in hip queue", kOom, kAsError, "Blender"},
    {"illegal address in cuda queue", "illegal-address", kAsError, "Blender"},
    {"illegal address in hip queue", "illegal-address", kAsError, "Blender"},
    {"out of memory in cu", kOom, kAsError, "Blender", "", Force::kStrong, ".cpp:"},
    {"out of memory in hip", kOom, kAsError, "Blender", "", Force::kStrong, ".cpp:"},
    {"illegal address in cu", "illegal-address", kAsError, "Blender", "", Force::kStrong, ".cpp:"},
    {"illegal address in hip", "illegal-address", kAsError, "Blender", "", Force::kStrong, ".cpp:"},
    {"failed to create cuda context (out of memory)", kOom, kAsError, "Blender"},
    {"cuda error 2 on device ", kOom, kAsError, "Octane", "on device {device}", Force::kStrong, "out of memory"},
    {"redshift cannot operate with less than ", kOom, kAsError, "Redshift"},
    {"[d3d error was 8007000e]", kOom, kAnywhere, "Unity"},
    {"could not allocate memory: system out of memory!", "host-alloc", kAsError, "Unity"},
    {"d3d device being lost", "directx-lost", kAnywhere, ""},
    {"gpu crashed or d3d device removed", "directx-lost", kAsError, ""},
    {"dxgi_error_device_removed", "directx-lost", kAnywhere, "", "", Force::kWeak},
    {"dxgi_error_device_hung", "directx-lost", kAnywhere, "", "", Force::kWeak},
    {"dxgi_error_device_reset", "directx-lost", kAnywhere, "", "", Force::kWeak},
    {"not enough gpu memory to match ", kOom, kAsError, "COLMAP"},
    {"not enough allocatable device memory", kOom, kAsError, "hashcat"},
    {"cumemalloc(): out of memory", kOom, kAsError, "hashcat"},
    {"out of video memory trying to allocate ", kOom, kAsError, "Unreal Engine"},
    {"gl_out_of_memory", kOom, kAsError, "OpenGL"},
    {"dxvkmemoryallocator: memory allocation failed", "vulkan-heaps", kAnywhere, "DXVK"},
    {"not enough gpu ram free (", kOom, kAnywhere, "VAPOR",
     "not enough gpu ram free ({free} free, need at least {requested}"},
    {"cuda error: out of memory: ", kOom, kAsError, "Darknet"},  // and what perror() has to say
    {"vkallocatememory failed", "vulkan-memory", kAsError, ""},
    {"vkresult: error_out_of_device_memory", "vulkan-memory", kAnywhere, ""},
    {"vkresult: error_device_lost", "vulkan-lost", kAnywhere, ""},
    {"vulkan device was lost.", "vulkan-lost", kAsError, ""},
    {"error when allocating memory or building dag", kOom, kAsError, "lolMiner"},
    // other makers' devices
    {"ur_result_error_out_of_device_memory", kOom, kAsError, "Level Zero"},
    {"ze_result_error_out_of_device_memory", kOom, kAsError, "Level Zero"},
    {"(ur_result_error_out_of_device_memory", kOom, kAnywhere, "Level Zero"},
    {"(pi_error_out_of_resources", "level-zero-resources", kAnywhere, "Level Zero"},
    {"(ur_result_error_out_of_resources", "level-zero-resources", kAnywhere, "Level Zero"},
    {"(el0004): failed to allocate memory", kOom, kAnywhere, "Ascend"},
    {"(ur_result_error_device_lost", "level-zero-lost", kAnywhere, "Level Zero"},
    {"el0004: ", kOom, kAnywhere, "Ascend", "", Force::kStrong, "allocate memory"},
    {"exceeded max size of memory object allocation", "buffer-limit", kAsError, "OpenVINO",
     "requested {requested}, but max alloc size supported by device is {limit}"},
    {"which is greater than the maximum allowed buffer size of ", "buffer-limit", kAnywhere, "MLX",
     "attempting to allocate {requested}buffer size of {limit}"},
    {"[malloc_or_wait] unable to allocate ", kOom, kAnywhere, "MLX", "unable to allocate {requested}"},
    {"kiogpucommandbuffercallbackerroroutofmemory", kOom, kAnywhere, "Metal"},
    {"kiogpucommandbuffercallbackerrorhang", "metal-hang", kAnywhere, "Metal"},
    {"kiogpucommandbuffercallbackerrortimeout", "metal-hang", kAnywhere, "Metal"},
    {"memory critical error by agent node-", "rocm-critical", kAnywhere, ""},
    {"hw exception by gpu node-", "rocm-hang", kAnywhere, "", "", Force::kStrong, "gpu hang"},
    {"page fault (src_id:", "rocm-fault", kAnywhere, "", "", Force::kStrong, "amdgpu"},
    {"gpu reset begin!", "rocm-reset", kAnywhere, "", "", Force::kWeak, "amdgpu"},
    {"timeout, signaled seq=", "rocm-timeout", kAnywhere, "", "", Force::kWeak, "ring "},
    {"timeout, but soft recovered", "rocm-recovered", kAnywhere, "", "", Force::kBenign, "ring "},
    {"not enough memory for command submission", "rocm-submission", kAnywhere, ""},
    {"failed to alloc memory for process. ret", "rocm-kfd", kAnywhere, ""},
    {"gpu hang: ecode ", "level-zero-hang", kAnywhere, "", "", Force::kWeak},
    {"context reset due to gpu hang", "level-zero-hang", kAnywhere, "", "", Force::kWeak},
    {"module:pt_devmem allocation failed for size::", kOom, kAnywhere, "Habana", "size::{requested:n}"},
    {"tdrv:dmem_alloc_internal failed to alloc device memory: ", kOom, kAnywhere, "Neuron",
     "device memory: {requested:n}"},
    {"tdrv:log_dev_mem failed to allocate ", kOom, kAnywhere, "Neuron", "failed to allocate {requested}", Force::kWeak},
    // what OpenCL programs print of a call: its name and its code
    {"clenqueuendrangekernel (-4)", "opencl-memory", kAnywhere, "", "", Force::kWeak},
    {"clenqueuendrangekernel (-5)", "opencl-resources", kAnywhere, "", "", Force::kWeak},
    {"clenqueuereadbuffer (-4)", "opencl-memory", kAnywhere, "", "", Force::kWeak},
    {"clenqueuereadbuffer (-5)", "opencl-resources", kAnywhere, "", "", Force::kWeak},
    {"clenqueuewritebuffer (-4)", "opencl-memory", kAnywhere, "", "", Force::kWeak},
    {"clenqueuewritebuffer (-5)", "opencl-resources", kAnywhere, "", "", Force::kWeak},
    {"clcreatebuffer (-4)", "opencl-memory", kAnywhere, "", "", Force::kWeak},
    {"clcreatebuffer (-61)", "opencl-size", kAnywhere, "", "", Force::kWeak},
    {"clcreatecontext (-6)", "opencl-host", kAnywhere, "", "", Force::kWeak},
    {"clfinish (-5)", "opencl-resources", kAnywhere, "", "", Force::kWeak},
    {"clwaitforevents (-5)", "opencl-resources", kAnywhere, "", "", Force::kWeak},
    // around a model
    {"outofmemoryerror in taskalignedassigner, using cpu", kOom, kAnywhere, "Ultralytics", "", Force::kBenign},
    {"cuda out of memory with batch=", kOom, kAnywhere, "Ultralytics", "", Force::kBenign, "retrying"},
    {"query ran out of gpu memory, attempting punt to cpu", kOom, kAnywhere, "HeavyDB", "", Force::kBenign},
    {"could not allocate pinned host memory of size: ", "host-pinned-pool", kAnywhere, "tensorflow",
     "memory of size: {requested:n}", Force::kBenign},
    {"some modules are dispatched on the cpu or the disk", "dispatched", kAsError, ""},
    {"had weights offloaded to the disk. please provide an ", "dispatched-disk", kAnywhere, ""},
    {"because they were offloaded to the ", "harmless-offload", kAnywhere, ""},
    {"not enough memory, use lower resolution (max approx.", kOom, kAsError, "Stable Diffusion web UI",
     "need: {requested} free, have:{free} free"},
    {"rayoutofmemoryerror: more than ", "host-ray", kAnywhere, ""},
    {"exit_type = node_out_of_memory", "host-ray", kAnywhere, "Ray"},
    {"exit type: node_out_of_memory", "host-ray", kAnywhere, "Ray"},
    {"objectstorefullerror: failed to put object", "host-ray-store", kAnywhere, "Ray", "", Force::kStrong,
     "because it is full"},
    {"ran out of memory, skipping batch", kOom, kAsError, "pytorch", "", Force::kBenign},
    {"no executable batch size found, reached zero", "batch-none", kAsError, ""},
    {"ran out of memory when regular vae ", kOom, kAsError, "ComfyUI", "", Force::kBenign, "retrying"},
    {"killed by the oom killer", "host-oom-killer", kAnywhere, "", "", Force::kStrong, "systemd"},
    {"failed with result 'oom-kill'", "host-cgroup", kAnywhere, "", "", Force::kWeak},
    {"container oom ", "host-cgroup", kAnywhere, "", "", Force::kStrong, "image="},
    {"out_of_memory 0:125", "host-cgroup", kAnywhere, "", "", Force::kWeak},
    {"out_of_me+ 0:125", "host-cgroup", kAnywhere, "", "", Force::kWeak},
    {"pbs: job killed: mem ", "host-cgroup", kAnywhere, ""},
    {"exceeded hard limit h_vmem", "host-cgroup", kAnywhere, ""},
    {"process completed with exit code 137", "host-killed", kAsError, "", "", Force::kWeak},
    {"zsh: killed ", "host-killed", kAsError, "", "", Force::kWeak},
    {"sending sigterm to process ", "host-oom-killer", kAnywhere, "", "", Force::kStrong, "earlyoom"},
    {"sending sigkill to process ", "host-oom-killer", kAnywhere, "", "", Force::kStrong, "earlyoom"},
    {"your notebook tried to allocate more memory than is available", "host-session", kAsError, ""},
    // the host's memory, as other languages and systems tell of it
    {"cannot allocate vector of size ", "host-alloc", kAsError, "R", "of size {requested}"},
    {"system.outofmemoryexception: ", "host-alloc", kAnywhere, ".NET"},
    {"memory allocation of ", "host-alloc", kAsError, "Rust", "allocation of {requested:n}", Force::kStrong,
     " bytes failed"},
    {"fatal error: runtime: out of memory", "host-alloc", kAsError, "Go"},
    {"runtime: out of memory: cannot allocate ", "host-alloc", kAsError, "Go", "cannot allocate {requested:n}"},
    {"error: outofmemoryerror()", "host-alloc", kAsError, "Julia"},
    {"error: loaderror: outofmemoryerror()", "host-alloc", kAsError, "Julia"},
    {"java.lang.outofmemoryerror: physical memory usage is too high", "host-javacpp", kAnywhere, "JavaCPP"},
    {"java.lang.outofmemoryerror: cannot allocate new ", "host-javacpp", kAnywhere, "JavaCPP"},
    {"exceeded 95% memory budget. restarting", "host-dask", kAnywhere, "Dask"},
    {"failed to extend /dev/shm/nccl-", "host-shm-nccl", kAnywhere, "nccl"},
    {"error while creating shared memory segment /dev/shm/nccl-", "host-shm-nccl", kAnywhere, "nccl"},
    {"the node was low on resource: memory", "host-evicted", kAnywhere, ""},
    {"exceeded job memory limit", "host-cgroup", kAsError, "", "", Force::kStrong, "slurm"},
    {"exceeded step memory limit", "host-cgroup", kAsError, "", "", Force::kStrong, "slurm"},
    {"exceeded memory limit (", "host-cgroup", kAnywhere, "", "", Force::kStrong, "being killed"},
    {"srun: error: ", "host-cgroup", kAsError, "", "", Force::kWeak, ": out of memory"},
    {"killed signal terminated program ", "host-killed", kAsError, "", "", Force::kWeak},
    {"died due to signal 9 (kill signal)", "host-killed", kAnywhere, "", "", Force::kWeak},
    {"fork: cannot allocate memory", "host-refused", kAsError, ""},
    {"might be caused by insufficient shared memory (shm)", "host-bus", kAnywhere, ""},
    // the device and its driver
    {"might have already set an error? error 2: out of memory", "setup-count-memory", kAnywhere, ""},
    {"unexpected error from cudagetdevicecount()", "setup-unknown", kAsError, "", "", Force::kWeak},
    {"gpu has fallen off the bus", "gpu-lost", kAsError, "", "", Force::kWeak},
    {"gpu is lost. reboot the system to recover", "gpu-lost", kAsError, "", "", Force::kWeak},
    {"failed to allocate nvkms video memory for gem object", "nvrm-sysmem", kAnywhere, "", "", Force::kBenign,
     "fall back to sysmem"},
    {"insufficient nvidia.com/gpu", "setup-scheduling", kAnywhere, "", "", Force::kWeak},
    {"insufficient amd.com/gpu", "setup-scheduling", kAnywhere, "", "", Force::kWeak},
    {"insufficient gpu.intel.com/", "setup-scheduling", kAnywhere, "", "", Force::kWeak},
    {"could not select device driver \"\" with capabilities: [[gpu", "setup-container", kAnywhere, ""},
    {"nvidia-container-cli: initialization error", "setup-container", kAnywhere, ""},
    {"nvidia-container-cli: requirement error", "setup-old-driver", kAnywhere, "", "", Force::kStrong, "cuda"},
    {"unknown or invalid runtime name: nvidia", "setup-container", kAnywhere, ""},
    {"unknown runtime specified nvidia", "setup-container", kAnywhere, ""},
    {"unresolvable cdi devices nvidia.com/", "setup-container", kAnywhere, ""},
    {"[nv_err_no_memory]", "nvrm-memory", kAnywhere, "", "", Force::kWeak, "nvrm"},
    {"unable to determine the device handle for gpu", "gpu-lost", kAsError, "", "", Force::kWeak},
    {"watchdog caught collective operation timeout", "nccl-timeout", kAnywhere, "", "", Force::kWeak},
    {"watchdog got stuck for ", "nccl-timeout", kAnywhere, "", "", Force::kWeak},
    {"some nccl operations have failed or timed out", "nccl-timeout", kAsError, "", "", Force::kWeak},
});

struct Printed {
  ByteInterval bytes;
  std::size_t length = 0;
};

// A size with its unit, or, of "{name:n}", a plain number.
std::optional<Printed> number_of_form(std::string_view words, std::size_t at, bool is_plain) {
  if (!is_plain) {
    const auto size = parse_printed_size(words, at, SizeStyle::kTorch);
    return size ? std::optional(Printed{size->bytes, size->length}) : std::nullopt;
  }
  const auto number = number_at(words, at);
  if (!number) return std::nullopt;
  return Printed{ByteInterval::exactly(*number),
                 std::min(words.find_first_not_of("0123456789", at), words.size()) - at};
}

// Fills in what the form names; false: its first number is not there.
bool read_form(std::string_view form, std::string_view words, ErrorMessage& message) {
  constexpr std::size_t kReach = 700;
  std::size_t at = 0;
  bool first = true, has_first = form.empty();
  for (std::size_t open = form.find('{'); open != std::string_view::npos; open = form.find('{')) {
    const std::string_view label = form.substr(0, open);
    std::string_view name = form.substr(open + 1, form.find('}') - open - 1);
    form.remove_prefix(form.find('}') + 1);
    const bool is_plain = name.ends_with(":n");
    if (is_plain) name.remove_suffix(2);
    const std::size_t found = words.find(label, at);
    const std::size_t begin = found + label.size();
    const bool near = found != std::string_view::npos && found < at + kReach && begin < words.size();
    const auto number = near ? number_of_form(words, begin, is_plain || name == "device") : std::nullopt;
    if (number) {
      at = begin + number->length;
      if (name == "device")
        message.device = static_cast<std::uint16_t>(std::min<std::uint64_t>(number->bytes.min, 4096));
      else if (name == "tokens")
        message.words["status"] = std::to_string(number->bytes.min);
      else
        message.numbers[std::string(name)] = number->bytes;
    }
    has_first |= first && number.has_value();
    first = false;
  }
  return has_first;
}

// A name in a list of constants: "OPTIX_ERROR_DEVICE_OUT_OF_MEMORY = 7807," or a label of a switch.
bool is_declared(const KnownWords& known, const ErrorPassage& passage) {
  constexpr std::size_t kShortestName = 16;
  if (known.text.size() < kShortestName || known.text.find(' ') != std::string_view::npos) return false;
  std::string_view rest = std::string_view(passage.lower).substr(0, passage.first_line_length);
  rest.remove_prefix(std::min(known.text.size(), rest.size()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest.starts_with('=') || (passage.before.empty() && (rest.empty() || rest == "," || rest.starts_with(", ")));
}

// Behind a mark of code that is still open: "`vkAllocateMemory failed`" of a page. One between letters joins names (of Mathematica's contexts).
bool is_in_code_marks(std::string_view before) {
  std::size_t marks = 0;
  for (std::size_t at = before.find('`'); at != std::string_view::npos; at = before.find('`', at + 1)) {
    const bool joins = at > 0 && is_letter(before[at - 1]) && at + 1 < before.size() && is_letter(before[at + 1]);
    marks += joins ? 0 : 1;
  }
  return marks % 2 != 0;
}

}  // namespace

std::span<const KnownWords> program_words() { return kPrograms; }

std::optional<ErrorMessage> read_program_message(const KnownWords& known, const ErrorPassage& passage) {
  if (!known.anywhere && !stands_as_message(passage) && !has_error_name(passage.before)) return std::nullopt;
  if (is_declared(known, passage) || is_in_code_marks(passage.before)) return std::nullopt;
  std::string around = lower_case(passage.before);
  const std::string_view line =
      std::string_view(passage.lower).substr(0, std::max<std::size_t>(passage.first_line_length, 300));
  around += (around.empty() || around.ends_with(' ') ? "" : " ") + std::string(line);
  if (!known.needs.empty() && around.find(known.needs) == std::string::npos) return std::nullopt;
  ErrorMessage message = said(known.kind, known.program, whole_sentence(passage));
  const bool has_numbers =
      read_form(known.form,
                around.size() > line.size() + 1 ? around + passage.lower.substr(line.size()) : passage.lower, message);
  if (known.anywhere && !has_numbers) return std::nullopt;
  message.weak = known.force != Force::kStrong;
  if (known.force == Force::kBenign) message.words["benign"] = "yes";
  return message;
}

}  // namespace faultline
