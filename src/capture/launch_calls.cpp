// Launches: which kernel, how large, on which stream, and which of its parameters are pointers into memory the program has taken.
#include <algorithm>
#include <cstring>
#include <span>

#include "capture/recorder.h"

namespace faultline::capture {
namespace {

// The pointer-sized words of the parameters that point into known memory.
class Arguments {
 public:
  Arguments(ThreadRecorder& thread, const Kernel& kernel, void** parameters, void** extra)
      : pages_(thread.recorder().live().pages()), found_(thread.room_for_arguments()) {
    if (parameters != nullptr) {
      for (std::size_t at = 0; at < kernel.parameters.size(); ++at) {
        const KernelParameter& parameter = kernel.parameters[at];
        if (parameters[at] != nullptr)
          look(static_cast<const std::uint8_t*>(parameters[at]), parameter.offset_bytes, parameter.size_bytes);
      }
    } else if (extra != nullptr) {
      look_in_buffer(extra);
    }
  }
  const LaunchArgument* begin() const { return found_.data(); }
  const LaunchArgument* end() const { return found_.data() + count_; }

 private:
  void look(const std::uint8_t* bytes, std::uint32_t offset, std::size_t size) {
    // A pointer lies at a multiple of eight from the start of the parameters.
    for (std::size_t at = (8 - offset % 8) % 8; at + 8 <= size && count_ < found_.size(); at += 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes + at, sizeof word);
      if (pages_.contains(word)) found_[count_++] = {offset + static_cast<std::uint32_t>(at), word};
    }
  }
  // The other way to give parameters: one buffer and its size, as a list of keys and values.
  void look_in_buffer(void** extra) {
    const void* buffer = nullptr;
    std::size_t size = 0;
    for (std::size_t at = 0; at < 16 && extra[at] != CU_LAUNCH_PARAM_END; at += 2) {
      if (extra[at] == CU_LAUNCH_PARAM_BUFFER_POINTER)
        buffer = extra[at + 1];
      else if (extra[at] == CU_LAUNCH_PARAM_BUFFER_SIZE)
        size = *static_cast<const std::size_t*>(extra[at + 1]);
    }
    if (buffer != nullptr)
      look(static_cast<const std::uint8_t*>(buffer), 0, std::min<std::size_t>(size, 8 * found_.size()));
  }

  const KnownPages& pages_;
  std::span<LaunchArgument> found_;  // only the first count_ are set
  std::size_t count_ = 0;
};

struct Shape {
  Extent3 grid;
  Extent3 block;
  std::uint32_t shared_bytes;
};

LaunchId interned(ThreadRecorder& thread, const Kernel& kernel, const Shape& shape, const Arguments& arguments) {
  Key key;
  key.add(std::uint64_t{kernel.name.value} << 32 | shape.shared_bytes);
  key.add(std::uint64_t{shape.grid[0]} << 32 | shape.grid[1]);
  key.add(std::uint64_t{shape.grid[2]} << 32 | shape.block[0]);
  key.add(std::uint64_t{shape.block[1]} << 32 | shape.block[2]);
  for (const LaunchArgument& argument : arguments)
    key.add(argument.address | std::uint64_t{argument.offset_bytes} << 49);  // known pages end below 2^49
  if (const std::uint32_t known = thread.launches().find(key); known != KeyMap::kNone) return LaunchId(known);
  const LaunchId id = thread.recorder().next_launch();
  if (id.value == 1) [[unlikely]]
    first_launch_was_made();
  Launch launch;
  launch.kernel = kernel.name;
  launch.grid = shape.grid;
  launch.block = shape.block;
  launch.shared_bytes = shape.shared_bytes;
  launch.arguments.assign(arguments.begin(), arguments.end());
  (void)thread.writer().define_call(id, launch);
  thread.launches().insert(key, id.value);
  return id;
}

// The parameters are read before the call, while the program must still have them as it gave them.
CUresult launched(ObservedCall& call, CUfunction function, const Shape& shape, CUstream stream, void** parameters,
                  void** extra) {
  Event event = stamp_work(call, EventKind::kLaunch, stream);
  const Kernel& kernel = call.thread.recorder().kernels().of(call.thread, function);
  event.extra = interned(call.thread, kernel, shape, Arguments(call.thread, kernel, parameters, extra)).value;
  return append_work(call, event, call.real());
}

// Modules take device memory that no allocation shows; their loading is told as an operation.
CUresult loaded(ObservedCall& call) {
  Event event = call.thread.stamp(EventKind::kOpBegin);
  event.extra = call.thread.recorder().string(call.thread, call.name).value;
  call.thread.append(event);
  const CUresult result = call.real();
  Event end = call.thread.stamp_without_stack(EventKind::kOpEnd);
  end.stack = event.stack;
  end.extra = event.extra;
  call.thread.append(end);
  return call.told(result);
}

CUresult unloaded(ObservedCall& call) {
  call.thread.recorder().kernels().forget();  // before: another thread may be given a handle again at once
  return call.made_and_told();
}

}  // namespace

CUresult observe::cuLaunchKernel(ObservedCall& call, CUfunction function, unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                                 unsigned shared_bytes, CUstream stream, void** parameters, void** extra) {
  return launched(call, function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream,
                  parameters, extra);
}
CUresult observe::cuLaunchKernelEx(ObservedCall& call, const CUlaunchConfig* c, CUfunction function, void** parameters,
                                   void** extra) {
  if (c == nullptr) return call.real();
  return launched(
      call, function,
      {{c->gridDimX, c->gridDimY, c->gridDimZ}, {c->blockDimX, c->blockDimY, c->blockDimZ}, c->sharedMemBytes},
      c->hStream, parameters, extra);
}
CUresult observe::cuLaunchCooperativeKernel(ObservedCall& call, CUfunction function, unsigned grid_x, unsigned grid_y,
                                            unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                                            unsigned shared_bytes, CUstream stream, void** parameters) {
  return launched(call, function, {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes}, stream,
                  parameters, nullptr);
}
CUresult observe::cuModuleUnload(ObservedCall& call, CUmodule) { return unloaded(call); }
CUresult observe::cuLibraryUnload(ObservedCall& call, CUlibrary) { return unloaded(call); }
CUresult observe::cuModuleLoad(ObservedCall& call, CUmodule*, const char*) { return loaded(call); }
CUresult observe::cuModuleLoadData(ObservedCall& call, CUmodule*, const void*) { return loaded(call); }
CUresult observe::cuModuleLoadDataEx(ObservedCall& call, CUmodule*, const void*, unsigned, CUjit_option*, void**) {
  return loaded(call);
}
CUresult observe::cuModuleLoadFatBinary(ObservedCall& call, CUmodule*, const void*) { return loaded(call); }
CUresult observe::cuLibraryLoadData(ObservedCall& call, CUlibrary*, const void*, CUjit_option*, void**, unsigned,
                                    CUlibraryOption*, void**, unsigned) {
  return loaded(call);
}

}  // namespace faultline::capture
