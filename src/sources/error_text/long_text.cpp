#include "sources/error_text/long_text.h"

#include <algorithm>
#include <new>

#include "sources/error_text/plain_text.h"

namespace faultline {
namespace {

constexpr std::size_t kLarge = std::size_t{16} << 20;

class Ends {
 public:
  explicit Ends(const TextLimits& limits) : limits_(limits) {}

  void add(std::string_view bytes) {
    total_ += bytes.size();
    if (!is_cut_) {
      const std::string_view fits = bytes.substr(0, limits_.whole - text_.size());
      make_room();
      text_ += fits;
      bytes.remove_prefix(fits.size());
      if (bytes.empty()) return;
      cut();
    }
    while (!bytes.empty()) {  // over the oldest of the tail
      const std::size_t length = std::min(bytes.size(), limits_.tail - next_);
      char* const into = text_.data() + limits_.head + next_;
      lines_ += static_cast<std::uint64_t>(std::count(into, into + length, '\n'));
      std::copy_n(bytes.data(), length, into);
      next_ = (next_ + length) % limits_.tail;
      bytes.remove_prefix(length);
    }
  }
  std::uint64_t total() const { return total_; }
  bool is_cut() const { return is_cut_; }
  const std::string& text() const { return text_; }

  LongText finish() {
    if (!is_cut_) return {std::move(text_), 0};
    const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(limits_.head);
    std::rotate(begin, begin + static_cast<std::ptrdiff_t>(next_), text_.end());
    // Whole lines on both sides, where there are any.
    std::size_t head = text_.rfind('\n', limits_.head - 1), tail = text_.find('\n', limits_.head);
    head = head == std::string::npos ? limits_.head : head + 1;
    tail = tail == std::string::npos ? limits_.head : tail + 1;
    lines_ += static_cast<std::uint64_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(head),
                                                    text_.begin() + static_cast<std::ptrdiff_t>(tail), '\n'));
    const std::uint64_t left_out = total_ - (text_.size() - (tail - head));
    text_.replace(head, tail - head, kLeftOut + std::to_string(lines_) + "\n");
    return {std::move(text_), left_out};
  }

 private:
  // Room for all that may come, once: pages that stay empty cost nothing, and a string that doubles holds itself twice while it does.
  void make_room() {
    if (text_.size() < kLarge || text_.capacity() >= limits_.whole) return;
    try {
      text_.reserve(limits_.whole);
    } catch (const std::bad_alloc&) {  // a limit on the address space: it doubles after all
    }
  }
  void cut() {
    is_cut_ = true;
    const auto head = text_.begin() + static_cast<std::ptrdiff_t>(limits_.head);
    const auto tail = text_.end() - static_cast<std::ptrdiff_t>(limits_.tail);
    lines_ = static_cast<std::uint64_t>(std::count(head, tail, '\n'));
    std::move(tail, text_.end(), head);
    text_.resize(limits_.head + limits_.tail);
  }

  const TextLimits limits_;
  std::string text_;
  std::uint64_t total_ = 0, lines_ = 0;  // lines that were left out
  std::size_t next_ = 0;                 // in the tail, where the oldest byte lies
  bool is_cut_ = false;
};

}  // namespace

Result<LongText> read_long_text(ByteStream& stream, const TextLimits& limits) {
  Ends ends(limits);
  const std::uint8_t* at = stream.begin();
  while (true) {
    const bool was_cut = ends.is_cut();
    ends.add({reinterpret_cast<const char*>(at), static_cast<std::size_t>(stream.end() - at)});
    // Of two bytes a letter neither lines nor their ends are found.
    const bool is_wide = !was_cut && ends.is_cut() && is_utf16(ends.text());
    const std::uint64_t most = is_wide ? limits.whole : limits.most;
    if (ends.total() > most || stream.plain_size().value_or(0) > limits.most)
      return Error{"holds more than " + std::to_string(most >> 20) + " MiB",
                   {},
                   "Cut it down to the part around the error, for example with tail."};
    Result<const std::uint8_t*> next = stream.more(stream.end(), 1);
    if (!next) return next.error();
    at = *next;
    if (at == stream.end()) return ends.finish();
  }
}

}  // namespace faultline
