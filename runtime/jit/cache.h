// Compiled kernels on disk: one file per key, named by the key's hash. A file holds the whole key, so a collision of
// hashes is a miss, and a checksum, so a torn or damaged file is a miss too. What is in there is executed, so it must
// be written by this user (support/trusted_folder.h): a checksum keeps nobody from planting something.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compile.h"
#include "support/trusted_folder.h"

namespace kiln::runtime {

/// A compiled kernel as bytes and back; nullopt for bytes that serialize() did not make.
std::string serialize(const CompiledKernel& kernel);
std::optional<CompiledKernel> deserialize(std::string_view bytes);
/// KernelInfo::code.
std::string code_hash(const CompiledKernel& kernel);

class DiskCache {
 public:
  /// `warn` gets at most one sentence: why kernels are not kept.
  explicit DiskCache(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  std::optional<CompiledKernel> find(const std::string& key);
  /// Failures (no folder, no permission, a full disk) are reported once and only disable caching.
  void store(const std::string& key, const CompiledKernel& kernel);

  /// The sound files, last used first, for import_file() elsewhere. kIo, also where the cache is off.
  static Result<std::vector<std::string>> export_files();
  /// Keeps such a file, under the name that follows from what is in it. kValue: it is none, or damaged.
  Status import_file(std::string_view file);

 private:
  static Result<TrustedFolder> open_folder();
  Status keep(const TrustedFolder& kept, const std::string& key, std::string_view file);
  std::optional<TrustedFolder> folder();  // nullopt: the cache is off, or not to be had
  void remove_old(const TrustedFolder& folder);
  void warn_once(const std::string& sentence);

  std::function<void(const std::string&)> warn_;
  std::atomic<bool> warned_{false};
  std::atomic<unsigned> stores_{0};
};

}  // namespace kiln::runtime
