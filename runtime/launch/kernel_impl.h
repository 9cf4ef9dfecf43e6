// A jit function with its specialisations: found by key without a lock, each compiled once, several at a time.
#pragma once
#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kiln/check.h"
#include "kiln/kernel.h"
#include "runtime/device/device.h"
#include "runtime/launch/args.h"
#include "support/hash.h"

namespace kiln::runtime {

struct CheckedCode;
struct Closure;
struct LaunchedAs;
struct LoadedCode;
struct PreparedLaunch;

/// A compiled specialisation on one device. What a launch reads comes first. It holds the device's backend and not the
/// device, which may own the kernel among its plans.
struct Specialisation {
  std::shared_ptr<Backend> backend;      // outlives `loaded`
  StreamImpl* default_stream = nullptr;  // of `backend`
  std::shared_ptr<LoadedKernel> loaded;
  KeySteps steps;  // of `key`
  std::string key;
  uint64_t hash = 0;
  mutable std::atomic<uint64_t> used{0};          // when it was looked up last, by the kernel's count of look-ups
  std::shared_ptr<const LaunchedAs> launched_as;  // also keeps the functions alive whose addresses are in the key
  std::shared_ptr<const Closure> closure;         // that it was compiled with
  std::shared_ptr<const LoadedCode> code;         // what is told of it
  std::shared_ptr<const LoadedCode> roomy_code;   // and of its launches of few blocks; null: the same
  const std::shared_ptr<const LoadedCode>& code_that_ran() const {
    return roomy_code && loaded->ran_roomy() ? roomy_code : code;
  }
};

/// An open-addressing hash table. Readers take no lock: they see a table that was complete when it was published. What
/// was replaced or taken out lives until reclaim(). All but find() is under the kernel's mutex.
class SpecTable {
 public:
  SpecTable();
  const Specialisation* find(uint64_t hash, std::string_view key) const;
  const Specialisation* insert(std::unique_ptr<Specialisation> spec);
  /// Takes all out (a global changed).
  void clear();
  /// Takes out all but the `most` that were used last.
  void retire(size_t most);
  size_t size() const { return specs_.size(); }
  bool has_retired() const { return !retired_.empty(); }
  /// Frees what was taken out, but for `kept`. No other thread may be reading.
  void reclaim(const Specialisation* kept);

 private:
  struct Slots {
    explicit Slots(size_t n) : mask(n - 1), entries(new std::atomic<const Specialisation*>[n]()) {}
    size_t mask;
    std::unique_ptr<std::atomic<const Specialisation*>[]> entries;
  };
  void place(Slots& slots, const Specialisation* spec);
  /// A table of the present specialisations with room for more.
  void publish(size_t slots);

  std::atomic<Slots*> slots_;
  std::vector<std::unique_ptr<Slots>> all_slots_;  // the last is the present one
  std::vector<std::unique_ptr<Specialisation>> specs_, retired_;
};

class KernelImpl {
 public:
  /// `globals_are_fixed`: the function's globals cannot be rebound, so launches need not compare them.
  KernelImpl(std::shared_ptr<const frontend::JitFunction> function, bool globals_are_fixed);
  ~KernelImpl();

  const std::string& name() const { return name_; }
  const std::shared_ptr<const frontend::JitFunction>& function() const { return function_; }
  std::span<const ParamDesc> params() const { return descriptions_; }

  Status launch(const std::array<int64_t, 3>& grid, std::span<const std::optional<Arg>> args,
                const LaunchOptions& options);
  Result<CheckedLaunch> launch_checked(const std::array<int64_t, 3>& grid, std::span<const std::optional<Arg>> args,
                                       const LaunchOptions& options);
  Status compile_checked(std::span<const std::optional<Arg>> args, const LaunchOptions& options);
  Result<KernelInfo> compile(std::span<const std::optional<Arg>> args, const LaunchOptions& options,
                             std::string_view target);
  Result<PreparedLaunch> prepare(const std::array<int64_t, 3>& grid, std::span<const std::optional<Arg>> args,
                                 const LaunchOptions& options);
  /// As launch() would, without the launch.
  Status note_launch(std::span<const std::optional<Arg>> args, const LaunchOptions& options);
  /// The specialisation that was launched last; null when none was.
  std::shared_ptr<const LaunchedAs> launched_as() const;
  std::shared_ptr<const KernelInfo> launched() const;
  bool was_launched_as(const KernelInfo* info) const;
  /// A hash of the compiler for `device` and of all source texts and globals that the code follows from, wherever they
  /// stand: this keeps a result about this kernel (for example the fastest configuration) from outliving it.
  std::string identity(DeviceImpl& device);

 private:
  Status bind(std::span<const std::optional<Arg>> args, BoundArgs& bound) const;
  /// With globals as they are now; null when it is not compiled yet.
  const Specialisation* look_up(std::string_view key);
  Status launch_general(const std::array<int64_t, 3>& grid, std::span<const std::optional<Arg>> args,
                        const LaunchOptions& options);
  Result<std::shared_ptr<DeviceImpl>> device_of(const BoundArgs& bound, const LaunchOptions& options) const;
  Result<const Specialisation*> specialise(std::span<const std::optional<Arg>> args, BoundArgs& bound,
                                           const std::shared_ptr<DeviceImpl>& device, const LaunchOptions& options);
  /// Without a lock; all but its key.
  Result<std::unique_ptr<Specialisation>> build(std::span<const std::optional<Arg>> args, const BoundArgs& bound,
                                                const std::shared_ptr<DeviceImpl>& device, const LaunchOptions& options,
                                                const Closure& closure);
  /// The guarded code of a specialisation, compiled at its first use.
  Result<std::shared_ptr<const CheckedCode>> checked_code(std::span<const std::optional<Arg>> args,
                                                          const BoundArgs& bound,
                                                          const std::shared_ptr<DeviceImpl>& device,
                                                          const LaunchOptions& options);
  void refresh_closure();
  /// Under the mutex, behind an insertion: keeps to KILN_KERNEL_LIMIT.
  void drop_old();
  /// As of now; without a lock.
  std::shared_ptr<const Closure> current_closure();

  // What a launch reads comes first. guess_ is last_ while a launch may try it before it looks further: null when its
  // key is none for that (KeySteps::match).
  std::atomic<const Specialisation*> guess_{nullptr};
  std::shared_ptr<const frontend::JitFunction> function_;
  std::string name_;
  bool globals_are_fixed_;
  std::vector<ParamInfo> params_;
  std::vector<ParamRule> rules_;
  std::vector<ParamDesc> descriptions_;
  std::mutex mutex_;
  std::set<std::string> compiling_;  // keys whose specialisation some thread compiles, outside of the lock
  std::condition_variable compiled_;
  std::shared_ptr<const Closure> closure_;  // made at the first compilation
  std::atomic<bool> watching_{false};       // closure_ has watches to look at
  std::atomic<const Specialisation*> last_{nullptr};
  std::atomic<uint64_t> look_ups_{0};
  SpecTable table_;
  std::map<std::string, std::shared_ptr<const CheckedCode>> checked_;  // by key, while closure_ is valid
};

}  // namespace kiln::runtime
