// Messages that are known by their words alone: whether words of the table (sources/messages/kinds.h) stand in a text as an error's, and what they state there.
#pragma once

#include <optional>

#include "sources/error_text/message.h"

namespace faultline {

std::optional<ErrorMessage> read_known_message(const ErrorPassage& passage);

}  // namespace faultline
