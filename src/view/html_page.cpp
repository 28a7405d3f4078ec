#include "view/html_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/finding_text.h"
#include "sources/run_folder/layout.h"
#include "view/headline.h"
#include "view/html.h"
#include "view/sections.h"
#include "view/thin.h"
#include "view_page_files.h"

namespace faultline::view {
namespace {

Snippets read_snippets(const Viewed& viewed) {
  Snippets snippets;
  // Findings first: there is room for a few hundred.
  for (const Finding& finding : viewed.report.findings) {
    const Location& look = place_to_look(finding);
    snippets.add(look.file, look.line);
  }
  for (const Scene& scene : viewed.scenes) {
    for (const StackNode& node : scene.stacks) {
      const Place& line = scene.places[node.line];
      if (node.line != 0) snippets.add(line.file, line.line);
    }
  }
  return snippets;
}

// What does not get smaller any more is written as it is: the names that are in it are bounded.
std::string payload_of(Viewed& viewed, const Snippets& snippets, std::size_t most_bytes) {
  constexpr int kMostRounds = 6;
  std::string payload;
  for (int round = 0; round < kMostRounds; ++round) {
    payload = base64(compressed(encode(viewed.scenes, viewed.jumps, snippets)));
    if (payload.size() <= most_bytes) break;
    for (Scene& scene : viewed.scenes) thin(scene);
  }
  return payload;
}

// "train.py: out of GPU memory".
std::string title_of(const Viewed& viewed) {
  return (viewed.program.empty() ? input_name(viewed.report) : viewed.program) + ": " + what_happened(viewed.report);
}

}  // namespace

std::string make_page(Viewed viewed, const PageOptions& options) {
  PageOptions plain = options;
  plain.text.colour = false;
  plain.text.unicode = true;
  plain.text.width = 100;
  if (!plain.with_source) plain.text.source = {};
  const Snippets snippets = plain.with_source ? read_snippets(viewed) : Snippets();
  const std::string title = escaped(title_of(viewed), 200);
  std::string out(layout::kPageBegins);
  out += fmt::format(
      "<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src '{}'; style-src '{}'; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" "
      "content=\"no-referrer\">\n<title>{} · Faultline</title>\n<style>",
      kScriptHash, kStyleHash, title);
  out += kStyle;
  out += fmt::format("</style>\n</head>\n<body>\n<header>\n<h1>{}</h1>\n{}</header>\n<main{}>\n<div>\n", title,
                     summary_section(viewed.report), viewed.scenes.empty() ? " class=\"alone\"" : "");
  if (!viewed.scenes.empty()) {
    out +=
        "<noscript><p>Without JavaScript the pictures of memory over time and by call stack are not drawn. Everything "
        "else is complete.</p>\n" +
        stacks_section(viewed) + "</noscript>\n";
    out += kTimeline;
  }
  const std::string findings = findings_section(viewed, plain, snippets);
  const std::string rest = account_section(viewed.report) + what_if_section(viewed) + text_section(viewed, plain);
  if (viewed.scenes.empty())
    out += findings +
           "<p class=\"dim\">This input has no recording of memory over time: there is no picture to draw.</p>\n" +
           rest + "</div>\n";
  else
    out += rest + "</div>\n<aside>\n" + findings + "</aside>\n";
  out +=
      "</main>\n<footer class=\"dim\"><p>Made by faultline view. This page makes no network requests.</p></footer>\n";
  if (!viewed.scenes.empty()) {
    out += "<script type=\"text/plain\" id=\"payload\">";
    out += payload_of(viewed, snippets, kMostPageBytes - std::min(kMostPageBytes, out.size() + kScript.size() + 1024));
    out += "</script>\n<script>";
    out += kScript;
    out += "</script>\n";
  }
  return out + "</body>\n</html>\n";
}

}  // namespace faultline::view
