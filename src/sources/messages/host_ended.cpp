// The memory of the host ran out, as the system, containers, clusters and parent processes tell of it that ended the program.
#include "sources/messages/extractors.h"
#include "sources/messages/kinds.h"
#include "sources/messages/tables.h"

namespace faultline {
namespace {

using enum Confidence;
using enum Force;
using enum Stands;

const KindRow kHostEndedKinds[] = {
    {.name = "host-cgroup",
     .is_of_kernel_log = true,
     .rule = kHostMemory,
     .meaning = "The system killed the process because its container or job (cgroup) had used up its host memory "
                "(RAM); GPU memory is not the problem",
     .tries = {"Raise the limit: docker run --memory, resources.limits.memory in Kubernetes, --mem in Slurm.",
               of_torch("Or hold less RAM: fewer DataLoader workers, memory-mapped data, load the model with "
                        "low_cpu_mem_usage=True."),
               "Files in /dev/shm count against the same limit."},
     .words = {{"memory cgroup out of memory", kAnywhereOrCode},
               {.text = "oomkilled", .stands = kAsErrorOrCode, .accepts = is_state_of_container},
               {"oom-kill event", kAnywhereOrCode},
               {"oom_kill event", kAnywhereOrCode},
               {"term_memlimit: job killed", kAnywhereOrCode},
               {"failed with result 'oom-kill'", kAnywhere, kWeak},
               {"container oom ", kAnywhere, kStrong, "", "image="},
               {"out_of_memory 0:125", kAnywhere, kWeak},
               {"out_of_me+ 0:125", kAnywhere, kWeak},
               {"pbs: job killed: mem ", kAnywhere},
               {"exceeded hard limit h_vmem", kAnywhere},
               {"exceeded job memory limit", kAsError, kStrong, "", "slurm"},
               {"exceeded step memory limit", kAsError, kStrong, "", "slurm"},
               {"exceeded memory limit (", kAnywhere, kStrong, "", "being killed"},
               {"srun: error: ", kAsError, kWeak, "", ": out of memory"}}},
    {.name = "host-killed",
     .id = MessageKind::kHostKilled,
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "The process was killed from outside (SIGKILL): most often the system ran out of host memory (RAM). A "
                "full GPU never kills a process: it raises an error",
     .tries = {"See whether it was memory: dmesg -T | grep -i 'killed process' on the host; its last lines name the "
               "process and its size. Without such a line a scheduler, a time limit or a person killed it.",
               kWatchHost, kFewerWorkers,
               of_torch_since_2_1(
                   "Loading a checkpoint: torch.load(..., mmap=True), or low_cpu_mem_usage=True; on one machine every "
                   "rank loads it.")},
     .words = {{"signal 9 (sigkill) received by pid", kAnywhereOrCode, kWeak},
               {.text = "killed", .stands = kAsAccepted, .force = kWeak, .accepts = is_killed_line},
               {"failed (exitcode: -9)", kAnywhereOrCode, kWeak},
               {"exits with return code = -9", kAnywhereOrCode, kWeak},
               {.text = "exited with code 137", .stands = kAnywhereOrCode, .force = kWeak, .accepts = ends_its_line},
               {.text = "exit code: 137", .stands = kAnywhereOrCode, .force = kWeak, .accepts = ends_its_line},
               {"llama runner process has terminated: signal: killed", kAnywhere, kWeak, "", "", "ollama"},
               {"process completed with exit code 137", kAsError, kWeak},
               {"zsh: killed ", kAsError, kWeak},
               {"killed signal terminated program ", kAsError, kWeak},
               {"died due to signal 9 (kill signal)", kAnywhere, kWeak}}},
    {.name = "host-oom-killer",
     .is_of_kernel_log = true,
     .rule = kHostMemory,
     .meaning = "The system ran out of host memory (RAM) and killed a process to free some; the line names it. GPU "
                "memory is not the problem",
     .tries = {kWatchHost, kFewerWorkers,
               "Or hold less RAM while loading: low_cpu_mem_usage=True, safetensors, memory-mapped data; several ranks "
               "of one machine each load their own copy."},
     .words = {{"out of memory: killed process", kAnywhereOrCode},
               {"out of memory: kill process", kAnywhereOrCode},
               {"killed by the oom killer", kAnywhere, kStrong, "", "systemd"},
               {"sending sigterm to process ", kAnywhere, kStrong, "", "earlyoom"},
               {"sending sigkill to process ", kAnywhere, kStrong, "", "earlyoom"}}},
    {.name = "host-oom-invoked",
     .is_of_kernel_log = true,
     .rule = kHostMemory,
     .meaning = "Host memory (RAM) ran out, of the machine or of a container, and the kernel looked for a process to "
                "kill; GPU memory is not the problem",
     .tries = {"The lines below it in the kernel log (\"Killed process …\") name the process and its size.", kWatchHost,
               kFewerWorkers},
     .words = {{"invoked oom-killer:", kAnywhereOrCode, kWeak}}},
    {.name = "host-ray",
     .rule = kHostMemory,
     .meaning = "Ray killed the worker because host memory (RAM) was nearly full; GPU memory is not the problem",
     .tries =
         {"Run fewer tasks at once on a machine: more CPUs per task (num_cpus), or say what a task needs (memory=…).",
          "ray logs raylet.out and the list of the largest processes below the message show who held the memory.",
          "RAY_memory_usage_threshold moves the limit (0.95 unless set); beyond it the system kills processes itself."},
     .words = {{"task was killed due to the node running low on memory", kAsErrorOrCode},
               {"killed due to memory pressure (oom)", kAnywhereOrCode},
               {"rayoutofmemoryerror: more than ", kAnywhere},
               {"exit_type = node_out_of_memory", kAnywhere, kStrong, "", "", "Ray"},
               {"exit type: node_out_of_memory", kAnywhere, kStrong, "", "", "Ray"}}},
    {.name = "host-paging",
     .rule = kHostMemory,
     .meaning = "Windows could not reserve the memory: RAM and the paging file were both used up (host memory, not GPU "
                "memory)",
     .tries =
         {"Enlarge the paging file (System, Advanced, Performance, Virtual memory), or let Windows manage its size.",
          of_torch("Each DataLoader worker on Windows loads PyTorch's libraries anew, several GB of reserved memory "
                   "each: fewer num_workers."),
          "Close what else holds memory: Task Manager, Details, Commit size."},
     .words = {{"the paging file is too small for this operation", kAsErrorOrCode}}},
    {.name = "host-session",
     .rule = kHostMemory,
     .meaning = "The notebook's machine ran out of host memory (RAM), not of GPU memory; the session ended and all "
                "variables are gone",
     .tries = {"Choose a runtime with more RAM (Runtime, Change runtime type, High-RAM).",
               "Load data in pieces or memory-mapped, and delete what is no longer needed (del x) before loading more.",
               "Load models straight to the GPU: device_map=\"cuda\", low_cpu_mem_usage=True, or a half-precision "
               "checkpoint."},
     .words = {{"your session crashed after using all available ram", kAnywhereOrCode},
               {"your notebook tried to allocate more memory than is available"}}},
    {.name = "host-worker",
     .id = MessageKind::kHostWorker,
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "A DataLoader worker was killed from outside: most often host memory (RAM) ran out; GPU memory is not "
                "the problem",
     .tries = {kFewerWorkers, "num_workers=0 shows the dataset's own error, if there is one.",
               "dmesg -T | grep -i 'killed process' shows whether the system killed it for memory.", kWatchHost},
     .words = {{.text = "dataloader worker (pid",
                .stands = kAsErrorOrCode,
                .force = kWeak,
                .accepts = tells_of_worker_end,
                .reads = read_worker_end}}},
    {.name = "host-bus",
     .id = MessageKind::kHostBus,
     .rule = kHostMemory,
     .confidence = kLikely,
     .meaning = "A DataLoader worker touched host memory with nothing behind it (a bus error): most often shared "
                "memory (/dev/shm) is full, as the message itself supposes; a memory-mapped file that was cut short, "
                "or a failing disk, does the same. GPU memory is not the problem",
     .tries =
         {"See how full shared memory is while it runs: df -h /dev/shm. Where it runs in a container, --shm-size=8g "
          "or "
          "--ipc=host gives it more (Docker gives 64 MiB unless set; in Kubernetes an emptyDir with medium: Memory).",
          "num_workers=0 needs none: if the error stays, or a line of the dataset fails, it was a file; look at those "
          "read with numpy.memmap, mmap or safetensors, and whether something writes or cuts them meanwhile.",
          "Fewer num_workers or a smaller prefetch_factor and batch put less into it."},
     .words = {{"workers are out of shared memory", kAnywhereOrCode},
               {"might be caused by insufficient shared memory (shm)", kAnywhere}}},
    {.name = "host-shm",
     .rule = kHostMemory,
     .meaning = "DataLoader workers pass tensors through shared memory (/dev/shm), and could not allocate any: it is "
                "full, or at its limit; GPU memory is not the problem",
     .tries = {"Where it runs in a container, give it more: docker run --shm-size=8g, or --ipc=host; in Kubernetes an "
               "emptyDir with medium: Memory at /dev/shm. Docker gives 64 MiB unless set.",
               "Fewer num_workers or a smaller prefetch_factor and batch put less into it; num_workers=0 needs none.",
               "See how full it is: df -h /dev/shm"},
     .words = {{.text = "unable to write to file </torch_", .stands = kAsErrorOrCode, .reads = read_first_size},
               {.text = "unable to open shared memory object </torch_",
                .stands = kAsErrorOrCode,
                .reads = read_first_size},
               {.text = "unable to allocate shared memory", .stands = kAsErrorOrCode, .reads = read_first_size}}},
    {.name = "host-javacpp",
     .rule = kHostMemory,
     .meaning = "JavaCPP reached its own limit on host memory (RAM), which can be below what the machine has; GPU "
                "memory is not the problem",
     .tries = {"-Dorg.bytedeco.javacpp.maxphysicalbytes=32G (of the process) and -Dorg.bytedeco.javacpp.maxbytes=16G "
               "(beside Java's heap) raise it; what stays with -Xmx is the heap's.",
               "Or hold less: a smaller batch, and close() or workspaces for what is no longer needed."},
     .words = {{"java.lang.outofmemoryerror: physical memory usage is too high", kAnywhere, kStrong, "", "", "JavaCPP"},
               {"java.lang.outofmemoryerror: cannot allocate new ", kAnywhere, kStrong, "", "", "JavaCPP"}}},
    {.name = "host-dask",
     .rule = kHostMemory,
     .meaning =
         "A Dask worker exceeded its share of host memory (RAM) and was restarted; GPU memory is not the problem",
     .tries = {"Fewer workers on a machine, or a larger memory_limit for each; smaller partitions.",
               "The dashboard (port 8787) shows what each worker holds; distributed.worker.memory in its settings "
               "moves the limits."},
     .words = {{"exceeded 95% memory budget. restarting", kAnywhere, kStrong, "", "", "Dask"}}},
    {.name = "host-shm-nccl",
     .rule = kHostMemory,
     .meaning = "NCCL exchanges data between the processes of one machine through shared memory (/dev/shm), and could "
                "not get any: it is full, or at its limit; GPU memory is not the problem",
     .tries = {"Where it runs in a container, give it more: docker run --shm-size=8g, or --ipc=host; in Kubernetes an "
               "emptyDir with medium: Memory at /dev/shm. Docker gives 64 MiB unless set.",
               "See how full it is: df -h /dev/shm; files nccl-* of runs that were killed can be removed.",
               "NCCL_SHM_DISABLE=1 works without it, slower."},
     .words = {{"failed to extend /dev/shm/nccl-", kAnywhere, kStrong, "", "", "nccl"},
               {"error while creating shared memory segment /dev/shm/nccl-", kAnywhere, kStrong, "", "", "nccl"}}},
    {.name = "host-evicted",
     .rule = kHostMemory,
     .meaning =
         "Kubernetes stopped the pod because its machine was short of host memory (RAM); GPU memory is not the problem",
     .tries = {"Request what it needs (resources.requests.memory), so that it is put on a machine that has it; a pod "
               "that takes more than it requests is stopped first.",
               kWatchHost},
     .words = {{"the node was low on resource: memory", kAnywhere}}},
    {.name = "host-ray-store",
     .rule = kHostMemory,
     .meaning = "Ray's object store, which is host memory (/dev/shm), is full; GPU memory is not involved",
     .tries = {"Let go of what is no longer needed (del reference), or put large objects once and pass the reference.",
               "ray memory shows who holds it; ray.init(object_store_memory=…) makes it larger, in a container also "
               "--shm-size."},
     .words = {{"objectstorefullerror: failed to put object", kAnywhere, kStrong, "", "because it is full", "Ray"}}},
};

}  // namespace

std::span<const KindRow> host_ended_kinds() { return kHostEndedKinds; }

}  // namespace faultline
