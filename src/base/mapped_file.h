// A plain file mapped into memory for reading: of one of gigabytes only the pages that are looked at are read.
#pragma once

#include <cstdint>
#include <string>

#include "base/byte_cursor.h"

namespace faultline {

class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  Bytes bytes() const { return bytes_; }                   // empty: there is no such file, or nothing in it
  std::int64_t changed_ns() const { return changed_ns_; }  // since 1970

 private:
  Bytes bytes_;
  std::int64_t changed_ns_ = 0;
};

}  // namespace faultline
