// Traces with far too many of something: the bytes choose lines and how often each is written, so that a few bytes make thousands of devices, heaps, streams,
// stacks, tensors, faults or steps. Whatever stands in relation to the square of one of them runs into the fuzzer's limits.
#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "report/assemble.h"
#include "report/json.h"
#include "report/terminal.h"
#include "rules/judge.h"
#include "sources/bounds.h"
#include "trace/text.h"
#include "trace/validate.h"

namespace {

// $ is the number of the line's repetition, % a number that grows over all lines.
constexpr std::array<const char*, 34> kLines = {
    "device $ capacity=8GiB\nheap d$ kind=driver device=$\n",
    "heap h$ kind=torch below=driver pool=1.$\n",
    "stream % handle=%\n",
    "lost c$ 1\n",
    "property p$ = v\n",
    "stack s$ = main.py:$ f$\n",
    "stack t$ = /usr/lib/libcudart.so.12 g$ > /opt/lib$.so h\n",
    "tensor x$ = float32[$,$] op=aten::mse_loss operands=\"float32[$,1] float32[$]\"\n",
    "call l$ = launch k$ grid=1 block=1 arguments=0:%\n",
    "call c$ = copy from=% host-to-device\n",
    "call f$ = fault \"Warp Illegal Address\" kernel=k$ line=$ addresses=%\n",
    "call d$ = fault CUDA_ERROR_ILLEGAL_ADDRESS by=cuCtxSynchronize code=700\n",
    "alloc 1MiB @%000000\n",
    "alloc 2MiB driver @%000000\n",
    "alloc 1MiB @%000000 at main.py:$ f$\n",
    "alloc 1MiB @%000000 at main.py:3 f > lib.py:$ g\n",
    "alloc #a% 512 @%000000\nfree #a% at main.py:$ f\n",
    "alloc-failed 1GiB at main.py:$ f\n",
    "alloc-failed 1GiB driver at /opt/lib$.so f\n",
    "free failed driver @% at main.py:$ f\n",
    "map 2MiB driver @%000000\n",
    "unmap 2MiB driver @%000000\n",
    "step $\n",
    "op-begin aten::mm at main.py:$ f\ntensor-note tensor=float32[8,$]\n",
    "op-end \"shapes cannot be multiplied\" failed\n",
    "alloc 4MiB tensor=float32[1024,$] at main.py:$ f\n",
    "set 512 @% failed at main.py:$ f\n",
    "sync for=device\n",
    "launch call=l0 at main.py:$ f\n",
    "fault call=f0 @%\n",
    "fault call=d0\n",
    "copy 512 @% call=c0 at main.py:$ f\n",
    "alloc 18446744073709551615 at main.py:$ f\n",
    "host-pin 1MiB @%000000 driver at main.py:$ f\n"};

std::string trace_of(const std::uint8_t* bytes, std::size_t size) {
  std::string text =
      "faultline-trace-text 1\ndevice 0 capacity=80GiB\nheap driver\nheap torch below=driver\nstack base = main.py:1 "
      "main\n";
  std::uint64_t total = 0x7f00;
  for (std::size_t at = 0; at + 1 < size && text.size() < (1 << 19); at += 2) {
    const std::string_view line = kLines[bytes[at] % kLines.size()];
    const std::uint64_t times = bytes[at + 1] < 200 ? bytes[at + 1] : std::uint64_t{bytes[at + 1]} * 40;
    for (std::uint64_t i = 1; i <= times && text.size() < (1 << 19); ++i, ++total) {
      for (const char c : line)
        text += c == '$' ? std::to_string(i) : c == '%' ? "0x" + std::to_string(total) : std::string(1, c);
    }
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  Result<Trace> trace = parse_trace_text(trace_of(bytes, size));
  if (!trace) return 0;
  keep_in_bounds(*trace);
  FAULTLINE_CHECK(check_trace(*trace).ok());
  const Report report = make_report(*trace, judge(*trace));
  FAULTLINE_CHECK(to_json(report).size() < (std::size_t{8} << 20));
  FAULTLINE_CHECK(to_terminal(report, {}).size() < (std::size_t{1} << 20));
  return 0;
}
