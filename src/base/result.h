// Result<T>: a value, or the reason why there is none.
//
// Expected failure (a bad file, a full disk, a wrong option) is a value and travels by return; an Error says what failed, where in the
// input if there is a where, and what the user can do next. A broken invariant of ours is FAULTLINE_CHECK, which stops the program.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace faultline {

struct Error {
  std::string what;                     // one clause, no full stop: "the pickle ends inside a string"
  std::optional<std::uint64_t> offset;  // byte offset in the input
  std::string next;                     // what to do, may be empty

  // One sentence: "PATH: WHAT at byte OFFSET. NEXT".
  std::string message(const std::string& subject = {}) const {
    std::string text = subject.empty() ? what : subject + ": " + what;
    if (offset) text += " at byte " + std::to_string(*offset);
    if (!next.empty()) text += ". " + next;
    return text;
  }
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Ok {};

// Success without a value is one null pointer, so that it can be returned from the innermost loops of readers.
template <>
class [[nodiscard]] Result<Ok> {
 public:
  Result(Ok) {}
  Result(Error error) : error_(std::make_unique<Error>(std::move(error))) {}
  Result(const Result& other) : error_(other.error_ ? std::make_unique<Error>(*other.error_) : nullptr) {}
  Result(Result&&) = default;
  Result& operator=(Result&&) = default;

  bool ok() const { return error_ == nullptr; }
  explicit operator bool() const { return ok(); }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }

 private:
  std::unique_ptr<Error> error_;
};
using Status = Result<Ok>;

[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace faultline

// A bug of ours, not of the input: print where, and stop with status 3.
#define FAULTLINE_CHECK(condition) ((condition) ? (void)0 : ::faultline::check_failed(#condition, __FILE__, __LINE__))
