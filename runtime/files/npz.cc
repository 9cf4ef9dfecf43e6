// .npz files: zip archives of .npy files.
#include <set>

#include "runtime/files/npy.h"
#include "runtime/files/zip.h"

namespace kiln::runtime {

namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

Status save_npz(std::span<const NamedTensor> tensors, const std::string& path) {
  std::set<std::string_view> names;
  std::vector<std::string> headers;
  for (const NamedTensor& t : tensors) {
    if (!names.insert(t.name).second) return error(ErrorKind::kValue, "{}: two tensors are named '{}'", path, t.name);
    if (t.name.empty() || t.name.size() + kSuffix.size() > 0xffff || t.name.find('\0') != std::string::npos)
      return error(ErrorKind::kValue, "{}: '{}' cannot be the name of a file in an archive", path, t.name);
    auto header = npy_header(t.tensor);
    if (!header.ok()) {
      header.error().message.insert(0, "'" + t.name + "': ");
      return std::move(header.error());
    }
    headers.push_back(*std::move(header));
  }
  KILN_TRY(ZipWriter archive, ZipWriter::open(path));
  for (size_t i = 0; i < tensors.size(); ++i) {
    KILN_TRY(std::vector<std::byte> bytes, tensors[i].tensor.to_bytes());
    KILN_CHECK_OK(archive.add(tensors[i].name + std::string(kSuffix), headers[i],
                              {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
  return archive.finish();
}

Result<std::vector<NamedTensor>> load_npz(const Device& device, const std::string& path) {
  KILN_TRY(InputFile file, InputFile::open(path));
  KILN_TRY(std::vector<ZipEntry> entries, read_zip(file, ".npz file"));
  for (const ZipEntry& e : entries)
    if (!e.name.ends_with(kSuffix))
      return file.error(ErrorKind::kUnsupported, "its entry '{}' is no .npy file", e.name);
  std::vector<NamedTensor> out;
  for (const ZipEntry& e : entries) {
    KILN_TRY(ZipContent content, ZipContent::open(file, e));
    auto tensor = read_npy(device, content.file(), content.begin(), content.begin() + content.bytes());
    if (!tensor.ok()) {
      tensor.error().message.insert(path.size() + 2, "'" + e.name + "': ");
      return std::move(tensor.error());
    }
    out.push_back({e.name.substr(0, e.name.size() - kSuffix.size()), *std::move(tensor)});
  }
  return out;
}

}  // namespace kiln::runtime
