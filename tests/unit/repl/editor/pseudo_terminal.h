// A program on a pseudo-terminal: keys go in, and what a user would see is kept on a FakeScreen.
#pragma once
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <string>

#include "tests/unit/repl/editor/fake_screen.h"

namespace kiln::editor {

class PseudoTerminal {
 public:
  /// `child` runs in a process of its own with the terminal as its standard streams.
  PseudoTerminal(int rows, int columns, const std::function<int()>& child) : screen_(rows, columns) {
    winsize size{static_cast<unsigned short>(rows), static_cast<unsigned short>(columns), 0, 0};
    // The slave is kept open here, so that the terminal's modes can be read when the program is gone.
    int slave = -1;
    if (openpty(&master_, &slave_, nullptr, nullptr, &size) != 0) return;
    slave = slave_;
    tcgetattr(slave, &before_);
    std::fflush(stdout);  // else the child writes what this process has not yet
    pid_ = fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) {
      close(master_);
      setsid();
      ioctl(slave, TIOCSCTTY, 0);
      for (int fd : {0, 1, 2}) dup2(slave, fd);
      if (slave > 2) close(slave);
      _exit(child());
    }
  }
  ~PseudoTerminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(master_);
    close(slave_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = write(master_, bytes.data(), std::min<size_t>(bytes.size(), 512));
      if (n < 0) return;
      bytes.remove_prefix(static_cast<size_t>(n));
      read_some(0);
    }
  }

  /// Reads what the program writes until the screen satisfies `done`; false: it did not in time.
  bool wait(const std::function<bool()>& done, int seconds = 20) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      read_some(20);
    }
    return true;
  }
  bool wait_for(std::string_view text, int seconds = 20) {
    return wait([&] { return screen_.text().find(text) != std::string::npos; }, seconds);
  }
  /// Sends keys one at a time and waits until the program has written something for each, as a typist would. While the
  /// terminal itself edits lines, control keys would be its own: waits for the editor, but not for ever.
  void type(std::string_view bytes) {
    while (!bytes.empty()) {
      read_some(0);
      was_raw_ = was_raw_ || !is_cooked();
      if (was_raw_) wait([&] { return !is_cooked(); }, 1);
      const size_t length = key_length(bytes), seen = written_;
      send(bytes.substr(0, length));
      wait([&] { return written_ > seen; }, 1);
      bytes.remove_prefix(length);
    }
  }
  void resize(int rows, int columns) {
    read_some(20);
    const size_t seen = written_;
    screen_.resize(rows, columns);
    winsize size{static_cast<unsigned short>(rows), static_cast<unsigned short>(columns), 0, 0};
    ioctl(master_, TIOCSWINSZ, &size);
    wait([&] { return written_ > seen; }, 1);
  }
  void signal(int number) {
    if (pid_ > 0) kill(pid_, number);  // -1 would be every process
  }

  /// Waits for its end; the status as waitpid gives it, -1 when it does not end.
  int end(int seconds = 20) {
    int status = -1;
    const bool ended = wait([&] { return waitpid(pid_, &status, WNOHANG) == pid_; }, seconds);
    if (!ended) return -1;
    pid_ = -1;
    read_some(0);
    return status;
  }

  /// Whether lines are edited by the terminal and keys are echoed, as before the program began.
  bool is_cooked() const {
    termios now{};
    return tcgetattr(slave_, &now) == 0 && now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag;
  }
  /// Lines are the terminal's, and it does not show what is typed.
  bool is_quiet() const {
    termios now{};
    return tcgetattr(slave_, &now) == 0 && (now.c_lflag & ICANON) != 0 && (now.c_lflag & ECHO) == 0;
  }
  FakeScreen& screen() { return screen_; }
  const std::string& raw_output() const { return output_; }
  pid_t pid() const { return pid_; }

 private:
  /// An escape sequence comes in one piece, or it would be Escape and then other keys.
  static size_t key_length(std::string_view bytes) {
    if (bytes[0] != '\033' || bytes.size() < 2) return 1;
    if (bytes[1] != '[') return 2;
    size_t end = 2;
    while (end < bytes.size() && (bytes[end] < 0x40 || bytes[end] > 0x7E)) ++end;
    return std::min(end + 1, bytes.size());
  }

  void read_some(int timeout_ms) {
    pollfd watched{master_, POLLIN, 0};
    while (poll(&watched, 1, timeout_ms) == 1 && (watched.revents & POLLIN)) {
      char buffer[4096];
      const ssize_t n = read(master_, buffer, sizeof buffer);
      if (n <= 0) return;
      written_ += static_cast<size_t>(n);
      output_.append(buffer, static_cast<size_t>(n));
      screen_.write(std::string_view(buffer, static_cast<size_t>(n)));
      timeout_ms = 0;
    }
  }

  FakeScreen screen_;
  int master_ = -1, slave_ = -1;
  pid_t pid_ = -1;
  termios before_{};
  size_t written_ = 0;
  bool was_raw_ = false;
  std::string output_;
};

}  // namespace kiln::editor
