// What the language asks of the program around it. By default nothing happens.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "repl/script/interp/call.h"

namespace kiln::script {

class Host {
 public:
  Host() = default;
  virtual ~Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  /// A text begins to run.
  virtual void begin(Interp&) {}
  /// An entry at the prompt has set a variable.
  virtual void assigned(Interp&, std::string_view, const Value&) {}
  /// Shows the value that an entry at the prompt gave.
  virtual void show(Interp& in, const Value& v);
  /// Calls a native function while a profile records spans.
  virtual Value traced(Interp& in, const Native& native, NativeArgs& args) { return native.run(in, args); }
};

/// One row of a table of modules.
struct ModuleDef {
  std::string_view path;
  void (*fill)(Interp& in, ModuleObject& module);
};
/// Files of modules that come with Kiln begin with this; errors name the user's line that called them.
inline constexpr std::string_view kLibraryFolder = "<kiln>/";
/// The text of a module that is written in the language.
struct ModuleSource {
  std::string text, file;
  bool is_package = false;
};
/// Makes a module that no table lists, or null.
using ModuleFinder = Ref<ModuleObject> (*)(std::string_view path);
/// Finds the text of a module that is none of the host's.
using SourceFinder = std::optional<ModuleSource> (*)(Interp& in, std::string_view path);
/// What to do without a module that is not there; nothing where no way is known, unless a word in general is asked for.
using ModuleHelp = std::string (*)(std::string_view path, bool in_general);

}  // namespace kiln::script
