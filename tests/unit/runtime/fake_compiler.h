// A compiler that compiles nothing: its host "code" records the slots and the programs that it was run with.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "compiler/parse/parser.h"
#include "runtime/jit/jit.h"
#include "runtime/launch/kernel_impl.h"
#include "support/diag.h"

namespace kiln::runtime {

struct Recorder {
  std::mutex mutex;
  std::vector<std::vector<frontend::ArgSpec>> compiled;  // the arguments of each compilation
  std::vector<std::string> targets;
  std::vector<frontend::Options> options;
  std::vector<uint64_t> slots;  // of the last launch
  std::array<int32_t, 3> grid{};
  int64_t programs = 0;  // of all launches
  size_t num_params = 0;
  std::string fingerprint = "fake 1";
  std::vector<std::string> warnings;
  bool fail = false;       // compilations
  bool assertion = false;  // launches

  static Recorder*& current() {
    static Recorder* recorder = nullptr;
    return recorder;
  }
  /// Host codes that live now.
  static std::atomic<int>& loaded() {
    static std::atomic<int> codes{0};
    return codes;
  }
  static void run(const uint64_t* args, const int32_t* grid, int64_t first, int64_t last, void*) {
    Recorder& r = *current();
    std::lock_guard lock(r.mutex);
    r.slots.assign(args, args + r.num_params);
    r.grid = {grid[0], grid[1], grid[2]};
    r.programs += last - first;
  }
};

struct FakeCode : HostCode {
  FakeCode() { ++Recorder::loaded(); }
  ~FakeCode() override { --Recorder::loaded(); }
  HostEntry entry() const override { return Recorder::run; }
  Status take_failure() override {
    return Recorder::current()->assertion ? Status(error(ErrorKind::kLaunch, "program (0, 0, 0) failed an assertion"))
                                          : Status();
  }
  Place place_at(uintptr_t) const override { return {}; }
};

/// The parameters that are left of an argument: several of a tuple.
inline void add_params(const std::string& name, const frontend::ArgSpec& arg, CompiledKernel& kernel) {
  for (const frontend::ArgSpec& item : arg.items) add_params(name, item, kernel);
  if (!arg.is_tuple && !arg.is_constexpr) kernel.params.push_back({name, arg.type});
}

inline Compiler fake_compiler(Recorder& recorder) {
  Recorder::current() = &recorder;
  return {[&recorder](const frontend::JitFunction& function, std::span<const frontend::ArgSpec> args,
                      const CompileOptions& options) -> Result<CompiledKernel> {
            if (recorder.fail) return error(ErrorKind::kType, "the fake compiler refuses");
            {
              std::lock_guard lock(recorder.mutex);  // threads compile side by side
              recorder.compiled.emplace_back(args.begin(), args.end());
              recorder.targets.push_back(options.target);
              recorder.options.push_back(options.frontend);
            }
            if (options.on_stage) options.on_stage("ir:fake", "text of the stage");
            CompiledKernel k;
            k.name = function.def->name;
            k.target = options.target;
            k.num_warps = options.frontend.num_warps;
            for (size_t i = 0; i < args.size(); ++i) add_params(function.def->params[i].name, args[i], k);
            k.object = "object of " + k.name;
            k.ptx = options.target == "host" ? "" : "// ptx of " + k.name;
            k.phases = {{"frontend", 1.5}};
            return k;
          },
          [&recorder](const CompiledKernel& kernel) -> Result<std::shared_ptr<HostCode>> {
            std::lock_guard lock(recorder.mutex);
            recorder.num_params = kernel.params.size();
            return std::shared_ptr<HostCode>(std::make_shared<FakeCode>());
          },
          [&recorder](std::string_view, const Assembler*) { return recorder.fingerprint; }};
}

/// The functions of a text, with `globals` and each other as their globals.
struct Program {
  explicit Program(const std::string& text, std::map<std::string, frontend::Global> globals_ = {})
      : globals(std::make_shared<std::map<std::string, frontend::Global>>(std::move(globals_))) {
    auto parsed = parse::parse_module(SourceText::make("test.py", text));
    KILN_ASSERT(parsed.ok(), "{}", parsed.ok() ? "" : render(parsed.error()));
    (*globals)["tl"] = frontend::ModulePath{"triton.language"};
    for (const ast::StmtPtr& s : (*parsed)->body) {
      auto* def = ast::dyn_as<ast::FunctionDef>(s.get());
      if (!def) continue;
      auto function = std::make_shared<frontend::JitFunction>();
      function->module = *parsed;
      function->def = def;
      function->lookup = [table = globals.get()](std::string_view name) -> std::optional<frontend::Global> {
        auto it = table->find(std::string(name));
        return it == table->end() ? std::nullopt : std::optional<frontend::Global>(it->second);
      };
      (*globals)[def->name] = std::shared_ptr<const frontend::JitFunction>(function);
      functions[def->name] = function;
    }
  }
  ~Program() { globals->clear(); }  // the table and the functions hold each other

  std::shared_ptr<std::map<std::string, frontend::Global>> globals;
  std::map<std::string, std::shared_ptr<frontend::JitFunction>> functions;
};

}  // namespace kiln::runtime
