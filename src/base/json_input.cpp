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
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t&) override {
    return ++members_.back() <= kMostJsonMembers ||
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
  bool open() {
    if (members_.size() == kMostJsonDepth)
      return refuse("the JSON is nested more than " + std::to_string(kMostJsonDepth) + " deep");
    members_.push_back(0);
    return value();
  }
  bool close() {
    members_.pop_back();
    return true;
  }

  std::vector<std::size_t> members_;  // of the objects that are open; 0 for a list
  std::size_t values_ = 0;
};

}  // namespace

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
