#include "sources/bfc_log/bfc_log.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "base/units.h"
#include "fmt/format.h"
#include "sources/bfc_log/level3.h"
#include "sources/bfc_log/log_line.h"
#include "sources/bfc_log/pool_trace.h"
#include "sources/bfc_log/program_text.h"
#include "sources/bfc_log/stack_text.h"
#include "sources/error_text/printed_bytes.h"
#include "trace/framework.h"

namespace faultline {
namespace {

constexpr std::string_view kBegin = "*** Begin stack trace ***", kEnd = "*** End stack trace ***";
constexpr std::size_t kLongestLine = 64 * 1024;
constexpr std::size_t kMostThreads = 60'000;
constexpr std::size_t kMostAtOnce = 1024;

// What a thread said last, until the line that completes it.
struct Speaker {
  ThreadId id;
  bool is_everybody = false;  // the lines do not say whose they are
  PoolTrace::Pool pool = 0;   // of the request that it waits for
  std::uint64_t bytes = 0;
  bool is_served = false;  // "Returning:" was written for it
  bool is_benign = false;  // its caller goes on without
  std::string failed_op;
  struct Freeing {
    PoolTrace::Pool pool = 0;
    std::uint64_t address = 0;
    StackTexts::Known stack;
  };
  Freeing freeing;  // what it is about to free
  // Lines without a thread are everybody's: what others are about to do, the oldest first.
  std::deque<std::pair<PoolTrace::Pool, std::uint64_t>> waiting;
  std::deque<Freeing> also_freeing;
  std::size_t last_event = ~std::size_t{0};  // gets the stack that follows
};

class LogReader {
 public:
  void line(std::string_view line) {
    if (in_stack_) {
      if (line.empty() || line.front() == '\t') {
        stacks_.add(line);
        return;
      }
      end_stack();
      if (line == kEnd) return;
    }
    if (const std::optional<AllocatorLine> own = allocator_line(line)) {
      ++lines_;
      said(*own);
    } else {
      program_.add(line);
      other(line);
    }
  }

  Result<Trace> finish(const std::string& path) {
    if (in_stack_) end_stack();
    if (lines_ == 0)
      return Error{
          "there is no line of TensorFlow's allocator in it", {}, "Record one with TF_CPP_VMODULE=bfc_allocator=4."};
    pools_.trace.source_events = requests_;
    if (level_3_) settle_nameless_frees(pools_.trace);
    pools_.trace.count("stacks that are left out", stacks_.stacks_cut());
    Trace trace = pools_.finish(has_stacks_);
    program_.tell(trace, path);
    return trace;
  }

 private:
  Speaker& speaker(std::uint64_t thread) {
    if (last_ != nullptr && last_thread_ == thread) return *last_;
    if (speakers_.size() >= kMostThreads && !speakers_.contains(thread)) {
      pools_.trace.count("lines of threads beyond the first 60,000");
      thread = ~std::uint64_t{0};
    }
    Speaker& found = speakers_[thread];
    if (found.id.value == 0) found.id = ThreadId(static_cast<std::uint16_t>(speakers_.size()));
    found.is_everybody = thread == 0;
    last_thread_ = thread;
    return *(last_ = &found);
  }

  void said(const AllocatorLine& line) {
    Speaker& who = speaker(line.thread);
    const PoolTrace::Mark mark{line.time_ns, who.id};
    std::string_view text = line.message;
    if (text.empty()) return;
    switch (text.front()) {
      case 'A':
        if (take(text, "AllocateRaw ")) return asked(who, text, mark);
        if (take(text, "Allocated memory at ")) return region(who, text, mark);
        if (take(text, "Allocator (")) return ran_out(who, text);
        return;
      case 'R':
        if (take(text, "Returning: ")) return served(who, text, mark);
        return;
      case 'F':
        if (text.starts_with("F: ")) return freed(who, mark);
        return;
      case 'D':
        if (take(text, "DeallocateRaw ")) return frees(who, text, mark);
        if (take(text, "Deallocate region with ptr = ")) return region_returned(who, text, mark);
        return;
      case '[':
        if (take(text, "[mem-debug] AllocateRaw,")) return begin_stack(who, text, false);
        if (take(text, "[mem-debug] DeallocateRaw,")) return begin_stack(who, text, true);
        return;
      case 'E':
        if (take(text, "Extending allocation by ")) return extending(who, text);
        return;
      case 'C':
        if (take(text, "Creating new BFCAllocator named: ")) created(text);
        return;
      case 'T':
      case 't':
        if (text.starts_with("Total ") || text.starts_with("total_region")) limit_stated(who, text);
        return;
      default: return;
    }
  }

  void created(std::string_view name) {
    if (const PoolTrace::Pool pool = pools_.pool(name)) pools_.created(pool);
  }

  // "GPU_0_bfc  1024", "GPU_0_bfc 1024 alignment=256": asked. "GPU_0_bfc  1024 0x7f…": answered.
  void asked(Speaker& who, std::string_view text, PoolTrace::Mark mark) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return not_understood();
    const std::string_view name = text.substr(0, space);
    text.remove_prefix(std::min(text.find_first_not_of(' ', space), text.size()));
    std::uint64_t bytes = 0, address = 0;
    if (!take_number(text, bytes)) return not_understood();
    const PoolTrace::Pool pool = pools_.pool(name);
    if (pool == 0) return not_understood();
    if (text.empty() || text.starts_with(" alignment=")) {
      if (who.is_everybody && who.pool != 0 && !who.is_served && who.waiting.size() < kMostAtOnce)
        who.waiting.emplace_back(who.pool, who.bytes);
      who.pool = pool;
      who.bytes = bytes;
      who.is_served = who.is_benign = false;
      who.failed_op.clear();
      return;
    }
    if (!take(text, " ") || !take_pointer(text, address)) return not_understood();
    if (address == 0 && bytes != 0 && who.is_benign) {
      pools_.trace.count("requests that failed and that their caller did without");
    } else if (address == 0 && bytes != 0) {
      fail(who, pool, bytes, mark);
    } else if (address != 0 && has_answers_) {
      if (who.is_everybody) pools_.correct(pool, address, bytes);
    } else if (address != 0) {
      level_3_ = true;
      pools_.frees_are_nameless();
      ++requests_;
      who.last_event = pools_.allocated(pool, bytes, address, mark);
    }
    if (who.is_everybody && !who.is_served && address != 0) return;  // the answer was another's
    who.pool = 0;
  }

  void fail(Speaker& who, PoolTrace::Pool pool, std::uint64_t bytes, PoolTrace::Mark mark) {
    ++requests_;
    who.last_event = pools_.failed(pool, bytes, mark);
    if (who.failed_op.empty()) return;
    Tensor tensor;
    tensor.op = pools_.trace.strings.intern(who.failed_op);
    Event note;
    note.kind = EventKind::kTensorNote;
    note.heap = pools_.event(who.last_event).heap;
    note.time_ns = mark.time_ns;
    note.thread = mark.thread;
    note.extra = pools_.trace.tensors.intern(tensor).value;
    last_note_ = pools_.trace.events.size();
    pools_.trace.events.push_back(note);
  }

  // "OOM when allocating tensor with shape[32,1024] and type float on …": what the last request that failed was for.
  void describe_failed(std::string_view text) {
    if (last_note_ >= pools_.trace.events.size()) return;
    Event& note = pools_.event(last_note_);
    Tensor tensor = pools_.trace.tensors.at(TensorId(note.extra));
    if (!tensor.shape.empty()) return;
    for (std::uint64_t extent = 0; take_number(text, extent) && extent < (std::uint64_t{1} << 48);) {
      tensor.shape.push_back(static_cast<std::int64_t>(extent));
      if (tensor.shape.size() >= kMostDimensions || !take(text, ",")) break;
    }
    if (take(text, "] and type "))
      tensor.dtype = pools_.trace.strings.intern(text.substr(0, std::min(text.find(' '), std::size_t{32})));
    note.extra = pools_.trace.tensors.intern(tensor).value;
  }

  void served(Speaker& who, std::string_view text, PoolTrace::Mark mark) {
    std::uint64_t address = 0;
    if (!take_pointer(text, address) || address == 0) return not_understood();
    has_answers_ = true;
    std::pair<PoolTrace::Pool, std::uint64_t> request{who.pool, who.bytes};
    if (!who.waiting.empty()) {
      request = who.waiting.front();
      who.waiting.pop_front();
    } else if (who.pool == 0 || who.is_served) {
      pools_.trace.count("answers of the allocator without their request");
      return;
    } else {
      who.is_served = true;
    }
    ++requests_;
    who.last_event = pools_.allocated(request.first, request.second, address, mark);
  }

  // "1.50MiB bytes for GPU_0_bfc."
  void extending(Speaker& who, std::string_view text) {
    const std::size_t at = text.find(" for ");
    if (at == std::string_view::npos) return;
    text = text.substr(at + 5);
    if (text.ends_with('.')) text.remove_suffix(1);
    if (who.pool == 0) who.pool = pools_.pool(text);
  }

  void region(Speaker& who, std::string_view text, PoolTrace::Mark mark) {
    std::uint64_t begin = 0, end = 0;
    if (!take_pointer(text, begin) || !take(text, " to ") || !take_pointer(text, end) || begin >= end || begin == 0)
      return not_understood();
    if (who.pool == 0) {
      pools_.trace.count("regions without their pool");
      return;
    }
    pools_.region_taken(who.pool, {begin, end}, mark);
  }

  void region_returned(Speaker& who, std::string_view text, PoolTrace::Mark mark) {
    std::uint64_t address = 0;
    if (!take_pointer(text, address) || who.pool == 0) return not_understood();
    pools_.region_returned(who.pool, address, mark);
  }

  // "GPU_0_bfc) ran out of memory trying to allocate 75.00MiB (rounded to 78643200)requested by op Fill"
  void ran_out(Speaker& who, std::string_view text) {
    if (text.find("caller indicates that this is not a failure") != std::string_view::npos) who.is_benign = true;
    constexpr std::string_view kBy = "requested by op ";
    const std::size_t at = text.find(kBy);
    if (at != std::string_view::npos) who.failed_op = std::string(text.substr(at + kBy.size(), 200));
  }

  // "Total size in pool: 198.00MiB memory_limit_: 256.00MiB available size: …", in bytes before 2026
  void limit_stated(Speaker& who, std::string_view text) {
    constexpr std::string_view kLimit = "memory_limit_: ";
    const std::size_t at = text.find(kLimit);
    if (at == std::string_view::npos || who.pool == 0) return;
    std::string_view number = text.substr(at + kLimit.size());
    if (const auto size = parse_printed_size(number, 0, SizeStyle::kXla)) {
      pools_.state_limit(who.pool, size->bytes);
    } else if (std::uint64_t bytes = 0; take_number(number, bytes) && (number.empty() || number.front() == ' ')) {
      pools_.state_limit(who.pool, ByteInterval::exactly(bytes));
    }
  }

  // "GPU_0_bfc 1024": which chunk it is says the line with the stack; without such lines nothing does.
  void frees(Speaker& who, std::string_view text, PoolTrace::Mark mark) {
    const std::size_t space = text.rfind(' ');
    std::uint64_t bytes = 0;
    std::string_view number = space == std::string_view::npos ? std::string_view{} : text.substr(space + 1);
    if (!take_number(number, bytes)) return not_understood();
    const PoolTrace::Pool pool = pools_.pool(text.substr(0, space));
    if (pool == 0) return not_understood();
    if (level_3_ && bytes != 0) pools_.freed_somewhere(pool, bytes, mark);
    if (!who.is_everybody) who.freeing = {};
  }

  void freed(Speaker& who, PoolTrace::Mark mark) {
    if (!who.also_freeing.empty()) {
      const Speaker::Freeing first = who.also_freeing.front();
      who.also_freeing.pop_front();
      return pools_.freed(first.pool, first.address, mark, first.stack.stack, first.stack.at_exit);
    }
    if (who.freeing.pool == 0) {
      pools_.trace.count("frees without their chunk");
      return;
    }
    pools_.freed(who.freeing.pool, who.freeing.address, mark, who.freeing.stack.stack, who.freeing.stack.at_exit);
    who.freeing = {};
  }

  // "GPU_0_bfc,1024,0x7f…,*** Begin stack trace ***"
  void begin_stack(Speaker& who, std::string_view text, bool is_free) {
    if (!text.ends_with(kBegin)) return not_understood();
    text.remove_suffix(kBegin.size());
    if (text.ends_with(',')) text.remove_suffix(1);
    const std::size_t comma = text.rfind(',');
    std::uint64_t address = 0;
    std::string_view pointer = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    const std::size_t before = comma == std::string_view::npos ? comma : text.rfind(',', comma - (comma != 0 ? 1 : 0));
    if (before == std::string_view::npos || before >= comma || !take_pointer(pointer, address)) return not_understood();
    if (is_free) {
      if (who.is_everybody && who.freeing.pool != 0 && who.also_freeing.size() < kMostAtOnce)
        who.also_freeing.push_back(who.freeing);
      who.freeing = {address == 0 ? PoolTrace::Pool{0} : pools_.pool(text.substr(0, before)), address, {}};
    }
    in_stack_ = true;
    stack_is_frees_ = is_free;
    stack_of_ = &who;
    stacks_.begin();
  }

  void end_stack() {
    in_stack_ = false;
    if (stacks_.is_empty()) return;
    const StackTexts::Known& known = stacks_.end();
    has_stacks_ = true;
    if (stack_is_frees_) {
      stack_of_->freeing.stack = known;
    } else if (stack_of_->last_event < pools_.trace.events.size()) {
      Event& event = pools_.event(stack_of_->last_event);
      event.stack = known.stack;
      if (event.kind == EventKind::kAlloc) event.extra = known.tensor.value;
    }
    stack_of_->last_event = ~std::size_t{0};
  }

  // What other parts of the program say about a pool.
  void other(std::string_view line) {
    const auto after = [&](std::string_view words) {
      const std::size_t at = line.find(words);
      return at == std::string_view::npos ? std::string_view{} : line.substr(at + words.size());
    };
    if (line.size() > 1000) return;
    if (const std::string_view text = after("OOM when allocating tensor with shape["); !text.empty())
      return describe_failed(text);
    // "Created device /job:localhost/replica:0/task:0/device:GPU:0 with 13757 MB memory:  -> device: 0, name: Tesla T4, …"
    if (std::string_view text = after("Created device "); !text.empty()) {
      const std::size_t gpu = text.find("device:GPU:");
      std::uint64_t index = 0, megabytes = 0;
      if (gpu == std::string_view::npos) return;
      text.remove_prefix(gpu + 11);
      if (!take_number(text, index) || index >= 1024 || !take(text, " with ") || !take_number(text, megabytes) ||
          megabytes == 0 || megabytes > (1u << 24))
        return;
      const PoolTrace::Pool pool = pools_.pool(fmt::format("GPU_{}_bfc", index));
      if (pool != 0) pools_.state_limit(pool, {megabytes * kMiB, (megabytes + 1) * kMiB - 1});
      constexpr std::string_view kName = "name: ";
      const std::size_t name = text.find(kName);
      if (name == std::string_view::npos) return;
      text.remove_prefix(name + kName.size());
      pools_.name_device(static_cast<std::uint16_t>(index), text.substr(0, std::min(text.find(','), std::size_t{80})));
      return;
    }
    // "XLA backend allocating 12884901888 bytes on device 0 for BFCAllocator.", "XLA backend will use up to …"
    if (std::string_view text = after("XLA backend "); !text.empty()) {
      std::uint64_t bytes = 0, index = 0;
      const bool grows = take(text, "will use up to ");
      if ((!grows && !take(text, "allocating ")) || !take_number(text, bytes) || bytes == 0 ||
          !take(text, " bytes on device ") || !take_number(text, index) || index >= 1024)
        return;
      pools_.state_framework(Framework::kJax);
      const PoolTrace::Pool pool = pools_.pool(fmt::format("GPU_{}_bfc", index));
      if (pool == 0) return;
      pools_.state_limit(pool, ByteInterval::exactly(bytes));
      pools_.state_growth(pool, grows);
    }
  }

  void not_understood() { pools_.trace.count("lines of the allocator that were not understood"); }

  PoolTrace pools_;
  StackTexts stacks_{pools_.trace};
  ProgramText program_;
  HashMap<std::uint64_t, Speaker> speakers_;
  Speaker* last_ = nullptr;
  std::uint64_t last_thread_ = 0;
  Speaker* stack_of_ = nullptr;
  bool in_stack_ = false, stack_is_frees_ = false, has_stacks_ = false, level_3_ = false, has_answers_ = false;
  std::uint64_t lines_ = 0, requests_ = 0;
  std::size_t last_note_ = ~std::size_t{0};  // of the last request that failed
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

bool looks_like_bfc_log(std::span<const std::uint8_t> head) {
  const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  // A dump alone, of an allocator that was not asked to write a log, is a text.
  return contains(text, "bfc_allocator.cc:") &&
         (contains(text, "] AllocateRaw ") || contains(text, "] Creating new BFCAllocator named: ") ||
          contains(text, "] [mem-debug] "));
}

Result<Trace> read_bfc_log(ByteStream& stream, const std::string& path) {
  LogReader reader;
  const std::uint8_t* at = stream.begin();
  std::uint64_t cut = 0;
  bool skipping = false;  // the rest of a line that is too long
  for (;;) {
    const auto left = static_cast<std::size_t>(stream.end() - at);
    const auto* newline = left == 0 ? nullptr : static_cast<const std::uint8_t*>(std::memchr(at, '\n', left));
    if (newline == nullptr && left < kLongestLine) {
      const Result<const std::uint8_t*> more = stream.more(at, kLongestLine);
      if (!more) return more.error();
      at = *more;
      const auto now = static_cast<std::size_t>(stream.end() - at);
      if (now > left) continue;
      if (now == 0) break;
    }
    const auto size = newline != nullptr ? static_cast<std::size_t>(newline - at) : std::min(left, kLongestLine);
    std::string_view line(reinterpret_cast<const char*>(at), size);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!skipping) reader.line(line);
    cut += newline == nullptr && !skipping && left >= kLongestLine ? 1 : 0;
    skipping = newline == nullptr;
    at += size + (newline != nullptr ? 1 : 0);
  }
  Result<Trace> trace = reader.finish(path);
  if (trace) trace->count("lines of more than 64 KiB, cut", cut);
  return trace;
}

}  // namespace faultline
