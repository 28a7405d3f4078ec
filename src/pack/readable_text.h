// A text as a person reads it: colours of a terminal taken out, and what is written for one character (\n, \", %2F, \\) as that character. Nothing is
// lost: whatever is not replaced is written again as it stood.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace faultline::pack {

// \" and \' are no end of a quoted text that began with a bare quote.
inline constexpr char kEscapedDouble = '\x02', kEscapedSingle = '\x03';
// Between two texts that are looked at as one: a line's end, which stays even where what is around it goes.
inline constexpr std::string_view kSeam = "\x1b\x1f";

class ReadableText {
 public:
  explicit ReadableText(std::string_view raw);

  std::string_view text() const { return is_changed_ ? std::string_view(plain_) : raw_; }
  // Nothing goes over such a place: a colour begins or ends there.
  bool is_seam(std::size_t at) const;
  std::size_t next_seam(std::size_t at) const;

  // The writing again, from left to right: everything up to `to` as it stood; or left out, apart from colours and seams.
  void copy(std::size_t to, std::string& out);
  void skip(std::size_t to, std::string& out);

 private:
  struct Edit {
    std::uint32_t at = 0, raw = 0, length = 0;  // `length` raw bytes at `raw` ...
    bool is_one = false, stays = false;         // ... stand for one character at `at`, or for none
  };
  void go(std::size_t to, std::string& out, bool copies);

  std::string_view raw_;
  std::string plain_;
  std::vector<Edit> edits_;
  bool is_changed_ = false;
  std::size_t at_ = 0, raw_at_ = 0, next_ = 0;
  mutable std::size_t seen_ = 0;
};

}  // namespace faultline::pack
