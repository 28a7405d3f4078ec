// Connections of a confined program to other machines: counted, and refused where the user wants none. What stays on this machine is not counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace faultline::confine {

class Network {
 public:
  explicit Network(bool refuse) : refuse_(refuse) {}

  // `address`: a sockaddr as the program gave it. True: the call is to fail.
  bool reaches(const std::string& address);

  std::uint64_t count() const { return count_; }
  bool refuses() const { return refuse_; }
  const std::map<std::string, std::uint64_t>& places() const {
    return places_;
  }  // "203.0.113.7:443" → how often; the first few hundred

 private:
  bool refuse_;
  std::uint64_t count_ = 0;
  std::map<std::string, std::uint64_t> places_;
};

// "203.0.113.7:443", "[2001:db8::1]:443"; empty: no address of another machine.
std::string other_machine(const std::string& address);

}  // namespace faultline::confine
