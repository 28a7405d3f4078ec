#include "base/json_input.h"

#include <optional>
#include <string>
#include <vector>

namespace faultline {
namespace {

class Bounds final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool number_integer(number_integer_t) override { return value(); }
  bool number_unsigned(number_unsigned_t) override { return value(); }
  bool number_float(number_float_t, const string_t&) override { return value(); }
  bool string(string_t&) override { return value(); }
  bool binary(binary_t&) override { return value(); }
  bool start_object(std::size_t) override {
    if (++objects_ > kMostJsonObjects)
      return refuse("the JSON has more than " + std::to_string(kMostJsonObjects) + " objects");
    if (!open_.empty() && open_.back().is_list && ++open_.back().members > kMostJsonListed)
      return refuse("a list of the JSON has more than " + std::to_string(kMostJsonListed) + " objects");
    return open(false);
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_array() override { return close(); }
  bool key(string_t&) override {
    return ++open_.back().members <= kMostJsonMembers ||
           refuse("an object of the JSON has more than " + std::to_string(kMostJsonMembers) + " members");
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    error = Error{"this is not valid JSON", position == 0 ? 0 : position - 1, {}};
    return false;
  }
  std::optional<Error> error;

 private:
  bool refuse(std::string what) {
    error = Error{std::move(what), {}, {}};
    return false;
  }
  bool value() {
    return ++values_ <= kMostJsonValues ||
           refuse("the JSON has more than " + std::to_string(kMostJsonValues) + " values");
  }
  bool open(bool is_list) {
    if (open_.size() == kMostJsonDepth)
      return refuse("the JSON is nested more than " + std::to_string(kMostJsonDepth) + " deep");
    open_.push_back({is_list, 0});
    return value();
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  struct Open {
    bool is_list;
    std::size_t members;  // of a list its objects
  };
  std::vector<Open> open_;
  std::size_t values_ = 0, objects_ = 0;
};

class Depth final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Depth(std::size_t most) : left_(most) {}
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool open() { return left_ != 0 && left_-- != 0; }
  bool close() {
    ++left_;
    return true;
  }
  std::size_t left_;
};

}  // namespace

bool is_json_within(std::string_view text, std::size_t most_depth) {
  Depth depth(most_depth);
  return nlohmann::json::sax_parse(text, &depth);
}

Status check_json(std::string_view text) {
  if (text.size() > kMostJsonBytes)
    return Error{"the JSON has more than " + std::to_string(kMostJsonBytes >> 20) + " MiB", {}, {}};
  Bounds bounds;
  const bool parsed = nlohmann::json::sax_parse(text, &bounds);
  if (bounds.error) return *bounds.error;
  if (!parsed) return Error{"this is not valid JSON", {}, {}};
  return Ok{};
}

}  // namespace faultline
