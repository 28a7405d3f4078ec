#include "confine/socket_calls.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

namespace faultline::confine {
namespace {

constexpr unsigned kMostMessages = 1024;  // the kernel takes no more

std::string read_address(const Asked& call, std::uint64_t address, std::uint64_t size) {
  std::string bytes(std::min<std::uint64_t>(size, sizeof(sockaddr_storage)), '\0');
  return !bytes.empty() && read_memory(call.tracee.thread, address, bytes.data(), bytes.size()) ? bytes : std::string();
}

sa_family_t family_of(const std::string& address) {
  sa_family_t family = AF_UNSPEC;
  if (address.size() >= sizeof family) std::memcpy(&family, address.data(), sizeof family);
  return family;
}

bool is_datagram(const Asked& call) {
#ifdef SYS_pidfd_getfd
  const int process = static_cast<int>(::syscall(SYS_pidfd_open, call.tracee.process, 0));
  if (process < 0) return false;
  const int copy = static_cast<int>(::syscall(SYS_pidfd_getfd, process, call.small(0), 0));
  ::close(process);
  if (copy < 0) return false;
  int type = 0;
  socklen_t size = sizeof type;
  ::getsockopt(copy, SOL_SOCKET, SO_TYPE, &type, &size);
  ::close(copy);
  return type == SOCK_DGRAM;
#else
  return false;
#endif
}

// The words of a socket's name have little room: where they do not fit, the folder is named by a descriptor of ours.
std::string short_enough(const std::string& real) {
  constexpr std::size_t kMostFolders = 64;  // the oldest is closed then: its call was over long ago
  thread_local std::deque<int> folders;
  if (real.size() < sizeof(sockaddr_un::sun_path)) return real;
  const std::size_t slash = real.rfind('/');
  const int folder = ::open(real.substr(0, slash).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) folders.push_back(folder);
  if (folders.size() > kMostFolders) {
    ::close(folders.front());
    folders.pop_front();
  }
  return folder < 0 ? real
                    : "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(folder) + real.substr(slash);
}

// A socket's name: where the file of it lies, or what becomes of the call without going there.
struct SocketName {
  std::string address;
  std::optional<Decision> settled;
};

SocketName socket_file(const Asked& call, const std::string& address, bool makes) {
  const std::size_t head = offsetof(sockaddr_un, sun_path);
  if (address.size() <= head || address[head] == '\0') return {{}, Decision::pass()};
  const std::string words = address.c_str() + head;
  const std::string start = proc_link(call.tracee.thread, "cwd");
  Place place = call.files().find(start, words, !makes,
                                  {std::to_string(call.tracee.process), std::to_string(call.tracee.thread)});
  if (!is_kept(place)) return {{}, Decision::pass()};
  if (makes) {
    if (place.exists()) return {{}, Decision::answer(-EADDRINUSE)};
    if (!place.parent_exists) return {{}, Decision::answer(-place.error)};
    if (const int problem = call.files().make_room(place)) return {{}, Decision::answer(-problem)};
  } else {
    if (place.natural) return {{}, Decision::pass()};
    if (!place.exists()) return {{}, Decision::answer(-place.error)};
  }
  const std::string path = short_enough(place.real);
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return {{}, Decision::answer(-ENAMETOOLONG)};
  return {address.substr(0, head) + path + '\0', {}};
}

// `argument`: where the address is given; its size follows.
Decision with_socket_file(const Asked& call, const std::string& address, int argument, bool makes) {
  SocketName name = socket_file(call, address, makes);
  if (name.settled) return *name.settled;
  Decision decision;
  decision.kind = Decision::Kind::kRewrite;
  decision.numbers.emplace_back(argument + 1, name.address.size());
  decision.bytes.emplace_back(argument, std::move(name.address));
  return decision;
}

// A datagram to an address of no family is sent as one of the internet's.
std::string as_sent(std::string address) {
  const sa_family_t internet = AF_INET;
  if (family_of(address) == AF_UNSPEC && address.size() >= sizeof internet)
    std::memcpy(address.data(), &internet, sizeof internet);
  return address;
}

// Of a message whose header lies at `at`: the second argument is to point to it.
Decision message_call(const Asked& call, std::uint64_t at) {
  msghdr message{};
  if (!read_memory(call.tracee.thread, at, &message, sizeof message) || message.msg_name == nullptr)
    return Decision::pass();
  const std::string address =
      read_address(call, reinterpret_cast<std::uint64_t>(message.msg_name), message.msg_namelen);
  if (family_of(address) != AF_UNIX)
    return call.confinement.network.reaches(as_sent(address)) ? Decision::answer(-ENETUNREACH) : Decision::pass();
  SocketName name = socket_file(call, address, false);
  if (name.settled) return *name.settled;
  message.msg_namelen = static_cast<socklen_t>(name.address.size());
  Decision decision;
  decision.kind = Decision::Kind::kRewrite;
  decision.bytes.emplace_back(Decision::kNoArgument, std::move(name.address));
  decision.bytes.emplace_back(1, std::string(reinterpret_cast<const char*>(&message), sizeof message));
  decision.pointers.push_back({1, offsetof(msghdr, msg_name), 0});
  return decision;
}

}  // namespace

Decision bind_call(const Asked& call) {
  const std::string address = read_address(call, call.number(1), call.number(2));
  return family_of(address) == AF_UNIX ? with_socket_file(call, address, 1, true) : Decision::pass();
}

Decision connect_call(const Asked& call) {
  const std::string address = read_address(call, call.number(1), call.number(2));
  if (family_of(address) == AF_UNIX) return with_socket_file(call, address, 1, false);
  if (other_machine(address).empty()) return Decision::pass();
  // A datagram socket sends nothing by this; asking which way a machine would be reached is done so.
  if (is_datagram(call) && !call.confinement.network.refuses() && !other_machine(address).ends_with(":53"))
    return Decision::pass();
  return call.confinement.network.reaches(address) ? Decision::answer(-ENETUNREACH) : Decision::pass();
}

Decision send_to_call(const Asked& call) {
  const std::string address = read_address(call, call.number(4), call.number(5));
  if (family_of(address) == AF_UNIX) return with_socket_file(call, address, 4, false);
  return call.confinement.network.reaches(as_sent(address)) ? Decision::answer(-ENETUNREACH) : Decision::pass();
}

Decision send_message_call(const Asked& call) { return message_call(call, call.number(1)); }

// The kernel may send fewer than it was given, and whoever asks then asks again: those before one that needs other words go first, and that one alone.
Decision send_messages_call(const Asked& call) {
  const std::uint64_t count = std::min<std::uint64_t>(call.number(2), kMostMessages);
  for (std::uint64_t at = 0; at < count; ++at) {
    Decision decision = message_call(call, call.number(1) + at * sizeof(mmsghdr));
    if (decision.kind == Decision::Kind::kPass) continue;
    if (at == 0 && decision.kind == Decision::Kind::kRewrite) {
      decision.numbers.emplace_back(2, call.number(3));  // the flags
      decision.as_call = SYS_sendmsg;
      decision.look = Pending::Kind::kOneMessage;
    } else if (at != 0) {
      decision = Decision{};
      decision.kind = Decision::Kind::kRewrite;
      decision.numbers.emplace_back(2, at);
    }
    return decision;
  }
  return Decision::pass();
}

}  // namespace faultline::confine
