// Where modules that are texts come from: files beside the script, and Kiln's own modules that need nothing native,
// which are written in the language (library/*.py) and compiled when they are first imported.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "repl/modules/modules.h"
#include "support/files.h"

namespace kiln::embedded {
std::string_view library_text(std::string_view path);
}

namespace kiln::script {

namespace {

namespace fs = std::filesystem;

struct SearchPath {
  explicit SearchPath(Interp& in) : folders(make<List>()) {
    // As Python: the folder of the script, or the current one.
    std::error_code none;
    const fs::path script = in.argv.empty() ? "" : in.argv[0];
    const bool is_file = !script.empty() && fs::is_regular_file(script, none);
    folders->items.push_back(Value::str(is_file ? script.parent_path().string() : ""));
  }
  Ref<List> folders;
};

struct NearestWay {
  std::string_view module, way;
};
constexpr NearestWay kNearestWays[] = {
    {"array", "a list, or a tensor"},
    {"asyncio", "calls return when their work is queued: run them one after another"},
    {"click", "argparse reads the arguments"},
    {"concurrent", "a script has one thread; launches on several streams overlap"},
    {"builtins", "the built-in functions by their names"},
    {"configparser", "json"},
    {"ctypes", "native code is reached from C++ (docs/embedding.md)"},
    {"cupy", "torch has the tensors: torch.empty(…, device='cuda')"},
    {"decimal", "ints of the smallest unit; round() and format(x, '.2f') of floats"},
    {"einops", "x.reshape, x.permute and torch.einsum"},
    {"expecttest", "assert, with the expected text in the script"},
    {"fire", "argparse reads the arguments"},
    {"fractions", "ints: x.as_integer_ratio() gives a float's, math.gcd reduces them"},
    {"hashlib", "hash() of values, or json.dumps(…) itself as a key"},
    {"jax", "torch has the tensors"},
    {"matplotlib", "triton.testing.perf_report draws plots and writes SVG files"},
    {"multiprocessing", "a script has one process: start kiln several times"},
    {"numpy", "torch has the tensors: torch.arange, torch.randn, t.tolist(); math has functions of single numbers"},
    {"pandas", "a list of dicts, and tabulate to print it"},
    {"pdb", "an error shows the calls that led to it; %run FILE at the prompt leaves the variables"},
    {"parameterized", "pytest.mark.parametrize, or a loop with self.subTest(…)"},
    {"pickle", "json writes plain values, torch.save tensors"},
    {"psutil", "os.cpu_count(); torch.cuda.memory_allocated() of a GPU"},
    {"queue", "collections.deque"},
    {"requests", "fetch files by the shell that starts kiln"},
    {"rich", "print, and tabulate for tables"},
    {"scipy", "torch and math have the functions that kernels' files use most"},
    {"signal", "Ctrl-C is a KeyboardInterrupt"},
    {"struct", "int.from_bytes and to_bytes; x.view(dtype) of tensors"},
    {"subprocess", "start other programs from the shell that starts kiln"},
    {"threading", "a script has one thread; launches on several streams overlap"},
    {"torch.distributed", "a script has one process; several GPUs are devices of it: torch.device('cuda:1')"},
    {"torch.multiprocessing", "a script has one process: start kiln several times"},
    {"torch.sparse", "index_add_, scatter_add_ and x[places] of dense tensors"},
    {"torch.utils.benchmark", "triton.testing.do_bench(function), or %bench at the prompt"},
    {"torchvision", "torch.randn makes inputs"},
    {"transformers", "copy the kernel's shapes into the script"},
    {"triton.experimental", "kernels of Gluon are written with triton.language (docs/language.md)"},
    {"triton.profiler", "torch.profiler, kiln profile FILE, or %profile at the prompt"},
    {"unittest.mock", "functions of one's own in place of others, set by setattr()"},
    {"urllib", "fetch files by the shell that starts kiln"},
    {"uuid", "random.getrandbits(128)"},
    {"weakref", "a value goes with its last reference; plain references hold it"},
    {"yaml", "json"},
};

/// Modules of the library that are part of Python's program itself (sys.builtin_module_names): no file hides them, so
/// that a script may be named time.py.
constexpr std::string_view kBuiltIn[] = {"errno", "gc", "itertools", "time"};

}  // namespace

Ref<List> search_path(Interp& in) { return in.state<SearchPath>().folders; }

std::optional<ModuleSource> find_source(Interp& in, std::string_view path) {
  if (std::ranges::find(kBuiltIn, path) != std::end(kBuiltIn)) return library_source(path);
  std::string relative(path);
  for (char& c : relative)
    if (c == '.') c = '/';
  const std::vector<Value> folders = search_path(in)->items;
  for (const Value& folder : folders) {
    auto* text = folder.get<Str>();
    if (!text) continue;
    for (const bool is_package : {true, false}) {
      const std::string file = (fs::path(text->text) / (relative + (is_package ? "/__init__.py" : ".py"))).string();
      std::error_code none;
      if (fs::is_regular_file(file, none)) return ModuleSource{in.take(read_file(file)), file, is_package};
    }
  }
  return library_source(path);
}

std::optional<ModuleSource> library_source(std::string_view path) {
  for (const bool is_package : {false, true}) {
    std::string file = std::string(path) + (is_package ? ".__init__" : "") + ".py";
    const std::string folder = path.starts_with("triton.")  ? "triton/library/"
                               : path.starts_with("torch.") ? "torch/library/"
                                                            : "std/library/";
    // Two of the library's modules are kernels that are measured beside the others.
    const std::string_view text =
        embedded::library_text(path == "torch._attention_kernel"     ? "../../kernels/attention/kernel.py"
                               : path == "torch._attention_gradient" ? "../../kernels/attention/gradient.py"
                                                                     : folder + file);
    if (text.data()) return ModuleSource{std::string(text), std::string(kLibraryFolder) + file, is_package};
  }
  return std::nullopt;
}

ModuleObject::Text library_module(std::string_view path) {
  const std::string_view text = embedded::library_text("torch/library/" + std::string(path) + ".py");
  ModuleObject::Text out{std::string(path), {}};
  for (size_t line = 0; line < text.size();) {
    const size_t end = std::min(text.find('\n', line), text.size());
    const std::string_view row = text.substr(line, end - line);
    for (const std::string_view word : {"def ", "class "})
      if (row.starts_with(word) && row[word.size()] != '_') {
        const std::string_view name = row.substr(word.size());
        out.names.emplace_back(name.substr(0, name.find_first_of("(:")));
      }
    line = end + 1;
  }
  return out;
}

std::string help_without(std::string_view path, bool in_general) {
  // What a module lacks says nothing of the module: a script may have a queue.py of its own.
  for (const NearestWay& w : kNearestWays)
    if (path == w.module || ((in_general || w.module.find('.') != std::string_view::npos) &&
                             path.starts_with(fmt::format("{}.", w.module))))
      return fmt::format("help: Kiln runs without Python and has no {}: {}", w.module, w.way);
  if (!in_general) return "";
  return "help: Kiln runs without Python: it has modules of its own (docs/scripts.md), and imports .py files beside "
         "the script or in a folder of sys.path";
}

}  // namespace kiln::script
