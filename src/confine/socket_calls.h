// Calls that name a socket: files of this machine, which may lie aside, and other machines.
#pragma once

#include "confine/asked.h"

namespace faultline::confine {

Decision bind_call(const Asked& call);
Decision connect_call(const Asked& call);
Decision send_to_call(const Asked& call);
Decision send_message_call(const Asked& call);
Decision send_messages_call(const Asked& call);

}  // namespace faultline::confine
