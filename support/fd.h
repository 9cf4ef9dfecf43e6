// An open file descriptor, and what its failures say.
#pragma once
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>

#include "kiln/result.h"

namespace kiln {

/// Closed with its end; below 0: none.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

/// kIo: "cannot VERB 'PATH': the reason of errno". files.cc.
Diagnostic io_error(std::string_view verb, const std::string& path, int code);

}  // namespace kiln
