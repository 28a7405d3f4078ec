#include "sources/error_text/anchors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/result.h"
#include "sources/error_text/log_lines.h"
#include "sources/messages/kinds.h"

namespace faultline {
namespace {

struct Word {
  Anchor anchor;
  std::string_view text;  // lower case, single blanks
};

constexpr std::array kOwnWords = {
    Word{Anchor::kTorchOom, "out of memory. tried to allocate"},
    Word{Anchor::kTorchOomBare, "error: cuda out of memory"},
    Word{Anchor::kTorchOomBare, "error: hip out of memory"},
    Word{Anchor::kTorchOomBare, "cuda out of memory"},
    Word{Anchor::kTorchOomBare, "hip out of memory"},
    Word{Anchor::kTorchCut, "reserved in total by pytorch)"},
    Word{Anchor::kTorchCut, "is allocated by pytorch, and "},
    Word{Anchor::kTorchCut, " has a total capacity of "},
    Word{Anchor::kTorchCut, " has a total capacty of "},
    Word{Anchor::kMetalOom, "mps backend out of memory ("},
    Word{Anchor::kAsyncOom, "would exceed allowed memory. (out of memory)"},
    Word{Anchor::kCudaError, "cuda error: "},
    Word{Anchor::kCudaError, "hip error: "},
    Word{Anchor::kCudaError, "cuda driver error: "},
    Word{Anchor::kCudaError, "triton error [cuda]: "},
    Word{Anchor::kCudaError, "failed to synchronize: "},
    Word{Anchor::kRuntimeCode, "cuda runtime error ("},
    Word{Anchor::kRuntimeCode, "error == cudasuccess ("},
    Word{Anchor::kRuntimeCode, "cuda runtime error in "},
    Word{Anchor::kThcCheck, "thcudacheck fail"},
    Word{Anchor::kErrorName, "cudaerrormemoryallocation"},
    Word{Anchor::kErrorName, "hiperroroutofmemory"},
    Word{Anchor::kErrorName, "cudaerrorillegaladdress"},
    Word{Anchor::kErrorName, "cudaerrormisalignedaddress"},
    Word{Anchor::kErrorName, "cudaerrorlaunchfailure"},
    Word{Anchor::kErrorName, "cudaerrorassert"},
    Word{Anchor::kErrorName, "cuda_error_out_of_memory"},
    Word{Anchor::kErrorName, "cuda_error_illegal_address"},
    Word{Anchor::kErrorName, "cuda_error_misaligned_address"},
    Word{Anchor::kErrorName, "cuda_error_launch_failed"},
    Word{Anchor::kErrorName, "cuda_error_assert"},
    Word{Anchor::kIllegalAccess, "an illegal memory access was encountered"},
    Word{Anchor::kDeviceAssert, "device-side assert triggered"},
    Word{Anchor::kMisaligned, "misaligned address"},
    Word{Anchor::kLaunchFailure, "unspecified launch failure"},
    Word{Anchor::kAssertLine, "assertion `"},
    Word{Anchor::kAssertBlock, "gpu assertion failure message = "},
    Word{Anchor::kCublas, "cublas_status_"},
    Word{Anchor::kCublas, "cusolver_status_"},
    Word{Anchor::kCublas, "cusparse_status_"},
    Word{Anchor::kCublas, "hipblas_status_"},
    Word{Anchor::kCublas, "cufft_"},
    Word{Anchor::kCudnn, "cudnn_status_"},
    Word{Anchor::kCudnn, "miopenstatus"},
    Word{Anchor::kNcclFailure, "cuda failure "},
    Word{Anchor::kNcclCalloc, "failed to cuda calloc"},
    Word{Anchor::kNcclUnhandled, "unhandled cuda error"},
    Word{Anchor::kXlaOom, "resource_exhausted: "},
    Word{Anchor::kXlaOom, "resource exhausted: "},
    Word{Anchor::kTfOom, "oom when allocating tensor"},
    Word{Anchor::kBfcOom, "ran out of memory trying to allocate"},
    Word{Anchor::kTfDriver, "failed to allocate "},
    Word{Anchor::kTfDriver, "failed to alloc "},
    Word{Anchor::kTfDst, "dst tensor is not initialized"},
    Word{Anchor::kTfMemory, "failed to allocate memory [op:"},
    Word{Anchor::kTfMemory, "resourceexhaustederror: failed to allocate memory"},
    Word{Anchor::kTfAsync, "async failed to allocate "},
    Word{Anchor::kTfContext, "cuda runtime implicit initialization on gpu:"},
    Word{Anchor::kTfReceive, "sameworkerrecvdone unable to allocate output tensor"},
    Word{Anchor::kXlaBare, "out of memory while trying to allocate "},
    Word{Anchor::kCupyOom, "out of memory allocating "},
    Word{Anchor::kCupyOom, "out of memory to allocate "},
    Word{Anchor::kGgmlOom, "cudamalloc failed: out of memory"},
    Word{Anchor::kOtherOom, "cudamalloc error out of memory"},
    Word{Anchor::kVulkanOom, "device memory allocation of size "},
    Word{Anchor::kTensorRt, "cuda runtime (out of memory"},
    Word{Anchor::kTensorRt, "cuda runtime (an illegal memory access"},
    Word{Anchor::kTensorRt, "outofmemory ("},
    Word{Anchor::kTensorRt, "cuda error in allocate: 2"},
    Word{Anchor::kTensorRt, "defaultallocator::allocate: 2 ("},
    Word{Anchor::kDriverCall, "cumemalloc failed: "},
    Word{Anchor::kDriverCall, "cumemallocpitch failed: "},
    Word{Anchor::kNumbaCode, "results in unknown_cuda_error"},
    Word{Anchor::kXlaSpace, "ran out of memory in memory space "},
    Word{Anchor::kOrtOom, "failed to allocate memory for requested buffer of size"},
    Word{Anchor::kRmmOom, "out_of_memory: cuda error at"},
    Word{Anchor::kRmmOom, "std::bad_alloc: out_of_memory"},
    Word{Anchor::kRocmFault, "memory access fault by gpu node"},
    Word{Anchor::kSharedMemory, "out of resource: shared memory"},
};

// These, and those of the table of known messages.
std::vector<Word> all_words() {
  std::vector<Word> words(kOwnWords.begin(), kOwnWords.end());
  for (const KnownWords& known : all_known_words()) words.push_back({Anchor::kKnown, known.words->text});
  FAULTLINE_CHECK(words.size() < 65535);
  return words;
}

constexpr std::size_t kLongestTorch = 2400;  // characters of PyTorch's message, with prefixes of its lines
constexpr std::size_t kRing = 64;            // longer than the longest word

// A table of states: from each, every letter leads to the state of the longest word beginning that the text then ends with.
class Automaton {
 public:
  Automaton() {
    for (const Word& word : words_) {
      FAULTLINE_CHECK(word.text.size() < kRing);
      for (const char c : word.text) letter(c);
    }
    add_state();
    for (std::size_t w = 0; w < words_.size(); ++w) {
      std::uint16_t state = 0;
      for (const char c : words_[w].text) {
        const std::size_t cell = state * letters_ + letter(c);
        if (next_[cell] == 0) {
          const std::uint16_t fresh = add_state();
          next_[cell] = fresh;
        }
        state = next_[cell];
      }
      word_[state] = static_cast<std::uint16_t>(w + 1);
      begin_with(words_[w].text[0], words_[w].text[1]);
    }
    close();
  }

  // Whether a word can begin with these two bytes; most places of most texts are passed by on this answer alone.
  bool can_begin(char first, char second) const {
    return begins_[static_cast<unsigned char>(first)][static_cast<unsigned char>(second)];
  }
  std::uint16_t step(std::uint16_t state, char c) const {
    return next_[state * letters_ + letter_[static_cast<unsigned char>(c)]];
  }
  // Whether a word begins within the first bytes of a line, the prefix that another line's broken word would go on behind ("NVRM: Xid (").
  bool begins_within(std::string_view line, std::size_t bytes) const {
    std::uint16_t state = 0;
    for (std::size_t at = 0; at < line.size() && at < bytes + kRing && line[at] != '\n'; ++at) {
      state = step(state, line[at]);
      if (const Word* found = word(state); found != nullptr && at + 1 - found->text.size() < bytes) return true;
    }
    return false;
  }
  const Word* word(std::uint16_t state) const { return word_[state] == 0 ? nullptr : &words_[word_[state] - 1u]; }

 private:
  std::size_t letter(char c) {
    std::uint8_t& index = letter_[static_cast<unsigned char>(c)];
    if (index == 0) {
      index = static_cast<std::uint8_t>(letters_++);
      if (c >= 'a' && c <= 'z') letter_[static_cast<unsigned char>(c - 32)] = index;
    }
    return index;
  }
  void begin_with(char first, char second) {
    const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
    for (const char f : {first, upper(first)}) {
      for (const char s : {second, upper(second), '\x1b'})
        begins_[static_cast<unsigned char>(f)][static_cast<unsigned char>(s)] = true;
    }
  }
  std::uint16_t add_state() {
    next_.resize(next_.size() + letters_);
    word_.push_back(0);
    return static_cast<std::uint16_t>(word_.size() - 1);
  }
  // Fills the missing steps breadth first: where a word breaks off, its longest end that begins another word takes over.
  void close() {
    std::vector<std::uint16_t> fallback(word_.size());
    std::vector<std::uint16_t> queue;
    for (std::size_t l = 0; l < letters_; ++l) {
      if (next_[l] != 0) queue.push_back(next_[l]);
    }
    for (std::size_t head = 0; head < queue.size(); ++head) {
      const std::uint16_t state = queue[head];
      if (word_[state] == 0) word_[state] = word_[fallback[state]];
      for (std::size_t l = 0; l < letters_; ++l) {
        std::uint16_t& target = next_[state * letters_ + l];
        const std::uint16_t other = next_[fallback[state] * letters_ + l];
        if (target == 0) {
          target = other;
        } else {
          fallback[target] = other;
          queue.push_back(target);
        }
      }
    }
  }

  const std::vector<Word> words_ = all_words();
  std::array<std::array<bool, 256>, 256> begins_{};
  std::array<std::uint8_t, 256> letter_{};
  std::size_t letters_ = 1;  // 0 stands for every byte that is in no word
  std::vector<std::uint16_t> next_;
  std::vector<std::uint16_t> word_;
};

}  // namespace

AnchorHits find_anchors(std::string_view text) {
  static const Automaton automaton;
  AnchorHits found;
  std::array<std::size_t, kRing> offsets{};  // where in the text the latest letters stood
  std::size_t fed = 0;
  std::size_t last_end = 0;   // of those that are not kept
  std::size_t torch_end = 0;  // of the words that PyTorch's message begins with
  std::uint16_t state = 0;
  bool blank = true;
  for (std::size_t at = 0; at < text.size();) {
    if (state == 0) {
      while (at + 1 < text.size() && !automaton.can_begin(text[at], text[at + 1])) ++at;
      blank = false;
    }
    const char c = text[at];
    if (c == '\x1b') {
      at += escape_length(text.substr(at, kRing));
      continue;
    }
    if (c == '*' && state != 0 && text.substr(at, 2) == "**") {  // bold, in the middle of a sentence
      at += 2;
      continue;
    }
    const std::size_t here = at++;
    const bool is_blank = static_cast<unsigned char>(c) <= ' ';
    if (!is_blank || !blank) {
      offsets[fed++ % kRing] = here;
      state = automaton.step(state, is_blank ? ' ' : c);
      if (const Word* word = automaton.word(state)) {
        const AnchorHit hit{word->anchor, offsets[(fed - word->text.size()) % kRing], here + 1};
        if (hit.anchor == Anchor::kTorchOom || hit.anchor == Anchor::kTorchOomBare) torch_end = hit.end;
        const bool is_whole =
            hit.anchor == Anchor::kTorchCut && torch_end != 0 && hit.begin - torch_end < kLongestTorch;
        if (hit.anchor == Anchor::kTorchOom && !found.hits.empty() && found.hits.back().end > hit.begin &&
            found.hits.back().anchor == Anchor::kTorchOomBare)
          found.hits.back() = hit;  // the bare words were its beginning
        else if (found.hits.size() < kMaxAnchorHits && !is_whole)
          found.hits.push_back(hit);
        else if (const std::size_t from = std::min(std::exchange(last_end, hit.end), hit.begin);
                 !is_whole && text.substr(from, hit.begin - from).find('\n') != std::string_view::npos)
          ++found.not_kept;
      }
    }
    blank = is_blank;
    // A word that a wrapped line has broken goes on behind the next line's prefix.
    if (c == '\n' && state != 0) {
      const std::size_t prefix = split_prefix(text.substr(at, 512)).length;
      if (prefix != 0 && !automaton.begins_within(text.substr(at), prefix)) at += prefix;
    }
  }
  return found;
}

}  // namespace faultline
