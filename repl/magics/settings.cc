#include "repl/magics/settings.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "repl/magics/magics.h"
#include "support/diag.h"
#include "support/environment.h"
#include "support/files.h"
#include "support/text.h"

namespace kiln::repl {

namespace {

constexpr std::string_view kFormatNames[] = {"text", "csv", "json", "markdown"};  // as report::Format counts them

std::string get_format(const MagicContext& c) { return std::string(kFormatNames[static_cast<size_t>(c.format)]); }
Status set_format(MagicContext& c, std::string_view value) {
  const auto format = report::parse_format(value);
  if (!format) return error(ErrorKind::kValue, "format is text, csv, json or markdown, not '{}'", value);
  c.format = *format;
  return {};
}

std::string get_target(const MagicContext& c) { return c.target; }
Status set_target(MagicContext& c, std::string_view value) {
  if (!value.empty()) return magic_target(c, value);
  // "" puts the default back, which is the target of the last launch.
  c.target.clear();
  return {};
}

std::string get_color(const MagicContext& c) { return c.color_choice; }
Status set_color(MagicContext& c, std::string_view value) {
  if (value != "auto" && value != "always" && value != "never")
    return error(ErrorKind::kValue, "color is auto, always or never, not '{}'", value);
  c.color_choice = value;
  c.color = c.wants_color(STDOUT_FILENO);
  return {};
}

std::string get_width(const MagicContext& c) { return std::to_string(c.width); }
Status set_width(MagicContext& c, std::string_view value) {
  int width = 0;
  const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), width);
  // Narrower tables show nothing.
  if (code != std::errc{} || end != value.data() + value.size() || (width != 0 && (width < 20 || width > 10000)))
    return error(ErrorKind::kValue, "width is 0 or a number of columns from 20 to 10000, not '{}'", value);
  c.width = width;
  return {};
}

Result<bool> is_on(std::string_view name, std::string_view value) {
  if (value != "on" && value != "off") return error(ErrorKind::kValue, "{} is on or off, not '{}'", name, value);
  return value == "on";
}

std::string get_pager(const MagicContext& c) { return c.may_page ? "on" : "off"; }
Status set_pager(MagicContext& c, std::string_view value) {
  KILN_TRY(c.may_page, is_on("pager", value));
  return {};
}

std::string get_budget(const MagicContext& c) { return c.budget; }
Status set_budget(MagicContext& c, std::string_view value) {
  if (!value.empty()) {
    KILN_TRY(double seconds, seconds_of(std::string(value)));
    if (seconds <= 0) return error(ErrorKind::kValue, "budget is more than no time, got {}", value);
  }
  c.budget = value;
  return {};
}

std::string get_check(const MagicContext& c) { return c.session.checks_accesses() ? "on" : "off"; }
Status set_check(MagicContext& c, std::string_view value) {
  KILN_TRY(const bool on, is_on("check", value));
  c.session.check_accesses(on ? script::AccessChecks::kAlways : script::AccessChecks::kOff);
  return {};
}

constexpr Setting kSettings[] = {
    {"format", "text", Legal::kWords, "text|csv|json|markdown", "how tables are printed", get_format, set_format},
    {"target", "", Legal::kTarget, "a name of %target",
     "what kernels are compiled for when their code is shown; \"\": as launched", get_target, set_target},
    {"color", "auto", Legal::kWords, "auto|always|never", "colour of tables, plots, errors and what is typed",
     get_color, set_color},
    {"width", "0", Legal::kCount, "0, or columns", "how wide tables are; 0: as the terminal", get_width, set_width},
    {"pager", "on", Legal::kWords, "on|off", "what is longer than the screen goes to a pager", get_pager, set_pager},
    {"budget", "", Legal::kSeconds, "a time: 10s, 500ms",
     "time of %bench, %compare, %sweep and %roofline; \"\": their own", get_budget, set_budget},
    {"check", "off", Legal::kWords, "on|off", "bounds-check every launch", get_check, set_check},
};

std::string allowed_text(const Setting& s) {
  std::string text;
  for (char c : s.allowed) text += c == '|' ? std::string(", ") : std::string(1, c);
  return text;
}

Result<const Setting*> find_setting(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Setting& s : kSettings) {
    if (s.name == name) return &s;
    names.push_back(s.name);
  }
  Diagnostic d = error(ErrorKind::kName, "there is no setting '{}'; there are {}", name, fmt::join(names, ", "));
  const std::string near = nearest_name(name, names);
  return near.empty() ? d : with_note(std::move(d), fmt::format("help: did you mean '{}'?", near));
}

struct ConfigLine {
  std::string_view name, value;  // name: empty for a comment or a blank line
};

/// `name = "value"  # comment` of TOML, as far as settings need it: no table, no escape.
Result<ConfigLine> parse_config_line(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line[0] == '#') return ConfigLine{};
  const size_t equals = line.find('=');
  if (line[0] == '[' || equals == std::string_view::npos)
    return error(ErrorKind::kSyntax, "expected NAME = VALUE, got '{}'", line);
  ConfigLine out{trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1))};
  if (!out.value.empty() && (out.value[0] == '"' || out.value[0] == '\'')) {
    const size_t end = out.value.find(out.value[0], 1);
    if (end == std::string_view::npos) return error(ErrorKind::kSyntax, "a string does not end: {}", out.value);
    const std::string_view rest = trimmed(out.value.substr(end + 1));
    if (!rest.empty() && rest[0] != '#') return error(ErrorKind::kSyntax, "'{}' follows the value", rest);
    out.value = out.value.substr(1, end - 1);
  } else {
    out.value = trimmed(out.value.substr(0, out.value.find('#')));
    if (out.value.empty()) return error(ErrorKind::kSyntax, "{} has no value", out.name);
    // TOML's own words for switches.
    if (out.value == "true" || out.value == "false") out.value = out.value == "true" ? "on" : "off";
  }
  return out;
}

std::string config_line(const MagicContext& context, const Setting& s) {
  return fmt::format("{} = \"{}\"\n", s.name, s.get(context));
}

/// Calls `line(text)` for each line, without its end.
template <class Line>
void for_each_line(std::string_view text, Line&& line) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The text of a file; empty when there is none.
Result<std::string> text_if_any(const std::string& file) {
  // A folder that cannot be read is an error, a file that is not there is none.
  if (::access(file.c_str(), F_OK) != 0 && errno == ENOENT) return std::string();
  return read_file(file);
}

}  // namespace

std::span<const Setting> settings() { return kSettings; }

void add_budget(const MagicContext& context, MagicArguments& arguments) {
  if (!context.budget.empty() && !arguments.has("budget")) arguments.values.emplace_back("budget", context.budget);
}

std::string config_file() {
  if (const auto config = environment("XDG_CONFIG_HOME"); config && !config->empty())
    return *config + "/kiln/config.toml";
  if (const auto home = environment("HOME"); home && !home->empty()) return *home + "/.config/kiln/config.toml";
  return {};
}

std::vector<Diagnostic> read_config(MagicContext& context, const std::string& file) {
  if (file.empty()) return {};
  auto text = text_if_any(file);
  if (!text.ok()) return {std::move(text.error())};
  std::vector<Diagnostic> problems;
  int number = 0;
  for_each_line(*text, [&](std::string_view line) {
    ++number;
    auto take = [&]() -> Status {
      KILN_TRY(ConfigLine parsed, parse_config_line(line));
      if (parsed.name.empty()) return {};
      KILN_TRY(const Setting* setting, find_setting(parsed.name));
      return setting->set(context, parsed.value);
    };
    if (Status s = take(); !s.ok()) {
      // A config of a later version must not keep this one from starting.
      s.error().message = fmt::format("{}:{}: {}; the line is ignored", file, number, s.error().message);
      problems.push_back(std::move(s.error()));
    }
  });
  return problems;
}

Status write_config(const MagicContext& context, const std::string& file) {
  if (file.empty()) return error(ErrorKind::kIo, "no folder for settings: neither XDG_CONFIG_HOME nor HOME is set");
  KILN_TRY(const std::string before, text_if_any(file));
  std::string after;
  std::vector<std::string_view> named;
  for_each_line(before, [&](std::string_view line) {
    auto parsed = parse_config_line(line);
    // Lines that this version does not know stay, with their comments.
    auto setting = parsed.ok() ? find_setting(parsed->name) : Result<const Setting*>(nullptr);
    if (setting.ok() && *setting) {
      named.push_back((*setting)->name);
      after += config_line(context, **setting);
    } else {
      after += std::string(line) + "\n";
    }
  });
  for (const Setting& s : kSettings)
    // What is as it was from the beginning is not written: a later default may be better.
    if (std::find(named.begin(), named.end(), s.name) == named.end() && s.get(context) != s.initial)
      after += config_line(context, s);
  KILN_CHECK_OK(make_directories(std::filesystem::path(file).parent_path().string()));
  return write_file_atomic(file, after);
}

Status magic_set(MagicContext& context, std::string_view arguments) {
  KILN_TRY(std::vector<std::string> words, split_words(arguments));
  const bool save = !words.empty() && words.back() == "--save";
  if (save) words.pop_back();
  if (words.empty() && !save) {
    report::Table table({{"setting", "", report::Align::kLeft},
                         {"value", "", report::Align::kLeft},
                         {"default", "", report::Align::kLeft},
                         {"values", "", report::Align::kLeft},
                         {"what it does", "", report::Align::kLeft}});
    for (const Setting& s : kSettings)
      table.add_row(
          {std::string(s.name), s.get(context), std::string(s.initial), allowed_text(s), std::string(s.help)});
    table.add_note("%set NAME VALUE changes one, for this session; --save keeps all of them in " + config_file());
    context.print(table);
    return {};
  }
  if (!words.empty()) {
    // NAME, NAME VALUE, NAME=VALUE and NAME = VALUE
    std::string name = words[0], value;
    size_t next = 1;
    bool has_value = false;
    if (const size_t equals = name.find('='); equals != std::string::npos) {
      value = unquoted(std::string_view(name).substr(equals + 1));
      name.resize(equals);
      has_value = true;
    } else if (next < words.size() && words[next] == "=") {
      ++next;
    }
    KILN_TRY(const Setting* setting, find_setting(name));
    if (!has_value && next < words.size()) value = words[next++], has_value = true;
    if (next < words.size()) return error(ErrorKind::kSyntax, "%set takes one value, got also '{}'", words[next]);
    if (!has_value && !save) {
      context.say(fmt::format("{} = \"{}\": {} ({})\n", setting->name, setting->get(context), setting->help,
                              allowed_text(*setting)));
      return {};
    }
    if (has_value) KILN_CHECK_OK(setting->set(context, value));
  }
  if (!save) return {};
  KILN_CHECK_OK(write_config(context, config_file()));
  context.say(fmt::format("settings are kept in {}\n", config_file()));
  return {};
}

}  // namespace kiln::repl
