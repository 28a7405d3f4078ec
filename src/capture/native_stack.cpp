#include "capture/native_stack.h"

#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "capture/frame_rules.h"

// A stack is walked by rules that are kept per return address (frame_rules.h). The first time an address is met, the C++ runtime's own unwinder
// walks the stack instead, and each rule is kept only if it takes the same step. Every word that is loaded lies between the current frame and the
// end of the thread's stack, so it is always there.
namespace faultline::capture {

namespace {

constexpr std::size_t kMostFrames = 256;
constexpr std::size_t kRules = 1 << 13;  // per thread; when half are used it starts anew
constexpr std::uint32_t kReadsBetweenChecks = 1024;

// Where a walk stands: about to leave the function that the address returns into.
struct Frame {
  std::uintptr_t return_address = 0;
  std::uintptr_t place = 0;  // of the return address on the stack
  std::uintptr_t frame_pointer = 0;
};

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  bool contains(std::uintptr_t address) const { return address >= begin && address < end; }
};

// A word of the live stack; no concern of a sanitizer.
__attribute__((no_sanitize_address)) std::uintptr_t word_at(std::uintptr_t place) {
  return *reinterpret_cast<const volatile std::uintptr_t*>(place);
}

// The part of a loaded file that holds an address; found(file, part) is called while the file cannot go. False: none does.
template <class Found>
bool find_loaded(std::uintptr_t address, Found found) {
  struct Sought {
    std::uintptr_t address;
    Found found;
  } sought{address, found};
  return dl_iterate_phdr(
             [](dl_phdr_info* file, std::size_t, void* argument) {
               auto& wanted = *static_cast<Sought*>(argument);
               for (int i = 0; i < file->dlpi_phnum; ++i) {
                 const ElfW(Phdr)& part = file->dlpi_phdr[i];
                 const Range loaded{file->dlpi_addr + part.p_vaddr, file->dlpi_addr + part.p_vaddr + part.p_memsz};
                 if (part.p_type != PT_LOAD || !loaded.contains(wanted.address)) continue;
                 wanted.found(*file, loaded);
                 return 1;
               }
               return 0;
             },
             &sought) != 0;
}

const Range& own_code() {
  static const Range range = [] {
    Range own;
    find_loaded(reinterpret_cast<std::uintptr_t>(&read_native_stack),
                [&](const dl_phdr_info&, const Range& loaded) { own = loaded; });
    return own;
  }();
  return range;
}

Range thread_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* begin = nullptr;
  std::size_t size_bytes = 0;
  pthread_attr_getstack(&attributes, &begin, &size_bytes);
  pthread_attr_destroy(&attributes);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  return {address, address + size_bytes};
}

// Files that were ever unloaded: other code may stand at their addresses by now.
std::uint64_t unloaded_files() {
  std::uint64_t count = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* module, std::size_t, void* result) {
        *static_cast<std::uint64_t*>(result) = module->dlpi_subs;
        return 1;
      },
      &count);
  return count;
}

// One thread's rules.
class Walker {
 public:
  Walker() : stack_(thread_stack()), kept_(static_cast<Kept*>(std::calloc(kRules, sizeof(Kept)))) {}

  // A coroutine's stack is not the thread's: nothing is known of its bounds.
  bool covers(std::uintptr_t place) const { return kept_ != nullptr && stack_.contains(place); }

  // False: some frame has no rule yet, or none at all.
  bool walk(Frame frame, std::span<std::uintptr_t> out, std::size_t& count) {
    if (++reads_ % kReadsBetweenChecks == 0) forget_unloaded();
    count = 0;
    for (std::size_t steps = 0; steps < kMostFrames && frame.return_address != 0; ++steps) {
      const Kept& kept = find(frame.return_address);
      if (kept.return_address == 0 || kept.rule.kind == FrameRule::Kind::kNone) return false;
      if (!kept.is_own) {
        if (count == out.size()) return true;
        out[count++] = frame.return_address;
      }
      if (kept.rule.kind == FrameRule::Kind::kEnd) return true;
      if (!step(kept.rule, frame)) return false;
    }
    return true;
  }

  void learn(std::span<const Frame> frames, bool is_whole) {
    ++unwound_;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      Kept& kept = find(frames[i].return_address);
      if (kept.return_address != 0) continue;
      if (used_ == kRules / 2) return forget();
      ++used_;
      kept.return_address = frames[i].return_address;
      kept.is_own = own_code().contains(frames[i].return_address);
      if (i + 1 == frames.size()) {
        kept.rule.kind = is_whole ? FrameRule::Kind::kEnd : FrameRule::Kind::kNone;
        continue;
      }
      kept.rule = find_frame_rule(frames[i].return_address);
      Frame next = frames[i];
      if (kept.rule.kind == FrameRule::Kind::kEnd || kept.rule.kind == FrameRule::Kind::kNone ||
          !step(kept.rule, next) || next.return_address != frames[i + 1].return_address ||
          next.place != frames[i + 1].place || next.frame_pointer != frames[i + 1].frame_pointer) {
        kept.rule.kind = FrameRule::Kind::kNone;
      }
    }
  }

  std::uint64_t unwound() const { return unwound_; }

 private:
  // All zero: empty.
  struct Kept {
    std::uintptr_t return_address;
    FrameRule rule;
    bool is_own;
  };
  struct Release {
    void operator()(Kept* kept) const { std::free(kept); }
  };

  // The entry, or the empty one where it would go.
  Kept& find(std::uintptr_t return_address) const {
    for (std::size_t i = (return_address * 0x9e3779b97f4a7c15u) >> 51;; ++i) {
      Kept& kept = kept_[i % kRules];
      if (kept.return_address == return_address || kept.return_address == 0) return kept;
    }
  }

  // From a word between the frame and the end of the stack, where all that a caller left must be.
  bool load(const Frame& frame, std::uintptr_t place, std::uintptr_t& word) const {
    if (place <= frame.place || place % sizeof word != 0 || place > stack_.end - sizeof word) return false;
    word = word_at(place);
    return true;
  }

  bool step(const FrameRule& rule, Frame& frame) const {
    const auto at = [](std::uintptr_t base, std::int32_t offset) {
      return base + static_cast<std::uintptr_t>(std::intptr_t{offset});
    };
    std::uintptr_t caller = 0;
    if (rule.kind == FrameRule::Kind::kStackPointer) {
      caller = at(frame.place + sizeof(std::uintptr_t), rule.offset);
    } else if (rule.kind == FrameRule::Kind::kFramePointer) {
      caller = at(frame.frame_pointer, rule.offset);
    } else if (!load(frame, at(frame.frame_pointer, rule.offset), caller)) {
      return false;
    }
    Frame next{0, caller - sizeof(std::uintptr_t), frame.frame_pointer};
    if (!load(frame, next.place, next.return_address)) return false;
    if (rule.frame_pointer != FrameRule::FramePointer::kKept) {
      const std::uintptr_t base = rule.frame_pointer == FrameRule::FramePointer::kSaved ? caller : frame.frame_pointer;
      if (!load(frame, at(base, rule.frame_pointer_offset), next.frame_pointer)) return false;
    }
    frame = next;
    return true;
  }

  void forget() {
    std::memset(static_cast<void*>(kept_.get()), 0, kRules * sizeof(Kept));
    used_ = 0;
  }
  void forget_unloaded() {
    const std::uint64_t unloaded = unloaded_files();
    if (unloaded != unloaded_) forget();
    unloaded_ = unloaded;
  }

  Range stack_;
  std::unique_ptr<Kept[], Release> kept_;
  std::size_t used_ = 0;
  std::uint32_t reads_ = 0;
  std::uint64_t unwound_ = 0;
  std::uint64_t unloaded_ = unloaded_files();
};

// Null once the thread has begun to end: its last calls are unwound one by one. A key, not an object of the thread: the C library ends the process when it has no
// memory to note such an object.
thread_local Walker* t_walker = nullptr;
thread_local bool t_ended = false;
void end_walker(void* walker) {
  delete static_cast<Walker*>(walker);
  t_walker = nullptr;
  t_ended = true;
}

Walker* this_threads_walker() {
  if (t_walker != nullptr || t_ended) return t_walker;
  static pthread_key_t key;
  static const bool has_key = pthread_key_create(&key, end_walker) == 0;
  std::unique_ptr<Walker> walker(has_key ? new (std::nothrow) Walker : nullptr);
  if (walker == nullptr || pthread_setspecific(key, walker.get()) != 0) return nullptr;
  return t_walker = walker.release();
}

struct Unwound {
  std::uintptr_t first_place = 0;
  std::array<Frame, kMostFrames> frames;
  std::size_t count = 0;
};

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* argument) {
  auto& unwound = *static_cast<Unwound*>(argument);
  Frame frame;
  frame.return_address = _Unwind_GetIP(context);
  if (frame.return_address == 0) return _URC_END_OF_STACK;
#if defined(__x86_64__)
  // What the unwinder calls the frame address here is the stack pointer after the return address was popped.
  frame.place = _Unwind_GetCFA(context) - sizeof(std::uintptr_t);
  frame.frame_pointer = _Unwind_GetGR(context, 6);
  if (unwound.count == 0 && frame.place != unwound.first_place) return _URC_NO_REASON;  // inside this file
#endif
  unwound.frames[unwound.count++] = frame;
  return unwound.count == kMostFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

__attribute__((noinline)) std::size_t unwind(std::uintptr_t first_place, Walker* walker,
                                             std::span<std::uintptr_t> return_addresses) {
  Unwound unwound;
  unwound.first_place = first_place;
  _Unwind_Backtrace(take_frame, &unwound);
  const std::span<const Frame> frames(unwound.frames.data(), unwound.count);
  if (walker != nullptr) walker->learn(frames, unwound.count < kMostFrames);
  std::size_t count = 0;
  for (const Frame& frame : frames) {
    if (count == return_addresses.size()) break;
    if (!own_code().contains(frame.return_address)) return_addresses[count++] = frame.return_address;
  }
  return count;
}

}  // namespace

__attribute__((noinline)) std::size_t read_native_stack(std::span<std::uintptr_t> return_addresses) {
#if defined(__x86_64__)
  // Asking for it makes the compiler keep a frame here: the caller's frame pointer, and above it the return address.
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  const Frame first{reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)), here + sizeof(std::uintptr_t),
                    word_at(here)};
  Walker* walker = this_threads_walker();
  if (walker != nullptr && !walker->covers(first.place)) walker = nullptr;
  std::size_t count = 0;
  if (walker != nullptr && walker->walk(first, return_addresses, count)) return count;
  return unwind(first.place, walker, return_addresses);
#else
  return unwind(0, nullptr, return_addresses);
#endif
}

std::uint64_t native_stacks_unwound() {
  const Walker* walker = this_threads_walker();
  return walker == nullptr ? 0 : walker->unwound();
}

bool describe_native_frame(std::uintptr_t return_address, NativeFrameText& text) {
  // Not by dladdr: that takes the loader's lock, which a thread may hold for as long as a library starts, perhaps waiting for what this one has.
  std::uintptr_t bias = 0;
  char name[PATH_MAX] = {};
  const bool found = find_loaded(return_address - 1, [&](const dl_phdr_info& file, const Range&) {
    const bool is_program = file.dlpi_name == nullptr || file.dlpi_name[0] == '\0';
    bias = file.dlpi_addr;
    std::strncpy(name, is_program ? "/proc/self/exe" : file.dlpi_name, sizeof name - 1);
  });
  if (!found || std::strchr(name, '/') == nullptr) return false;  // the kernel's own code has no file
  char path[PATH_MAX];
  text.module = realpath(name, path) != nullptr ? path : name;  // it may have been deleted since
  text.offset = return_address - 1 - bias;
  return true;
}

}  // namespace faultline::capture
