#include "tests/unit/frontend/kernel_file.h"

#include <charconv>
#include <sstream>

#include "compiler/parse/parser.h"
#include "support/diag.h"
#include "support/launch_options.h"

namespace kiln::frontend::testing {

namespace {

Global parse_value(const std::string& s) {
  if (s == "None") return ast::Constant(ast::None{});
  if (s == "True" || s == "False") return ast::Constant(s == "True");
  if (s.starts_with("tl.")) return *parse_dtype(s.substr(3));
  if (s.starts_with("'")) return ast::Constant(s.substr(1, s.size() - 2));
  int64_t i = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), i);
  if (error == std::errc() && end == s.data() + s.size()) return ast::Constant(ast::Int{i});
  return ast::Constant(std::stod(s));
}

}  // namespace

Command parse_command(const std::string& line) {
  Command out;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    size_t equals = word.find('=');
    std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "kernel")
      out.kernel = value;
    else if (key == "signature")
      out.signature = value;
    else if (key == "as_triton")
      out.as_triton = true;
    else if (const LaunchOption* option = find_launch_option(key))
      option->set(out.options, std::stoi(value));
    else
      out.constexprs.emplace_back(key, parse_value(value));
  }
  return out;
}

Result<std::unique_ptr<ir::Module>> lower_text(std::string file_name, std::string text, const Command& command,
                                               std::vector<std::string>* printed) {
  KILN_TRY(std::shared_ptr<const ast::Module> module,
           parse::parse_module(SourceText::make(std::move(file_name), std::move(text))));
  KILN_TRY(auto functions, jit_functions(module));
  std::shared_ptr<const JitFunction> kernel;
  for (const auto& f : functions)
    if (command.kernel.empty() || f->def->name == command.kernel) kernel = f;
  if (!kernel) return error(ErrorKind::kName, "the text has no kernel '{}'", command.kernel);
  // A parameter of that name gets the launch option's value, as at a launch.
  auto constexprs = command.constexprs;
  for (const auto& param : kernel->def->params)
    if (param.name == "num_stages")
      constexprs.emplace_back(param.name, ast::Constant(ast::Int{command.options.num_stages}));
  KILN_TRY(std::vector<ArgSpec> args, parse_signature(*kernel, command.signature, constexprs));
  Options options = {command.options};
  options.on_static_print = [&](const std::string& line) {
    if (printed) printed->push_back(line);
  };
  options.as_triton = options.drops_fp8e4b15 = command.as_triton;
  if (command.as_triton && printed)
    options.on_warning = [&](const CodeWarning& warning) {
      printed->push_back(fmt::format("line {}: warning: {}", warning.place.line, warning.message));
    };
  return lower_kernel(*kernel, args, options);
}

}  // namespace kiln::frontend::testing
