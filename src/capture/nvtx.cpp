// NVTX ranges, where the program has them: pushed and popped ranges become operations of the trace.
//
// NVTX loads the library that NVTX_INJECTION64_PATH names and calls InitializeInjectionNvtx2, its documented door for tools. Only ranges of a thread (push and pop) are
// taken; marks and ranges that start in one thread and end in another are left to themselves.
#include <dlfcn.h>

#include <array>
#include <string_view>

#define NVTX_NO_IMPL  // the types alone: the tables are the program's own
#include <nvtx3/nvToolsExt.h>

#include "capture/recorder.h"

namespace faultline::capture {
namespace {

// How many ranges are open in this thread, recorded or not. Nothing more is kept in the thread's own memory: of that a process has little to spare for libraries that it loads while it runs.
thread_local std::uint32_t depth = 0;

int push(std::string_view name) {
  const std::uint32_t at = depth++;
  const Recording recording;
  if (!recording || at >= recording->open_ranges().names.size()) return static_cast<int>(at);
  OpenRanges& ranges = recording->open_ranges();
  ranges.recorded[at] = false;
  if (!name.empty() && recording->recorder().wants_calls()) {
    guarded([&] {
      ThreadRecorder& thread = *recording;
      Event event = thread.stamp(EventKind::kOpBegin);
      ranges.names[at] = thread.recorder().string(thread, name);
      ranges.recorded[at] = true;
      event.extra = ranges.names[at].value;
      thread.append(event);
    });
  }
  return static_cast<int>(at);
}

int NVTX_API push_ascii(const char* message) { return push(message != nullptr ? message : ""); }

int NVTX_API push_wide(const wchar_t* message) {
  std::array<char, 1024> text;  // the first of it is name enough
  std::size_t length = 0;
  for (; message != nullptr && *message != L'\0' && length < text.size(); ++message)
    text[length++] = *message < 0x80 ? static_cast<char>(*message) : '?';
  return push({text.data(), length});
}

int NVTX_API push_attributes(const nvtxEventAttributes_t* attributes) {
  if (attributes == nullptr) return push("");
  if (attributes->messageType == NVTX_MESSAGE_TYPE_ASCII) return push_ascii(attributes->message.ascii);
  if (attributes->messageType == NVTX_MESSAGE_TYPE_UNICODE) return push_wide(attributes->message.unicode);
  return push("");
}

int NVTX_API pop() {
  if (depth == 0) return NVTX_NO_PUSH_POP_TRACKING;
  const std::uint32_t at = --depth;
  const Recording recording;
  if (!recording || at >= recording->open_ranges().names.size()) return static_cast<int>(at);
  OpenRanges& ranges = recording->open_ranges();
  if (ranges.recorded[at]) {
    ranges.recorded[at] = false;
    guarded([&] {
      Event event = recording->stamp_without_stack(EventKind::kOpEnd);
      event.extra = ranges.names[at].value;
      recording->append(event);
    });
  }
  return static_cast<int>(at);
}

int NVTX_API domain_push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  return push_attributes(attributes);
}
int NVTX_API domain_pop(nvtxDomainHandle_t) { return pop(); }

// The driver's own parts have ranges too: writing a core dump takes a hundred thousand of them. They are not the program's.
bool is_of_driver(const void* code) {
  Dl_info found;
  if (::dladdr(code, &found) == 0 || found.dli_fname == nullptr) return false;
  const std::string_view path = found.dli_fname;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name.starts_with("libcuda.so") || name.starts_with("libcudadebugger") || name.starts_with("libnvidia-");
}

template <class Function>
void put(NvtxFunctionTable table, unsigned size, unsigned index, Function function) {
  if (index < size && table[index] != nullptr) *table[index] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

}  // namespace faultline::capture

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  using namespace faultline::capture;
  if (is_of_driver(reinterpret_cast<const void*>(get_table))) return 0;
  const auto* callbacks =
      get_table == nullptr ? nullptr : static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->struct_size < sizeof(NvtxExportTableCallbacks)) return 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size) != 0) {
    put(table, size, NVTX_CBID_CORE_RangePushA, push_ascii);
    put(table, size, NVTX_CBID_CORE_RangePushW, push_wide);
    put(table, size, NVTX_CBID_CORE_RangePushEx, push_attributes);
    put(table, size, NVTX_CBID_CORE_RangePop, pop);
  }
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) != 0) {
    put(table, size, NVTX_CBID_CORE2_DomainRangePushEx, domain_push);
    put(table, size, NVTX_CBID_CORE2_DomainRangePop, domain_pop);
  }
  return 1;
}
