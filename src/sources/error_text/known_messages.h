// Messages that are known by their words alone: the host's memory, a device that cannot be used, operands that do not go together, a serving engine without room for its cache, the kernel's log.
//
// One table in two files: the words to look for and the kind that they mean; program_words.cpp has the texts of programs that people use. What each kind means to the user is told by
// rules/known_messages, what to try with which program by rules/out_of_memory/programs.h.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sources/error_text/message.h"

namespace faultline {

struct KnownWords {
  std::string_view text;  // lower case, single blanks, shorter than 64
  std::string_view kind;
  bool anywhere = false;  // nobody writes these words in prose; else they must stand where a program puts an error

  // Of the texts of programs.
  enum class Force : std::uint8_t {
    kStrong,
    kWeak,    // another, later message may explain it better
    kBenign,  // the program says itself that it goes on
  };
  std::string_view program = {};  // who writes so; empty: several do
  // Its numbers, each behind the words in front of it: "memory ({requested}) than is available ({free})"; "{requested:n}" is a plain number of bytes. One that is to stand anywhere has the first of them.
  std::string_view form = {};
  Force force = Force::kStrong;
  std::string_view needs = {};  // words that stand beside it, lower case
};
std::span<const KnownWords> known_words();    // of interfaces, systems and frameworks
std::span<const KnownWords> program_words();  // of programs

// The longest of them that `lower` begins with: several where rows of the same words differ in what they need beside them, the first that has it is meant.
std::vector<const KnownWords*> known_words_at(std::string_view lower);
// What a row of program_words() states; nothing, where it is only talked about or lacks what it needs.
std::optional<ErrorMessage> read_program_message(const KnownWords& known, const ErrorPassage& passage);
// "VK_ERROR_DEVICE_LOST will be reported": a constant's name in a sentence about it.
bool is_talked_about(const KnownWords& known, const ErrorPassage& passage);
// Whether an exception's name or another label stands in front.
bool has_error_name(std::string_view before);
// The whole sentence: what stands in front of the words on their line belongs to it, behind the exception's name.
std::string whole_sentence(const ErrorPassage& passage);

std::optional<ErrorMessage> read_known_message(const ErrorPassage& passage);

}  // namespace faultline
