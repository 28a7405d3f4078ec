// Whatever text is shown, nothing in it acts; whatever JSON is escaped, it stays the same document; whatever name is demangled, it stays short.
#include "base/demangle.h"
#include "base/json_input.h"
#include "base/result.h"
#include "base/safe_text.h"

namespace {

bool is_harmless(std::string_view text) {
  while (!text.empty()) {
    const auto [code, length] = faultline::decode_utf8(text);
    const bool is_replaced = code == faultline::kReplacementCharacter && length == 1;
    if (is_replaced || faultline::is_harmful(code)) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace faultline;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  FAULTLINE_CHECK(is_harmless(shown(text)));
  FAULTLINE_CHECK(demangled(text).size() <= std::max<std::size_t>(size, 1 << 20));
  const nlohmann::json document = {std::string(text)};
  const std::string written = document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string escaped = escaped_json(written);
  FAULTLINE_CHECK(is_harmless(escaped));
  FAULTLINE_CHECK(nlohmann::json::parse(escaped) == nlohmann::json::parse(written));
  if (const Result<nlohmann::json> parsed = parse_json(text)) FAULTLINE_CHECK(!parsed->is_discarded());
  return 0;
}
