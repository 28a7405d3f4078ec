#include "confine/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace faultline::confine {
namespace {

constexpr std::size_t kMostPlaces = 256;

bool is_of_this_machine(const sockaddr& wanted) {
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) != 0) return false;
  bool found = false;
  for (const ifaddrs* at = interfaces; at != nullptr && !found; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != wanted.sa_family) continue;
    if (wanted.sa_family == AF_INET) {
      found = reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr ==
              reinterpret_cast<const sockaddr_in&>(wanted).sin_addr.s_addr;
    } else {
      found = std::memcmp(&reinterpret_cast<const sockaddr_in6*>(at->ifa_addr)->sin6_addr,
                          &reinterpret_cast<const sockaddr_in6&>(wanted).sin6_addr, sizeof(in6_addr)) == 0;
    }
  }
  ::freeifaddrs(interfaces);
  return found;
}

bool is_loopback(std::uint32_t host_order) { return host_order >> 24 == 127 || host_order == 0; }

}  // namespace

std::string other_machine(const std::string& address) {
  sockaddr_storage storage{};
  if (address.size() < sizeof(sa_family_t)) return {};
  std::memcpy(&storage, address.data(), std::min(address.size(), sizeof storage));
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET && address.size() >= sizeof(sockaddr_in)) {
    const auto& internet = reinterpret_cast<const sockaddr_in&>(storage);
    if (is_loopback(ntohl(internet.sin_addr.s_addr)) || is_of_this_machine(reinterpret_cast<const sockaddr&>(storage)))
      return {};
    ::inet_ntop(AF_INET, &internet.sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(internet.sin_port));
  }
  if (storage.ss_family == AF_INET6 && address.size() >= sizeof(sockaddr_in6) - sizeof(std::uint32_t)) {
    const auto& internet = reinterpret_cast<const sockaddr_in6&>(storage);
    const in6_addr& host = internet.sin6_addr;
    if (IN6_IS_ADDR_LOOPBACK(&host) || IN6_IS_ADDR_UNSPECIFIED(&host)) return {};
    if (IN6_IS_ADDR_V4MAPPED(&host)) {
      std::uint32_t mapped = 0;
      std::memcpy(&mapped, host.s6_addr + 12, sizeof mapped);
      if (is_loopback(ntohl(mapped))) return {};
    }
    if (is_of_this_machine(reinterpret_cast<const sockaddr&>(storage))) return {};
    ::inet_ntop(AF_INET6, &host, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(internet.sin6_port));
  }
  switch (storage.ss_family) {
    case AF_UNSPEC:
    case AF_UNIX:
    case AF_NETLINK:
    case AF_ALG:
    case AF_INET:
    case AF_INET6: return {};
    default: return "an address of family " + std::to_string(storage.ss_family);
  }
}

bool Network::reaches(const std::string& address) {
  const std::string place = other_machine(address);
  if (place.empty()) return false;
  ++count_;
  if (const auto known = places_.find(place); known != places_.end())
    ++known->second;
  else if (places_.size() < kMostPlaces)
    places_.emplace(place, 1);
  return refuse_;
}

}  // namespace faultline::confine
