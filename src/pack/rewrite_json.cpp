#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/characters.h"
#include "pack/readable_text.h"
#include "pack/rewrite.h"
#include "pack/secrets.h"

namespace faultline::pack {
namespace {

constexpr std::size_t kMostJsonDepth = 512, kMostKeyBytes = 128, kMostJoinedBytes = std::size_t{16} << 20;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
std::size_t behind_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// Behind the closing quote; npos: that is no string. One that the text's end cuts off is taken as it is.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (static_cast<unsigned char>(text[at]) < ' ') return npos;
    if (text[at] == '\\' && ++at < text.size() && std::string_view("\"\\/bfnrtu").find(text[at]) == npos) return npos;
  }
  return std::min(at + 1, text.size());
}

// 12, -0.5e3, true, NaN: how long it is, 0 where none is.
std::size_t scalar_length(std::string_view text) {
  for (const std::string_view word : {"true", "false", "null", "NaN", "Infinity", "-Infinity"}) {
    if (text.starts_with(word))
      return word.size() < text.size() && is_word_character(text[word.size()]) ? 0 : word.size();
  }
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const std::size_t begin = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    return at > begin;
  };
  if (!digits()) return 0;
  if (at < text.size() && text[at] == '.' && (++at, !digits())) return 0;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    if (!digits()) return 0;
  }
  const char next = at < text.size() ? text[at] : ' ';
  return is_blank(next) || next == ',' || next == ']' || next == '}' ? at : 0;
}

bool is_command(std::string_view key) {
  return key == "command" || key == "argv" || key == "arguments" || key == "cmd" || key == "cmdline" || key == "args";
}
bool is_environment(std::string_view key) {
  return key == "environment" || key == "env" || key == "environ" || key == "envs" || key == "env_vars" ||
         key == "environment_variables";
}
// What decides about memory is kept of an environment; everything else is somebody's own.
bool is_telling_variable(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kBegins = {"PYTORCH_", "CUDA_", "TORCH_", "TF_",  "XLA_",
                                                               "JAX_",     "NCCL_", "OMP_",   "MKL_", "WORLD_SIZE"};
  return std::any_of(kBegins.begin(), kBegins.end(), [&](std::string_view begin) { return name.starts_with(begin); });
}

std::string decoded(std::string_view quoted) {
  if (quoted.find('\\') != npos) {
    const nlohmann::json parsed = nlohmann::json::parse(quoted, nullptr, false);
    if (parsed.is_string()) return parsed.get<std::string>();
  }
  quoted.remove_prefix(1);
  if (quoted.ends_with('"')) quoted.remove_suffix(1);
  return std::string(quoted);
}
std::string encoded(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A pass over a JSON text: strings are looked at, and what stands behind a secret's name; all else is copied.
class JsonPass {
 public:
  JsonPass(std::string_view text, Scrubber& scrubber, const Manner& manner)
      : text_(text), scrubber_(scrubber), manner_(manner) {
    inside_.push_back({});
  }
  std::string run() {
    out_.reserve(text_.size());
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        string();
      } else if (c == '{' || c == '[') {
        open(c == '[');
      } else if (const std::size_t length = scalar_length(text_.substr(at_, 4096)); length != 0) {
        scalar(text_.substr(at_, length));
        at_ += length;
      } else {
        if ((c == '}' || c == ']') && inside_.size() > 1) inside_.pop_back();
        out_ += c;
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  struct Inside {
    std::string name;                   // the key whose value this is
    std::string secret;                 // the key that names a secret and has this inside
    std::string key;                    // of an object: the last one
    std::size_t key_at = 0;             // where that one stands
    std::string title;                  // of an object: what its "name" is
    std::optional<std::string> before;  // of an array: the last string
    bool is_array = false;
  };

  void open(bool is_array) {
    const Inside& above = inside_.back();
    Inside here;
    here.name = above.is_array ? above.name : above.key;
    here.secret = secret_name();
    here.is_array = is_array;
    out_ += text_[at_++];
    inside_.push_back(std::move(here));
    if (is_array) lines();
  }

  // The key that says that what stands here is a secret; empty: none does.
  std::string secret_name() const {
    const Inside& here = inside_.back();
    if (!here.is_array && Scrubber::names_secret(here.key)) return here.key;
    const bool is_value = here.key == "value" || here.key == "Value" || here.key == "default";
    if (!here.is_array && is_value && Scrubber::names_secret(here.title)) return here.title;
    return here.secret;
  }

  // An array of strings alone is a text in lines: what goes over several of them is found in the whole.
  void lines() {
    const Inside& here = inside_.back();
    if (is_command(here.name) || is_environment(here.name) || !here.secret.empty()) return;
    std::vector<std::pair<std::size_t, std::size_t>> found;
    std::size_t at = behind_blanks(text_, at_);
    while (at < text_.size() && text_[at] == '"' && at - at_ < kMostJoinedBytes) {
      const std::size_t end = string_end(text_, at);
      if (end == npos || end >= text_.size()) return;
      found.emplace_back(at, end);
      at = behind_blanks(text_, end);
      if (at >= text_.size() || text_[at] != ',') break;
      at = behind_blanks(text_, at + 1);
    }
    if (found.size() < 2 || at >= text_.size() || text_[at] != ']') return;
    std::string joined;
    std::vector<std::string> words;
    for (const auto& [begin, end] : found) {
      words.push_back(decoded(text_.substr(begin, end - begin)));
      // words after an option that names a secret are looked at one by one
      if (words.back().find(kSeam) != npos || words.back().starts_with('-')) {
        if (!words.back().starts_with("-----")) return;
      }
      joined += (joined.empty() ? "" : std::string(kSeam)) + words.back();
    }
    const std::string clean = scrubber_.scrub(joined);
    if (clean == joined) {
      out_.append(text_.substr(at_, at - at_));
      at_ = at;
      return;
    }
    std::size_t from = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t end = std::min(clean.find(kSeam, from), clean.size());
      const std::string one = clean.substr(from, end - from);
      from = std::min(end + kSeam.size(), clean.size());
      out_.append(text_.substr(at_, found[i].first - at_));
      out_ +=
          one == words[i] ? std::string(text_.substr(found[i].first, found[i].second - found[i].first)) : encoded(one);
      at_ = found[i].second;
    }
  }

  void scalar(std::string_view word) {
    const std::string name = secret_name();
    const bool is_number = is_digit(word.back());
    if (is_number && !name.empty() && Scrubber::is_secret_value(name, word))
      out_ += encoded(scrubber_.stand_in(Scrubber::kind_of_secret(name), word));
    else
      out_ += word;
  }

  void string() {
    const std::size_t end = std::min(string_end(text_, at_), text_.size());
    const std::string_view raw = text_.substr(at_, end - at_);
    const bool is_closed = raw.size() > 1 && raw.ends_with('"');
    const std::size_t next = behind_blanks(text_, end);
    Inside& here = inside_.back();
    const bool is_key = !here.is_array && next < text_.size() && text_[next] == ':';
    const std::string value = decoded(raw);
    const std::string clean = is_key ? scrubber_.scrub(value) : this->value(value);
    if (clean == value)
      out_ += raw;
    else
      out_ += is_closed ? encoded(clean) : '"' + clean;  // stand-ins have neither quotes nor backslashes
    if (is_key) {
      here.key = value.substr(0, kMostKeyBytes);
      here.key_at = at_;
    } else {
      if (here.is_array) here.before = value;
      if (here.key == "name" || here.key == "Name" || here.key == "key") here.title = value.substr(0, kMostKeyBytes);
    }
    at_ = end;
  }

  std::string value(const std::string& value) {
    const Inside& here = inside_.back();
    const std::string& name = here.is_array ? here.name : here.key;
    if (const std::string secret = secret_name(); !secret.empty() && Scrubber::is_secret_value(secret, value))
      return scrubber_.stand_in(Scrubber::kind_of_secret(secret), value);
    // {"value": "X", "name": "HF_TOKEN"}
    if (!here.is_array && here.title.empty() && phrased_secret(text_, here.key_at + 1).secret != 0)
      return scrubber_.stand_in(Kind::kToken, value);
    if (here.is_array && is_command(name)) return rewritten_argument(value, here.before, scrubber_, manner_);
    if (here.is_array && here.before && here.before->starts_with('-') && Scrubber::names_secret(*here.before) &&
        Scrubber::is_secret_value(*here.before, value))
      return scrubber_.stand_in(Scrubber::kind_of_secret(*here.before), value);
    if (!here.is_array && is_environment(here.name)) return variable(name, value);
    const std::size_t equals = value.find('=');
    if (here.is_array && is_environment(name) && equals != npos)
      return scrubber_.scrub(value.substr(0, equals)) + "=" +
             variable(value.substr(0, equals), value.substr(equals + 1));
    return name == "file" || name == "filename" ? scrubber_.scrub_file(value) : scrubber_.scrub(value);
  }

  std::string variable(const std::string& name, const std::string& value) {
    if (Scrubber::names_secret(name) && Scrubber::is_secret_value(name, value))
      return scrubber_.stand_in(Scrubber::kind_of_secret(name), value);
    return is_telling_variable(name) || value.empty() || manner_.keep_arguments
               ? scrubber_.scrub(value)
               : scrubber_.stand_in(Kind::kArgument, value);
  }

  std::string_view text_;
  Scrubber& scrubber_;
  Manner manner_;
  std::vector<Inside> inside_;
  std::string out_;
  std::size_t at_ = 0;
};

}  // namespace

bool is_json_text(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    std::size_t length = 1;
    if (c == '"') {
      const std::size_t end = string_end(text, at);
      if (end == npos) return false;
      length = end - at;
    } else if (c == '{' || c == '[') {
      if (++depth > kMostJsonDepth) return false;
    } else if (c == '}' || c == ']') {
      if (depth-- == 0) return false;
    } else if (!is_blank(c) && c != ',' && c != ':') {
      length = scalar_length(text.substr(at, 4096));
      if (length == 0) return false;
    } else if (c == ':' && depth == 0) {
      return false;
    }
    at += length;
  }
  return true;
}

std::string rewritten_json(std::string_view text, Scrubber& scrubber, const Manner& manner) {
  return JsonPass(text, scrubber, manner).run();
}

}  // namespace faultline::pack
