#include "confine/input_calls.h"

#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <algorithm>
#include <climits>

#include "confine/paths.h"

namespace faultline::confine {

Decision input_read_call(const Asked& call, int descriptor) {
  return !call.confinement.input.empty() && link_of(call, descriptor) == call.confinement.input
             ? look_when_it_returns(Pending::Kind::kStandardInput)
             : Decision::pass();
}

Decision input_copied_call(const Asked& call) {
  return !call.tracee.sees_reads && link_of(call, 0) == call.confinement.input ? see_all_reads() : Decision::pass();
}

bool opens_unseen_input(const Asked& call, const Place& place) {
  if (call.confinement.input.empty() || call.tracee.sees_reads || !place.exists()) return false;
  return place.path == call.confinement.input ||
         (FileLayer::is_kernels(place.path) && read_link(place.real) == call.confinement.input);
}

Decision see_all_reads() { return with_filter(reads_filter(), Pending::Kind::kSeesReads); }

Decision with_filter(const std::vector<sock_filter>& filter, Pending::Kind look) {
  const sock_fprog program{static_cast<unsigned short>(filter.size()), nullptr};
  Decision decision;
  decision.kind = Decision::Kind::kRewrite;
  decision.as_call = SYS_seccomp;
  decision.look = look;
  decision.numbers = {{0, SECCOMP_SET_MODE_FILTER}, {1, SECCOMP_FILTER_FLAG_TSYNC}};
  decision.bytes.emplace_back(Decision::kNoArgument, std::string(reinterpret_cast<const char*>(filter.data()),
                                                                 filter.size() * sizeof(sock_filter)));
  decision.bytes.emplace_back(2, std::string(reinterpret_cast<const char*>(&program), sizeof program));
  decision.pointers.push_back({1, offsetof(sock_fprog, filter), 0});
  return decision;
}

std::optional<std::string> bytes_read(pid_t thread, const Registers& registers) {
  const auto number = static_cast<int>(registers.orig_rax);
  const std::size_t size = registers.rax;
  std::vector<iovec> places;
  if (number == SYS_read || number == SYS_recvfrom) {
    places.push_back({reinterpret_cast<void*>(argument(registers, 1)), size});
  } else if (number == SYS_readv || number == SYS_preadv2) {
    places.resize(std::min<std::uint64_t>(argument(registers, 2), IOV_MAX));
    if (!read_memory(thread, argument(registers, 1), places.data(), places.size() * sizeof(iovec))) return std::nullopt;
  }
  std::string bytes(size, '\0');
  std::size_t done = 0;
  for (const iovec& place : places) {
    const std::size_t piece = std::min(place.iov_len, size - done);
    if (piece != 0 && !read_memory(thread, reinterpret_cast<std::uint64_t>(place.iov_base), bytes.data() + done, piece))
      return std::nullopt;
    done += piece;
  }
  return done == size ? std::optional(bytes) : std::nullopt;
}

}  // namespace faultline::confine
