/* The device of a dry run: a GPU that is not there, for a program that allocates on it.
 *
 * libfaultline_dryrun.so holds two things: the model of PyTorch's caching allocator (or of TensorFlow's and JAX's) on a device of a given size, and the trace file that all
 * of it is written to. The dry run (Python, through ctypes) tells every birth and death of a storage; the library answers with an address or
 * with "out of memory" exactly where PyTorch would, and the trace is one that explain, replay and plan read like any other.
 *
 *   - Nothing here ends the program. Trouble with the file is remembered (faultline_error) and the model goes on without recording; a handle
 *     that cannot go on at all, and every handle in a forked child, answers "served" and does nothing.
 *   - Any thread may call with any handle: one lock per handle. Calls are short and never call back, so ctypes.PyDLL is the cheap way.
 *   - Texts are bytes (UTF-8) and are copied; ids are dense, interned, and 0 always means none. An id the handle does not know counts as 0.
 *   - One handle is one program with its devices, numbered from 0, each with an allocator of its own. A device that there is not counts as 0.
 */
#ifndef FAULTLINE_DRYRUN_H_
#define FAULTLINE_DRYRUN_H_

#include <stdint.h>

#if defined(__GNUC__)
#define FAULTLINE_API __attribute__((visibility("default")))
#else
#define FAULTLINE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct faultline_dryrun faultline_dryrun;

enum { FAULTLINE_SERVED = 0, FAULTLINE_OUT_OF_MEMORY = 1 };
enum { FAULTLINE_HEAP_DRIVER = 0, FAULTLINE_HEAP_TORCH = 1, FAULTLINE_HEAP_PINNED = 2 }; /* private pools follow */

/* --- life --------------------------------------------------------------------------------------------------------------------------- */

/* Makes the trace file (which must not exist) and an empty device. Segments may take capacity_bytes - context_bytes; capacity_bytes 0 is a
 * device without end. alloc_conf is PYTORCH_CUDA_ALLOC_CONF as written, torch_version is torch.__version__ (both may be NULL or ""; the newest
 * known release then). Returns NULL with one sentence in error_text (always terminated, cut to error_bytes) when something does not hold. */
FAULTLINE_API faultline_dryrun* faultline_open(const char* trace_path, const char* device_name, uint64_t capacity_bytes,
                                               uint64_t context_bytes, const char* alloc_conf,
                                               const char* torch_version, char* error_text, uint64_t error_bytes);

/* The same with the pool of TensorFlow or JAX in the place of PyTorch's allocator: framework is "tensorflow" or "jax", settings are what the program's environment or the program itself
 * sets, by the names that replay --set takes ("XLA_PYTHON_CLIENT_PREALLOCATE=false,XLA_CLIENT_MEM_FRACTION=0.5"; may be NULL or ""). With a context_bytes of 0 TensorFlow's own reserve is counted. It is one device; faultline_alloc, _free, _set_overcommit, the
 * names, the marks and the numbers are as for PyTorch's, and what a pool does not have (streams, private pools, pinned memory, snapshots) is passed over. */
FAULTLINE_API faultline_dryrun* faultline_open_pool(const char* trace_path, const char* device_name,
                                                    uint64_t capacity_bytes, uint64_t context_bytes,
                                                    const char* framework, int32_t compute_major, const char* settings,
                                                    char* error_text, uint64_t error_bytes);

/* Where the last faultline_open or faultline_open_pool of this thread could not make the trace's file: why, as a clause. Returns its length, 0 where it was something else or nothing. */
FAULTLINE_API uint64_t faultline_no_trace(char* error_text, uint64_t error_bytes);

/* A further device, with the settings of the first; returns its number. */
FAULTLINE_API uint32_t faultline_add_device(faultline_dryrun* handle, const char* device_name, uint64_t capacity_bytes,
                                            uint64_t context_bytes);

/* Writes the end state and finishes the file; the handle is gone. A process that ends without it leaves a readable trace without end state. */
FAULTLINE_API void faultline_close(faultline_dryrun* handle);

/* The first thing that went wrong with recording, as one sentence. Returns its length, 0 when nothing did. */
FAULTLINE_API uint64_t faultline_error(faultline_dryrun* handle, char* error_text, uint64_t error_bytes);

/* In a forked child: lets go of the parent's file. From then on every call is a no-op that answers "served" with allocation 0 and address 0.
 * fork() itself already does this to every open handle; the call is for children made in other ways. */
FAULTLINE_API void faultline_after_fork_child(faultline_dryrun* handle);

/* --- names, each written once ------------------------------------------------------------------------------------------------------- */

FAULTLINE_API uint32_t faultline_string(faultline_dryrun* handle, const char* text, uint64_t text_bytes);
/* function and file are strings; line 0 is unknown. */
FAULTLINE_API uint32_t faultline_frame(faultline_dryrun* handle, uint32_t function, uint32_t file, uint32_t line);
/* The stack made by a call from the stack `caller` (0: the outermost) into `frame`. */
FAULTLINE_API uint32_t faultline_stack(faultline_dryrun* handle, uint32_t caller, uint32_t frame);
/* dtype, op, name and operands are strings (see struct Tensor in trace/tables.h); dims has rank entries. */
FAULTLINE_API uint32_t faultline_tensor(faultline_dryrun* handle, uint32_t dtype, uint32_t op, uint32_t name,
                                        uint32_t operands, uint32_t rank, const int64_t* dims);
/* stream_handle as the program knows it (cudaStream_t as a number); 0 is the device's default stream, which is also meant by an id of another device. */
FAULTLINE_API uint32_t faultline_stream(faultline_dryrun* handle, uint32_t device, uint64_t stream_handle);

/* --- device memory through PyTorch's allocator --------------------------------------------------------------------------------------- */

/* The heap of a private pool (a CUDA graph's, a MemPool's), made on first use; (0, 0) is the default pool. */
FAULTLINE_API uint32_t faultline_pool(faultline_dryrun* handle, uint32_t device, uint64_t pool_major,
                                      uint64_t pool_minor);
/* Nobody holds that pool any more: what it has free goes with the cache from now on, and at once where empty_stack is not negative (the stack of that). */
FAULTLINE_API void faultline_release_pool(faultline_dryrun* handle, uint32_t device, uint64_t pool_major,
                                          uint64_t pool_minor, int64_t empty_stack);

/* A request of size_bytes > 0; of a pool's device FAULTLINE_HEAP_DRIVER is memory beside the pool (*address stays 0). FAULTLINE_HEAP_TORCH, or a heap of another device, is the device's default pool. FAULTLINE_SERVED: *allocation and *address are set. FAULTLINE_OUT_OF_MEMORY: both are 0, the failure is in the
 * trace with the device's free bytes, and PyTorch's own attempts (garbage collection, flush and retry) have happened. Either may be NULL. */
FAULTLINE_API int32_t faultline_alloc(faultline_dryrun* handle, uint32_t device, uint64_t size_bytes, uint32_t stream,
                                      uint32_t heap, uint32_t stack, uint32_t tensor, uint32_t* allocation,
                                      uint64_t* address);
/* The size of a request is an estimate between two numbers; `what` (a string) says what is estimated. Said of an allocation right after it was served for what is likely, or, with
 * allocation 0, of a request that is likely not made, and may be made on that stream and returned at once. A plan is then an interval: the same requests are replayed with each at its
 * least (0: not made) and with each at its most. Of requests that depend on each other the second number may be the smaller one: one takes what the other does not. */
FAULTLINE_API void faultline_estimate(faultline_dryrun* handle, uint32_t device, uint32_t stream, uint32_t allocation,
                                      uint64_t least_bytes, uint64_t most_bytes, uint32_t what, uint32_t stack);
/* An allocation that is not live is passed over. */
FAULTLINE_API void faultline_free(faultline_dryrun* handle, uint32_t allocation, uint32_t stack);

/* torch.cuda.empty_cache(). */
FAULTLINE_API void faultline_empty_cache(faultline_dryrun* handle, uint32_t device, uint32_t stack);
/* The program's own limit on reserved bytes (set_per_process_memory_fraction); 0 lifts it. It becomes the device's allowed_bytes. */
FAULTLINE_API void faultline_set_limit(faultline_dryrun* handle, uint32_t device, uint64_t limit_bytes);

/* With overcommit on, a request that would fail is served all the same: the device (or the program's own limit) grows by just what is missing
 * after PyTorch's own attempts. The first such request is in the trace as a failure right before it is served. Which device
 * or limit would have been enough is for a replay to tell. Only a request beyond any device, or beyond the addresses of an
 * expandable segment, is still refused. */
FAULTLINE_API void faultline_set_overcommit(faultline_dryrun* handle, int32_t on);

/* Memory that a library takes from the driver beside PyTorch's allocator, and keeps (NCCL). Its sum is the trace's property "dry-run.outside_bytes", of
 * another device than the first ".N" behind it. FAULTLINE_OUT_OF_MEMORY: there is not so much, and the failure is in the trace; with overcommit the
 * device grows. */
FAULTLINE_API int32_t faultline_take_outside(faultline_dryrun* handle, uint32_t device, uint64_t size_bytes,
                                             uint32_t stack);

/* Page-locked host memory. pin returns the allocation. */
FAULTLINE_API uint32_t faultline_pin(faultline_dryrun* handle, uint64_t size_bytes, uint32_t stack, uint32_t tensor);
FAULTLINE_API void faultline_unpin(faultline_dryrun* handle, uint32_t allocation, uint32_t stack);

/* --- marks ---------------------------------------------------------------------------------------------------------------------------- */

/* An operation begins and ends; name is a string. With failed, `text` is the error's own words, and the tensor notes since the begin are the
 * operands. */
FAULTLINE_API void faultline_op_begin(faultline_dryrun* handle, uint32_t name, uint32_t stack);
FAULTLINE_API void faultline_op_end(faultline_dryrun* handle, uint32_t text, int32_t failed, uint32_t stack);
/* What is known of a tensor; allocation 0 where it has none of its own. */
FAULTLINE_API void faultline_tensor_note(faultline_dryrun* handle, uint32_t allocation, uint32_t tensor,
                                         uint32_t stack);
FAULTLINE_API void faultline_step_mark(faultline_dryrun* handle, uint64_t number, uint32_t name);

/* A property of the trace, and a named counter of what was lost or odd (counts add up). */
FAULTLINE_API void faultline_property(faultline_dryrun* handle, const char* key, const char* value);
FAULTLINE_API void faultline_lost(faultline_dryrun* handle, const char* name, uint64_t count);

/* --- what torch.cuda tells the program ------------------------------------------------------------------------------------------------ */

/* Block sizes, as torch.cuda.memory_stats() counts them; counts are since faultline_open unless they say current. */
typedef struct faultline_stats {
  uint64_t allocated_bytes;      /* allocated_bytes.all.current */
  uint64_t peak_allocated_bytes; /* since faultline_reset_peaks, like every peak here */
  uint64_t reserved_bytes;
  uint64_t peak_reserved_bytes;
  uint64_t requested_bytes; /* as asked for, before rounding */
  uint64_t peak_requested_bytes;
  uint64_t inactive_split_bytes; /* free, beside live blocks of the same segment */
  uint64_t current_allocations;
  uint64_t allocations;
  uint64_t current_segments;
  uint64_t segments_taken;    /* num_device_alloc */
  uint64_t segments_returned; /* num_device_free */
  uint64_t alloc_retries;     /* num_alloc_retries */
  uint64_t out_of_memories;   /* num_ooms */
  uint64_t device_free_bytes; /* torch.cuda.mem_get_info()[0]; of an endless device the largest number */
  uint64_t limit_bytes;       /* of a pool of TensorFlow or JAX, whose inactive_split_bytes is its largest free chunk */
} faultline_stats;

FAULTLINE_API void faultline_get_stats(faultline_dryrun* handle, uint32_t device, faultline_stats* stats);
FAULTLINE_API void faultline_reset_peaks(faultline_dryrun* handle, uint32_t device);

/* torch.cuda.memory_snapshot(), of all devices: faultline_snapshot notes the state and says how many segments and blocks it has (either may be NULL); the two
 * others copy it out, at most `room` entries, and return how many. Segments are in address order on each device, as are
 * the blocks of each. */
typedef struct faultline_segment {
  uint64_t address;
  uint64_t size_bytes;
  uint64_t allocated_bytes;
  uint64_t requested_bytes;
  uint64_t stream_handle;
  uint64_t pool_major;
  uint64_t pool_minor;
  uint32_t first_block; /* into the blocks */
  uint32_t block_count;
  int32_t is_small;
  int32_t is_expandable;
  uint32_t device;
} faultline_segment;

typedef struct faultline_block {
  uint64_t address;
  uint64_t size_bytes;
  uint64_t requested_bytes;
  uint32_t allocation; /* 0: free */
  uint32_t stack;
} faultline_block;

FAULTLINE_API void faultline_snapshot(faultline_dryrun* handle, uint64_t* segment_count, uint64_t* block_count);
FAULTLINE_API uint64_t faultline_snapshot_segments(faultline_dryrun* handle, faultline_segment* segments,
                                                   uint64_t room);
FAULTLINE_API uint64_t faultline_snapshot_blocks(faultline_dryrun* handle, faultline_block* blocks, uint64_t room);

/* --- answers for PyTorch's own tables ---------------------------------------------------------------------------------------------------- */

/* Functions for the places where PyTorch's C++ asks about GPUs (python/faultline/plan/torch/cuda/no_gpu.py puts them there): they may be called from any thread
 * at any time, when Python is gone too. The first argument is the object that was asked, and is not looked at. */
FAULTLINE_API uint64_t faultline_answer_0(void);
FAULTLINE_API uint64_t faultline_answer_1(void);

/* How many GPUs the program finds, and which of them is the calling thread's current one. */
FAULTLINE_API void faultline_set_device_count(int32_t count);
FAULTLINE_API int32_t faultline_device_count(const void* asked);
FAULTLINE_API int32_t faultline_current_device(void);
FAULTLINE_API void faultline_make_current(int32_t index);

/* The device guard of these GPUs. A c10::Device is two bytes, its type (1: CUDA) and its index; a c10::Stream is a Device and a number, in two
 * registers. As a type, a Device, and stream 0 of it, faultline_guard_current is right at once. */
typedef struct faultline_guard_answer {
  uint64_t device;
  uint64_t stream;
} faultline_guard_answer;

FAULTLINE_API faultline_guard_answer faultline_guard_current(const void* asked);
FAULTLINE_API faultline_guard_answer
faultline_guard_exchange(const void* asked, uint16_t device); /* makes it current, returns the former */
FAULTLINE_API faultline_guard_answer faultline_guard_stream(const void* asked,
                                                            uint16_t device); /* its default stream */

#ifdef __cplusplus
}
#endif

#endif /* FAULTLINE_DRYRUN_H_ */
