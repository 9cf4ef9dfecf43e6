// os and os.path: files, folders and paths.
#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <thread>

#include "repl/modules/std/std.h"
#include "repl/script/interp/function_generator.h"
#include "repl/script/value/bytes.h"
#include "support/environment.h"
#include "support/escape.h"
#include "support/files.h"

namespace kiln::script {

namespace fs = std::filesystem;

std::string path_text(Interp& in, const Value& v) {
  if (!v.get<Str>())
    // pathlib's paths and classes with __fspath__.
    if (auto f = in.find_attribute(v, "__fspath__"); f && !v.get<TypeObject>()) return path_text(in, in.call(*f, {}));
  std::string text = in.to_text(v, "the path");
  if (text.find('\0') != std::string::npos) in.fail(ErrorKind::kValue, "a path has no character of code 0");
  return text;
}

namespace {

std::string path_argument(Interp& in, NativeArgs& a) {
  return a[0].missing() || a[0].is_none() ? "." : path_text(in, a[0]);
}

[[noreturn]] void fail_errno(Interp& in, int code, const std::string& path) {
  const char* type = code == ENOENT    ? "FileNotFoundError"
                     : code == EEXIST  ? "FileExistsError"
                     : code == EISDIR  ? "IsADirectoryError"
                     : code == ENOTDIR ? "NotADirectoryError"
                     : code == EACCES  ? "PermissionError"
                                       : "OSError";
  try {
    in.fail_as(type, "[Errno {}] {}: {}", code, std::strerror(code), ast::repr(ast::Constant(path)));
    // OSError's args are (number, text, path), whatever str() shows.
  } catch (ScriptError& e) {
    e.exception.get<Instance>()->fields.set(
        "args",
        make<Tuple>(std::vector<Value>{Value::integer(code), Value::str(std::strerror(code)), Value::str(path)}));
    throw;
  }
}

bool stat_of(const std::string& path, struct stat& s) { return ::stat(path.c_str(), &s) == 0; }

/// Of a path that must be there.
struct stat required_stat(Interp& in, const Value& v) {
  const std::string path = path_text(in, v);
  struct stat s;
  if (!stat_of(path, s)) fail_errno(in, errno, path);
  return s;
}

Value path_exists(Interp& in, NativeArgs& a) {
  struct stat s;
  return Value::boolean(stat_of(path_text(in, a[0]), s));
}
Value isfile(Interp& in, NativeArgs& a) {
  struct stat s;
  return Value::boolean(stat_of(path_text(in, a[0]), s) && S_ISREG(s.st_mode));
}
Value isdir(Interp& in, NativeArgs& a) {
  struct stat s;
  return Value::boolean(stat_of(path_text(in, a[0]), s) && S_ISDIR(s.st_mode));
}
Value samefile(Interp& in, NativeArgs& a) {
  const struct stat one = required_stat(in, a[0]), other = required_stat(in, a[1]);
  return Value::boolean(one.st_dev == other.st_dev && one.st_ino == other.st_ino);
}
Value islink(Interp& in, NativeArgs& a) {
  struct stat s;
  return Value::boolean(::lstat(path_text(in, a[0]).c_str(), &s) == 0 && S_ISLNK(s.st_mode));
}
Value getsize(Interp& in, NativeArgs& a) { return Value::integer(required_stat(in, a[0]).st_size); }
/// With nanoseconds, as far as a double has them.
double seconds_of(const struct timespec& t) {
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

Value os_stat(Interp& in, NativeArgs& a) {
  const struct stat s = required_stat(in, a[0]);
  auto out = make<Opaque>("os.stat_result");
  auto set = [&](const char* name, auto v) { out->members.set(name, Value::integer(static_cast<int64_t>(v))); };
  set("st_mode", s.st_mode), set("st_ino", s.st_ino), set("st_dev", s.st_dev), set("st_nlink", s.st_nlink);
  set("st_uid", s.st_uid), set("st_gid", s.st_gid), set("st_size", s.st_size);
  out->members.set("st_atime", Value::real(seconds_of(s.st_atim)));
  out->members.set("st_mtime", Value::real(seconds_of(s.st_mtim)));
  out->members.set("st_ctime", Value::real(seconds_of(s.st_ctim)));
  return out;
}
Value getmtime(Interp& in, NativeArgs& a) { return Value::real(seconds_of(required_stat(in, a[0]).st_mtim)); }
Value path_join(Interp& in, NativeArgs& a) {
  std::string out;
  bool first = true;
  for (const Value& v : a[0].get<Tuple>()->items) {
    const std::string part = path_text(in, v);
    // An absolute part starts anew, as in Python.
    if (!part.empty() && part[0] == '/') out.clear();
    if (!first && !out.empty() && out.back() != '/') out += '/';
    out += part;
    first = false;
  }
  return Value::str(std::move(out));
}
std::string folder_of(const std::string& p) {
  std::string head = p.substr(0, p.rfind('/') + 1);
  // Slashes at the end go, unless the path is nothing else.
  if (head.find_first_not_of('/') != std::string::npos) head.erase(head.find_last_not_of('/') + 1);
  return head;
}
Value path_basename(Interp& in, NativeArgs& a) {
  const std::string p = path_text(in, a[0]);
  return Value::str(p.substr(p.rfind('/') + 1));
}
Value path_dirname(Interp& in, NativeArgs& a) { return Value::str(folder_of(path_text(in, a[0]))); }
Value two_texts(std::string x, std::string y) {
  return make<Tuple>(std::vector<Value>{Value::str(std::move(x)), Value::str(std::move(y))});
}
Value path_split(Interp& in, NativeArgs& a) {
  const std::string p = path_text(in, a[0]);
  return two_texts(folder_of(p), p.substr(p.rfind('/') + 1));
}
Value path_splitext(Interp& in, NativeArgs& a) {
  const std::string p = path_text(in, a[0]);
  const size_t name = p.rfind('/') + 1, dot = p.rfind('.');
  // A dot at the beginning of a name is no ending: ".bashrc" has none.
  const bool has = dot != std::string::npos && dot > name && p.find_first_not_of('.', name) < dot;
  return has ? two_texts(p.substr(0, dot), p.substr(dot)) : two_texts(p, "");
}
std::string normal(const std::string& p) {
  if (p.empty()) return ".";
  std::string out = fs::path(p).lexically_normal().string();
  if (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}
/// How many elements all begin with.
template <class T>
size_t common_elements(const std::vector<T>& all) {
  size_t n = all[0].size();
  for (const T& one : all) {
    // The first is compared with itself, too, and shortens nothing.
    size_t same = 0;
    while (same < std::min(n, one.size()) && one[same] == all[0][same]) ++same;
    n = same;
  }
  return n;
}
std::vector<std::string> path_texts(Interp& in, const Value& many) {
  std::vector<std::string> out;
  for (const Value& v : in.to_vector(many)) out.push_back(path_text(in, v));
  return out;
}
Value path_commonprefix(Interp& in, NativeArgs& a) {
  const std::vector<std::string> paths = path_texts(in, a[0]);
  if (paths.empty()) return Value::str("");
  std::string prefix = paths[0].substr(0, common_elements(paths));
  // Not inside a character.
  while (prefix.size() < paths[0].size() && (static_cast<uint8_t>(paths[0][prefix.size()]) & 0xC0) == 0x80)
    prefix.pop_back();
  return Value::str(std::move(prefix));
}
Value path_commonpath(Interp& in, NativeArgs& a) {
  const std::vector<std::string> paths = path_texts(in, a[0]);
  if (paths.empty()) in.fail(ErrorKind::kValue, "commonpath() needs a path");
  const bool absolute = paths[0].starts_with('/');
  std::vector<std::vector<std::string>> parts(paths.size());
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].starts_with('/') != absolute)
      in.fail(ErrorKind::kValue, "commonpath() of absolute and relative paths");
    for (size_t at = 0; at < paths[i].size();) {
      const size_t end = std::min(paths[i].find('/', at), paths[i].size());
      const std::string part = paths[i].substr(at, end - at);
      if (!part.empty() && part != ".") parts[i].push_back(part);
      at = end + 1;
    }
  }
  const size_t n = common_elements(parts);
  const std::vector<std::string> common(parts[0].begin(), parts[0].begin() + static_cast<ptrdiff_t>(n));
  return Value::str((absolute ? "/" : "") + fmt::format("{}", fmt::join(common, "/")));
}
std::string current_folder(Interp& in) {
  std::error_code bad;
  const fs::path here = fs::current_path(bad);
  if (bad) in.fail_as("OSError", "the current folder cannot be read: {}", bad.message());
  return here.string();
}
Value path_normpath(Interp& in, NativeArgs& a) { return Value::str(normal(path_text(in, a[0]))); }
Value path_abspath(Interp& in, NativeArgs& a) {
  const std::string p = path_text(in, a[0]);
  return Value::str(normal(p.starts_with('/') ? p : current_folder(in) + "/" + p));
}
Value path_realpath(Interp& in, NativeArgs& a) {
  const std::string p = path_text(in, a[0]);
  std::error_code bad;
  // A part that is not there yet is kept as it is written.
  const fs::path real = fs::weakly_canonical(p.starts_with('/') ? p : current_folder(in) + "/" + p, bad);
  return bad ? path_abspath(in, a) : Value::str(normal(real.string()));
}
Value path_isabs(Interp& in, NativeArgs& a) { return Value::boolean(path_text(in, a[0]).starts_with('/')); }
Value path_expanduser(Interp& in, NativeArgs& a) {
  const std::string p = path_text(in, a[0]);
  if (p != "~" && !p.starts_with("~/")) return Value::str(p);
  // The script's own environment, which setenv() may not have been told of.
  const std::optional<std::string> home = environment("HOME");
  if (!home) return Value::str(p);
  const std::string path = home->substr(0, home->find_last_not_of('/') + 1) + p.substr(1);
  return Value::str(path.empty() ? "/" : path);
}
Value path_relpath(Interp& in, NativeArgs& a) {
  auto absolute = [&](const std::string& p) { return p.starts_with('/') ? p : current_folder(in) + "/" + p; };
  const std::string start = a[1].missing() || a[1].is_none() ? "." : path_text(in, a[1]);
  return Value::str(
      normal(fs::path(normal(absolute(path_text(in, a[0])))).lexically_relative(normal(absolute(start))).string()));
}

Value cpu_count(Interp&, NativeArgs&) { return Value::integer(std::thread::hardware_concurrency()); }
Value getpid(Interp&, NativeArgs&) { return Value::integer(::getpid()); }
Value getcwd(Interp& in, NativeArgs&) { return Value::str(current_folder(in)); }
Value os_chdir(Interp& in, NativeArgs& a) {
  const std::string path = path_text(in, a[0]);
  if (::chdir(path.c_str()) != 0) fail_errno(in, errno, path);
  return Value::none();
}
Value os_listdir(Interp& in, NativeArgs& a) {
  const std::string path = path_argument(in, a);
  std::error_code bad;
  std::vector<std::string> names;
  for (fs::directory_iterator it(path, bad), end; !bad && it != end; it.increment(bad))
    names.push_back(it->path().filename().string());
  if (bad) fail_errno(in, bad.value(), path);
  // Sorted, unlike Python's: what a script prints then is the same everywhere.
  std::sort(names.begin(), names.end());
  std::vector<Value> out;
  for (std::string& n : names) out.push_back(Value::str(std::move(n)));
  return make<List>(std::move(out));
}
Value os_glob(Interp& in, NativeArgs& a) {
  const std::string pattern = path_text(in, a[0]);
  if (pattern.find("**") != std::string::npos)
    in.fail(ErrorKind::kUnsupported, "'**' in a pattern of files is not supported: use os.walk()");
  glob_t found{};
  std::vector<Value> out;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; ++i) out.push_back(Value::str(found.gl_pathv[i]));
  ::globfree(&found);
  return make<List>(std::move(out));
}
mode_t mode_of(Interp& in, const Value& v) {
  return static_cast<mode_t>(v.missing() ? 0777 : in.to_int(v, "the mode") & 07777);
}
Value os_mkdir(Interp& in, NativeArgs& a) {
  const std::string path = path_text(in, a[0]);
  if (::mkdir(path.c_str(), mode_of(in, a[1])) != 0) fail_errno(in, errno, path);
  return Value::none();
}
Value os_makedirs(Interp& in, NativeArgs& a) {
  const std::string path = path_text(in, a[0]);
  std::error_code bad;
  // The mode is that of the last folder alone, as in Python.
  std::string last = path;
  while (last.size() > 1 && last.ends_with('/')) last.pop_back();
  if (const fs::path around = fs::path(last).parent_path(); !around.empty()) fs::create_directories(around, bad);
  if (bad) fail_errno(in, bad.value(), path);
  if (::mkdir(last.c_str(), mode_of(in, a[1])) == 0) return Value::none();
  // exist_ok has the third place, behind the mode.
  const int problem = errno;
  struct stat s;
  const bool is_there = problem == EEXIST && stat_of(last, s) && S_ISDIR(s.st_mode);
  if (!is_there || a[2].missing() || !in.truth(a[2])) fail_errno(in, problem, path);
  return Value::none();
}
Value os_remove(Interp& in, NativeArgs& a) {
  const std::string path = path_text(in, a[0]);
  if (::unlink(path.c_str()) != 0) fail_errno(in, errno, path);
  return Value::none();
}
Value os_rmdir(Interp& in, NativeArgs& a) {
  const std::string path = path_text(in, a[0]);
  if (::rmdir(path.c_str()) != 0) fail_errno(in, errno, path);
  return Value::none();
}
Value os_rename(Interp& in, NativeArgs& a) {
  const std::string from = path_text(in, a[0]), to = path_text(in, a[1]);
  if (::rename(from.c_str(), to.c_str()) != 0) fail_errno(in, errno, from);
  return Value::none();
}
Value os_uname(Interp&, NativeArgs&) {
  utsname u{};
  ::uname(&u);
  std::vector<Value> out;
  for (const char* text : {u.sysname, u.nodename, u.release, u.version, u.machine}) out.push_back(Value::str(text));
  return make<Tuple>(std::move(out));
}
Value os_fspath(Interp& in, NativeArgs& a) { return Value::str(path_text(in, a[0])); }
Value os_getenv(Interp& in, NativeArgs& a) {
  return in.call(in.attribute(in.attribute(in.import_module("os"), "environ"), "get"),
                 {a[0], a[1].missing() ? Value::none() : a[1]});
}

Value os_symlink(Interp& in, NativeArgs& a) {
  const std::string to = path_text(in, a[0]), path = path_text(in, a[1]);
  if (::symlink(to.c_str(), path.c_str()) != 0) fail_errno(in, errno, path);
  return Value::none();
}
Value os_readlink(Interp& in, NativeArgs& a) {
  const std::string path = path_text(in, a[0]);
  std::string to(PATH_MAX, 0);
  const ssize_t n = ::readlink(path.c_str(), to.data(), to.size());
  if (n < 0) fail_errno(in, errno, path);
  to.resize(static_cast<size_t>(n));
  return Value::str(std::move(to));
}

constexpr NativeDef kOs[] = {
    {"chdir(path)", os_chdir, "changes the current folder"},
    {"cpu_count()", cpu_count, "how many processors there are"},
    {"fspath(path)", os_fspath, "a path as text"},
    {"getcwd()", getcwd, "the current folder"},
    {"getenv(key, default=None)", os_getenv, "an environment variable, or the default"},
    {"getpid()", getpid, "this process's number"},
    {"glob(pattern)", os_glob, "the files that a pattern names"},
    {"listdir(path='.')", os_listdir, "the names in a folder, sorted"},
    {"makedirs(name, mode=511, exist_ok=False)", os_makedirs, "makes a folder and those around it"},
    {"mkdir(path, mode=511)", os_mkdir, "makes a folder"},
    {"readlink(path)", os_readlink, "where a link leads"},
    {"remove(path)", os_remove, "deletes a file"},
    {"rename(src, dst)", os_rename, "moves a file"},
    {"replace(src, dst)", os_rename, "moves a file"},
    {"rmdir(path)", os_rmdir, "deletes an empty folder"},
    {"stat(path)", os_stat, "st_size, st_mtime, st_mode and the other facts of a file"},
    {"symlink(src, dst)", os_symlink, "makes a link to src"},
    {"uname()", os_uname, "system, node, release, version, machine"},
    {"unlink(path)", os_remove, "deletes a file"},
};
constexpr NativeDef kOsPath[] = {
    {"abspath(path)", path_abspath, "the path from the root"},
    {"basename(path)", path_basename, "the last part of a path"},
    {"dirname(path)", path_dirname, "the path without its last part"},
    {"exists(path)", path_exists, "is there such a file?"},
    {"expanduser(path)", path_expanduser, "with the user's folder in place of '~'"},
    {"getmtime(path)", getmtime, "when it was last changed"},
    {"getsize(path)", getsize, "its size in bytes"},
    {"isabs(path)", path_isabs, "does it begin at the root?"},
    {"isdir(path)", isdir, "is it a folder?"},
    {"islink(path)", islink, "is it a link?"},
    {"isfile(path)", isfile, "is it a file?"},
    {"commonpath(paths)", path_commonpath, "the longest path that all begin with"},
    {"commonprefix(paths)", path_commonprefix, "the longest text that all begin with, which may end inside a name"},
    {"join(*parts)", path_join, "the parts as one path"},
    {"normpath(path)", path_normpath, "without '.' and '..'"},
    {"realpath(path)", path_realpath, "the path from the root, without links"},
    {"relpath(path, start='.')", path_relpath, "the path from a folder"},
    {"samefile(path, other)", samefile, "are both the same file?"},
    {"split(path)", path_split, "(dirname, basename)"},
    {"splitext(path)", path_splitext, "(path without ending, ending)"},
};

/// A file of open(), which gives texts, or bytes in binary mode. Its content is read at once, or kept until it is
/// closed or flushed.
class TextFile : public Object {
 public:
  static inline const KindOf<TextFile> kKind{"_io.TextIOWrapper"};
  TextFile(std::string p, std::string m) : Object(kKind), path(std::move(p)), mode(std::move(m)) {}
  ~TextFile() override {
    if (fd >= 0) ::close(fd);
  }
  std::optional<Value> attribute(Interp&, std::string_view name) override {
    if (name == "name") return Value::str(path);
    if (name == "mode") return Value::str(mode);
    if (name == "closed") return Value::boolean(fd < 0);
    if (name == "encoding" && !binary) return Value::str(encoding);
    if (name == "errors" && !binary) return Value::str(errors);
    return std::nullopt;
  }
  Value iterate(Interp& in) override;
  std::string repr(Interp&) override { return fmt::format("<file '{}' mode='{}'>", path, mode); }

  const std::string path, mode;
  int fd = -1;
  std::optional<int> known_as = {};  // the number that scripts see, where it is another
  bool can_read = false, can_write = false, binary = false;
  Value content(std::string s) const { return binary ? Value(make<Bytes>(std::move(s))) : Value::str(std::move(s)); }
  // Of texts, as open() takes them.
  std::string encoding = "utf-8", errors = "strict", line_end = "\n";
  bool translates = true;  // line ends are "\n" when they are read
  std::string raw;         // read and not yet decoded: a part of a character or of "\r\n"
  std::string ahead;       // decoded and not yet given
  size_t at = 0;
  bool has_translated = false;
};

TextFile& file(Interp& in, NativeArgs& a, bool to_write) {
  auto* f = a.self->get<TextFile>();
  if (f->fd < 0) in.fail(ErrorKind::kValue, "I/O operation on closed file");
  if (to_write ? !f->can_write : !f->can_read)
    in.fail_as("OSError", "the file '{}' was opened to {}: mode '{}'", f->path, to_write ? "read" : "write", f->mode);
  return *f;
}

/// The bytes that no further ones can change: those of whole characters, without a '\r' that a '\n' may follow.
size_t whole_part(std::string_view raw, bool translates) {
  size_t n = raw.size();
  // A character has four bytes at most, so its beginning is among the last three, or it is whole.
  for (size_t back = 1; back <= std::min<size_t>(3, raw.size()); ++back) {
    const auto byte = static_cast<uint8_t>(raw[raw.size() - back]);
    if (byte < 0x80) break;
    if (byte < 0xC0) continue;
    if (back < (byte >= 0xF0 ? 4u : byte >= 0xE0 ? 3u : 2u)) n = raw.size() - back;
    break;
  }
  return translates && n > 0 && raw[n - 1] == '\r' ? n - 1 : n;
}

std::string with_plain_ends(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i] == '\r' ? '\n' : text[i];
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  return out;
}

/// Reads more; false at the end.
bool fill(Interp& in, TextFile& f) {
  constexpr size_t kPiece = size_t{1} << 16;
  // What was given is dropped here and not at each read, which would move the rest each time.
  if (f.at > 0) f.ahead.erase(0, std::exchange(f.at, 0));
  if (f.ahead.size() > kLargestFile) in.fail(ErrorKind::kMemory, "the file '{}' is too large to be read", f.path);
  char piece[kPiece];
  ssize_t n = 0;
  do {
    in.check_interrupt();
    n = ::read(f.fd, piece, kPiece);
  } while (n < 0 && errno == EINTR);
  if (n < 0) fail_errno(in, errno, f.path);
  if (f.binary) return f.ahead.append(piece, static_cast<size_t>(n)), n > 0;
  f.raw.append(piece, static_cast<size_t>(n));
  // At the end of the file, what is left is decoded as it is.
  const size_t whole = n > 0 ? whole_part(f.raw, f.translates) : f.raw.size();
  std::string text = decode_bytes(in, f.raw.substr(0, whole), f.encoding, f.errors);
  f.raw.erase(0, whole);
  if (f.translates && text.find('\r') != std::string::npos) {
    f.has_translated = true;
    text = with_plain_ends(text);
  }
  f.ahead += text;
  return n > 0;
}

/// How many bytes of the file were read and not given.
int64_t unread(Interp& in, const TextFile& f) {
  const size_t ahead = f.ahead.size() - f.at;
  if (f.binary || ahead + f.raw.size() == 0) return static_cast<int64_t>(ahead);
  // Characters that were changed do not tell how many bytes they had.
  if (f.has_translated || f.errors != "strict")
    in.fail_as("OSError", "the position in '{}' is not known: line ends or characters were replaced", f.path);
  return static_cast<int64_t>(encode_text(in, f.ahead.substr(f.at), f.encoding, f.errors).size() + f.raw.size());
}

bool read_line(Interp& in, TextFile& f, std::string& out) {
  size_t end = 0, from = 0;
  const std::string_view mark = f.binary ? "\n" : std::string_view(f.line_end);
  while ((end = f.ahead.find(mark, f.at + from)) == std::string::npos) {
    const size_t left = f.ahead.size() - f.at;
    // A mark of two bytes may lie across two pieces.
    from = left < mark.size() ? 0 : left - (mark.size() - 1);
    if (!fill(in, f)) {
      end = f.ahead.find(mark, f.at + from);
      break;
    }
  }
  const size_t stop = end == std::string::npos ? f.ahead.size() : end + mark.size();
  if (stop == f.at) return false;
  out = f.ahead.substr(f.at, stop - f.at);
  f.at = stop;
  return true;
}

class LineIterator : public IteratorObject {
 public:
  explicit LineIterator(TextFile* f) : file_(f) {}
  bool next(Interp& in, Value& out) override {
    NativeArgs none{{}, &file_};
    std::string line;
    if (!read_line(in, file(in, none, false), line)) return false;
    out = file_.get<TextFile>()->content(std::move(line));
    return true;
  }

 private:
  Value file_;
};
Value TextFile::iterate(Interp&) { return make<LineIterator>(this); }

Value file_read(Interp& in, NativeArgs& a) {
  TextFile& f = file(in, a, false);
  const int64_t size = given(a[0]) ? in.to_int(a[0], "read()'s size") : -1;
  while (size < 0 && fill(in, f)) continue;
  size_t n = size < 0 ? f.ahead.size() - f.at : 0;
  for (int64_t k = 0; k < size; ++k) {  // characters, or bytes
    bool more = true;
    while (more && f.at + n >= f.ahead.size()) more = fill(in, f);
    if (f.at + n >= f.ahead.size()) break;
    n += f.binary ? 1 : std::max<size_t>(utf8_length(std::string_view(f.ahead).substr(f.at + n)), 1);
  }
  std::string out = f.ahead.substr(f.at, n);
  f.at += n;
  return f.content(std::move(out));
}
Value file_readline(Interp& in, NativeArgs& a) {
  std::string line;
  TextFile& f = file(in, a, false);
  read_line(in, f, line);
  return f.content(std::move(line));
}
Value file_readlines(Interp& in, NativeArgs& a) {
  std::vector<Value> out;
  TextFile& f = file(in, a, false);
  for (std::string line; read_line(in, f, line);) out.push_back(f.content(line));
  return make<List>(std::move(out));
}
Value file_iter(Interp&, NativeArgs& a) { return *a.self; }
Value file_next(Interp& in, NativeArgs& a) {
  std::string line;
  TextFile& f = file(in, a, false);
  if (!read_line(in, f, line)) stop_iteration(in, Value::none());
  return f.content(std::move(line));
}
Value file_write(Interp& in, NativeArgs& a) {
  TextFile& f = file(in, a, true);
  std::string encoded;
  if (f.binary && f.ahead.size() > f.at) {
    // Behind what was given, not behind what was read.
    if (::lseek(f.fd, -unread(in, f), SEEK_CUR) < 0) fail_errno(in, errno, f.path);
    f.ahead.clear(), f.at = 0;
  } else if (!f.binary) {
    encoded = encode_text(in, in.to_text(a[0], "write()'s text"), f.encoding, f.errors);
    // newline="\r\n" writes it in place of each line end.
    if (f.line_end != "\n")
      for (size_t at = 0; (at = encoded.find('\n', at)) != std::string::npos; at += f.line_end.size())
        encoded.replace(at, 1, f.line_end);
  }
  std::string_view left = f.binary ? std::string_view(to_bytes(in, a[0], "write()'s argument")) : encoded;
  while (!left.empty()) {
    const ssize_t n = ::write(f.fd, left.data(), left.size());
    if (n < 0 && errno == EINTR) {
      in.check_interrupt();
      continue;
    }
    if (n < 0) fail_errno(in, errno, f.path);
    left.remove_prefix(static_cast<size_t>(n));
  }
  return Value::integer(in.length(a[0]));
}
Value file_writelines(Interp& in, NativeArgs& a) {
  in.for_each(a[0], [&](Value line) {
    Value slots[] = {std::move(line)};
    NativeArgs one{slots, a.self};
    file_write(in, one);
    return true;
  });
  return Value::none();
}
Value file_flush(Interp&, NativeArgs&) { return Value::none(); }
Value file_close(Interp& in, NativeArgs& a) {
  auto* f = a.self->get<TextFile>();
  if (f->fd >= 0 && ::close(std::exchange(f->fd, -1)) != 0) fail_errno(in, errno, f->path);
  return Value::none();
}
Value file_enter(Interp&, NativeArgs& a) { return *a.self; }
Value file_exit(Interp& in, NativeArgs& a) {
  file_close(in, a);
  return Value::boolean(false);
}
Value file_seek(Interp& in, NativeArgs& a) {
  auto* f = a.self->get<TextFile>();
  if (f->fd < 0) in.fail(ErrorKind::kValue, "I/O operation on closed file");
  const int64_t whence = a[1].missing() ? 0 : in.to_int(a[1], "whence");
  const int64_t to = in.to_int(a[0], "the position") - (whence == 1 ? unread(in, *f) : 0);
  // What was read ahead is of the old position.
  f->ahead.clear(), f->raw.clear();
  f->at = 0;
  const off_t now = ::lseek(f->fd, to, whence == 2 ? SEEK_END : whence == 1 ? SEEK_CUR : SEEK_SET);
  if (now < 0) fail_errno(in, errno, f->path);
  return Value::integer(now);
}

Value file_tell(Interp& in, NativeArgs& a) {
  auto* f = a.self->get<TextFile>();
  if (f->fd < 0) in.fail(ErrorKind::kValue, "I/O operation on closed file");
  const off_t now = ::lseek(f->fd, 0, SEEK_CUR);
  if (now < 0) fail_errno(in, errno, f->path);
  return Value::integer(now - unread(in, *f));
}

Value file_isatty(Interp&, NativeArgs& a) {
  auto* f = a.self->get<TextFile>();
  return Value::boolean(f->fd >= 0 && ::isatty(f->fd) != 0);
}
Value file_fileno(Interp& in, NativeArgs& a) {
  auto* f = a.self->get<TextFile>();
  if (f->fd < 0) in.fail(ErrorKind::kValue, "I/O operation on closed file");
  return Value::integer(f->known_as.value_or(f->fd));
}
Value file_readable(Interp&, NativeArgs& a) { return Value::boolean(a.self->get<TextFile>()->can_read); }
Value file_writable(Interp&, NativeArgs& a) { return Value::boolean(a.self->get<TextFile>()->can_write); }

constexpr NativeDef kFileMethods[] = {
    {"__enter__()", file_enter, "the file itself"},
    {"__exit__(*exception)", file_exit, "closes it"},
    {"__iter__()", file_iter, "the file itself"},
    {"__next__()", file_next, "the next line, with its end"},
    {"close()", file_close, "closes it"},
    {"fileno()", file_fileno, "the number that the system knows it by"},
    {"flush()", file_flush, "does nothing: what is written is not buffered"},
    {"isatty()", file_isatty, "is it a terminal?"},
    {"readable()", file_readable, "was it opened to be read?"},
    {"read(size=-1)", file_read, "the content, or that many characters or bytes of it"},
    {"readline()", file_readline, "the next line, with its end"},
    {"readlines()", file_readlines, "the lines, with their ends"},
    {"seek(offset, whence=0)", file_seek, "goes to a position"},
    {"tell()", file_tell, "the position"},
    {"writable()", file_writable, "was it opened to be written?"},
    {"write(text)", file_write, "writes a text, or bytes in binary mode"},
    {"writelines(lines)", file_writelines, "writes each text"},
};

/// encoding, errors and newline, which binary files do not take.
void read_text_options(Interp& in, NativeArgs& a, TextFile& f) {
  constexpr size_t kEncoding = 3, kErrors = 4, kNewline = 5;
  if (f.binary) {
    for (const auto& [i, name] : {std::pair(kEncoding, "encoding"), {kErrors, "errors"}, {kNewline, "newline"}})
      if (given(a[i])) in.fail(ErrorKind::kValue, "binary mode doesn't take an {} argument", name);
    return;
  }
  if (given(a[kEncoding])) f.encoding = in.to_text(a[kEncoding], "open()'s encoding");
  if (given(a[kErrors])) f.errors = in.to_text(a[kErrors], "open()'s errors");
  if (f.errors != "strict" && f.errors != "ignore" && f.errors != "replace")
    in.fail_as("LookupError", "errors='{}' is not there: strict, ignore and replace are", f.errors);
  decode_bytes(in, "", f.encoding, f.errors);  // an encoding that is not there fails here
  if (!given(a[kNewline])) return;
  const std::string& newline = in.to_text(a[kNewline], "open()'s newline");
  if (!newline.empty() && newline != "\n" && newline != "\r" && newline != "\r\n")
    in.fail(ErrorKind::kValue, "illegal newline value: {}", in.repr(a[kNewline]));
  f.translates = false;
  if (!newline.empty()) f.line_end = newline;
}

Value open_file(Interp& in, NativeArgs& a) {
  const std::string path = path_text(in, a[0]);
  std::string mode = a[1].missing() ? "r" : in.to_text(a[1], "open()'s mode");
  std::string plain = mode;
  const bool binary = std::erase(plain, 'b') > 0;
  if (std::erase(plain, 't') > 0 && binary)
    in.fail(ErrorKind::kValue, "open()'s mode cannot have both b and t: {}", in.repr(a[1]));
  const bool plus = std::erase(plain, '+') > 0;
  if (plain != "r" && plain != "w" && plain != "a" && plain != "x")
    in.fail(ErrorKind::kValue, "open()'s mode is r, w, a or x, with +, and b or t: got {}", in.repr(a[1]));
  auto f = make<TextFile>(path, mode);
  f->binary = binary;
  f->can_read = plain == "r" || plus;
  f->can_write = plain != "r" || plus;
  read_text_options(in, a, *f);
  const int flags = (plus           ? O_RDWR
                     : plain == "r" ? O_RDONLY
                                    : O_WRONLY) |
                    O_CLOEXEC |
                    (plain == "r"   ? 0
                     : plain == "w" ? O_CREAT | O_TRUNC
                     : plain == "a" ? O_CREAT | O_APPEND
                                    : O_CREAT | O_EXCL);
  struct stat s;
  // Opening a named pipe would wait for its other end, where no Ctrl-C is seen.
  if (stat_of(path, s) && S_ISDIR(s.st_mode)) fail_errno(in, EISDIR, path);
  f->fd = ::open(path.c_str(), flags | O_NONBLOCK, 0666);
  if (f->fd < 0) fail_errno(in, errno, path);
  // Only the opening must not wait; reads and writes may.
  ::fcntl(f->fd, F_SETFL, ::fcntl(f->fd, F_GETFL) & ~O_NONBLOCK);
  return f;
}
/// What sys.stdin reads, and input() with it.
struct StandardInput {
  explicit StandardInput(Interp&) {
    // Of its own: a script that closes it leaves the number 0 as it is.
    const int fd = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (fd < 0) return;
    file = make<TextFile>("<stdin>", "r");
    file->fd = fd;
    file->known_as = STDIN_FILENO;
    file->can_read = true;
  }
  Ref<TextFile> file;  // null: the process has no standard input
};

Value input_line(Interp& in, NativeArgs& a) {
  if (!a[0].missing()) in.print(in.str(a[0]));
  std::fflush(stdout);
  // Whatever a script has put in its place reads the line.
  const std::optional<Value> from = in.find_attribute(in.import_module("sys"), "stdin");
  if (!from || from->is_none()) in.fail_as("RuntimeError", "input(): there is no standard input");
  std::string line =
      in.to_text(in.call(in.attribute(*from, "readline"), {}), "the line that sys.stdin.readline() gave");
  if (line.empty()) in.fail_as("EOFError", "input(): the end of standard input");
  if (line.ends_with('\n')) line.pop_back();
  return Value::str(std::move(line));
}

constexpr NativeDef kOpen[] = {
    {"open(file, mode='r', buffering=-1, encoding=None, errors=None, newline=None)", open_file, "opens a file"},
    {"input(prompt='')", input_line, "a line of standard input, without its end"}};

}  // namespace

Value create_private(Interp& in, NativeArgs& a) {
  const std::string path = path_text(in, a[0]);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) fail_errno(in, errno, path);
  ::close(fd);
  return Value::none();
}

std::span<const NativeDef> os_functions() { return kOs; }
std::span<const NativeDef> os_path_functions() { return kOsPath; }
Value standard_input(Interp& in) {
  const Ref<TextFile>& f = in.state<StandardInput>().file;
  return f ? Value(f) : Value::none();
}
void install_open(Interp& in) {
  in.add_methods({TextFile::kKind, kFileMethods});
  in.add_builtins(kOpen);
}

}  // namespace kiln::script
