#include "profiler/measure/device_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "support/diag.h"

namespace kiln::profiler {

namespace {

constexpr auto kAskAgain = std::chrono::milliseconds(5);

/// A folder below /tmp may be somebody else's: what is opened is what was looked at.
Result<Fd> open_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return io_error("create folder", path, errno);
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd.get() < 0) return io_error("open folder", path, errno);
  struct stat st {};
  const bool known = ::fstat(fd.get(), &st) == 0;
  if (known && st.st_uid == ::geteuid() && (st.st_mode & 077) == 0) return fd;
  return with_note(error(ErrorKind::kIo, "the folder '{}' of device locks is not this user's alone", path),
                   "help: remove it, or set XDG_RUNTIME_DIR to a folder that is");
}

std::string file_of(const Device& device) {
  const std::string bus = device.info().pci_bus;
  std::string file = device.is_cuda() ? "gpu-" + (bus.empty() ? device.name() : bus) : device.name();
  std::ranges::replace(file, '/', '_');
  return file;
}

}  // namespace

std::string DeviceLock::folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime && *runtime) return std::string(runtime) + "/kiln";
  return fmt::format("/tmp/kiln-{}", ::geteuid());
}

// Two locks, so that nobody starves: who waits for the device holds the queue meanwhile, and who has just let the
// device go stands behind them.
Result<DeviceLock> DeviceLock::take(const Device& device, const std::function<bool()>& should_stop,
                                    const std::function<void()>& on_wait) {
  const std::string path = folder(), name = file_of(device);
  KILN_TRY(const Fd dir, open_private_folder(path));
  bool told = false;
  auto lock = [&](const std::string& file) -> Result<Fd> {
    Fd fd(::openat(dir.get(), file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (fd.get() < 0) return io_error("open", path + "/" + file, errno);
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      const int code = errno;
      if (code == EINTR) continue;
      if (code == EWOULDBLOCK && !std::exchange(told, true)) on_wait();
      if (code != EWOULDBLOCK) return io_error("lock", path + "/" + file, code);
      if (should_stop()) return error(ErrorKind::kInterrupted, "interrupted while another process measured");
      std::this_thread::sleep_for(kAskAgain);
    }
    return fd;
  };
  KILN_TRY(const Fd queue, lock(name + ".queue"));
  KILN_TRY(Fd fd, lock(name + ".lock"));
  return DeviceLock(std::move(fd));
}

}  // namespace kiln::profiler
