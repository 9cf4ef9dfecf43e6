#include "support/environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>

namespace kiln {
namespace {

struct Changes {
  std::atomic<bool> any{false};  // what most processes never change is asked for on the way to compilations
  std::mutex mutex;
  std::map<std::string, std::optional<std::string>, std::less<>> values;
};

// As process-wide as what it stands in front of. Never destroyed: other threads may ask at exit.
Changes& changes() {
  static auto* const made = new Changes;
  return *made;
}

// The folder has a link for itself, one from its parent, and one for each thread.
bool has_one_thread() {
  struct stat tasks;
  return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == 3;
}

}  // namespace

std::optional<std::string> environment(const char* name) {
  Changes& c = changes();
  if (c.any.load(std::memory_order_acquire)) {
    std::lock_guard lock(c.mutex);
    if (auto it = c.values.find(name); it != c.values.end()) return it->second;
  }
  const char* text = std::getenv(name);
  return text ? std::optional<std::string>(text) : std::nullopt;
}

void set_environment(const std::string& name, std::optional<std::string> value) {
  Changes& c = changes();
  std::lock_guard lock(c.mutex);
  if (!has_one_thread()) {
    c.values.insert_or_assign(name, std::move(value));
    c.any.store(true, std::memory_order_release);
    return;
  }
  c.values.erase(name);
  if (value)
    setenv(name.c_str(), value->c_str(), 1);
  else
    unsetenv(name.c_str());
}

std::vector<std::string> environment_list() {
  Changes& c = changes();
  std::lock_guard lock(c.mutex);
  std::vector<std::string> out;
  for (char** v = environ; *v; ++v) {
    const std::string text = *v;
    if (!c.values.contains(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [name, value] : c.values)
    if (value) out.push_back(name + "=" + *value);
  return out;
}

}  // namespace kiln
