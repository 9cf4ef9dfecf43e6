// kiln::Session: the shell without a terminal.
#include "kiln/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>

#include "repl/modules/results/table_object.h"
#include "repl/modules/torch/tensor_object.h"
#include "repl/shell/shell.h"
#include "support/diag.h"

namespace kiln {

namespace {

using script::Interp;
using script::Value;

/// Deeper than that a value is no plain data; a list may hold itself.
constexpr int kDeepest = 100;

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool add_json(Interp& in, const Value& v, int depth, std::string& out);

bool add_items(Interp& in, const std::vector<Value>& items, int depth, std::string& out) {
  out += '[';
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out += ',';
    if (!add_json(in, items[i], depth + 1, out)) return false;
  }
  out += ']';
  return true;
}

/// False for what JSON has no form of. Floats that are no numbers are NaN and Infinity, as Python's json has them.
bool add_json(Interp& in, const Value& v, int depth, std::string& out) {
  if (depth > kDeepest) return false;
  if (v.is_none()) return out += "null", true;
  if (v.is_bool()) return out += v.boolean() ? "true" : "false", true;
  if (v.is_float() && std::isnan(v.real())) return out += "NaN", true;
  if (v.is_float() && std::isinf(v.real())) return out += v.real() < 0 ? "-Infinity" : "Infinity", true;
  if (const auto* text = v.get<script::Str>()) return out += json_text(text->text), true;
  if (const auto* list = v.get<script::List>()) return add_items(in, list->items, depth, out);
  if (const auto* tuple = v.get<script::Tuple>()) return add_items(in, tuple->items, depth, out);
  if (const auto* dict = v.get<script::Dict>()) {
    out += '{';
    bool first = true;
    for (const auto& entry : dict->table.live()) {
      const auto* key = entry.key.get<script::Str>();
      if (!key) return false;
      out += (std::exchange(first, false) ? "" : ",") + json_text(key->text) + ":";
      if (!add_json(in, entry.value, depth + 1, out)) return false;
    }
    out += '}';
    return true;
  }
  if (!v.constant()) return false;
  const std::string number = in.repr(v);  // of a member of an enumeration: its name
  if (number.find_first_not_of("-0123456789.e+") != std::string::npos) return false;
  out += number;
  return true;
}

SessionTable forms_of(std::string name, const report::Table& table) {
  std::vector<std::string> columns;
  for (const report::Column& c : table.columns()) columns.push_back(report::key_of(c));
  return {std::move(name),       report::to_text(table), report::to_html(table), report::to_markdown(table),
          report::to_csv(table), report::to_json(table), std::move(columns)};
}

}  // namespace

struct Session::Impl {
  explicit Impl(const Options& options) : shell(shell_options(options), options.output) {
    session().on_progress = options.progress ? options.progress : [](std::string_view) {};
  }

  static repl::Options shell_options(const Options& options) {
    repl::Options o;
    o.runtime = options.runtime;
    o.device = options.device;
    o.no_shell = !options.may_run_shell;
    o.interrupts = options.takes_sigint ? repl::Interrupts::kOfStatements : repl::Interrupts::kNone;
    return o;
  }

  /// Values count their owners without atomics, and the holder of a handle may be another thread: what it gives up is
  /// kept until the session's own thread comes by.
  std::shared_ptr<const void> handle_of(const std::shared_ptr<Impl>& self, Value v) {
    return {new Value(std::move(v)), [self](const void* p) {
              const std::lock_guard lock(self->mutex);
              self->given_up.emplace_back(static_cast<const Value*>(p));
            }};
  }
  void forget_given_up() {
    std::vector<std::unique_ptr<const Value>> dropped;
    const std::lock_guard lock(mutex);
    dropped.swap(given_up);
  }

  Result<SessionValue> value_of(const std::shared_ptr<Impl>& self, const Value& v) {
    SessionValue out;
    if (v.missing() || v.is_none()) return out;
    out.type = session().interp().type_name(v);
    KILN_TRY(out.repr, session().repr_of(v));
    KILN_TRY(std::optional<Tensor> tensor, session().tensor_of(v));
    if (const auto* table = v.get<script::TableObject>()) {
      out.kind = SessionValue::Kind::kTable;
      out.tables.push_back(forms_of("", table->table));
      for (const auto& [name, other] : table->others) out.tables.push_back(forms_of(name, other->table));
    } else if (tensor) {
      out.kind = SessionValue::Kind::kTensor;
      out.tensor = *tensor;
    } else {
      const bool is_plain = add_json(session().interp(), v, 0, out.json);
      out.kind = is_plain ? SessionValue::Kind::kPlain : SessionValue::Kind::kOther;
      if (!is_plain) out.json.clear();
    }
    out.handle = handle_of(self, v);
    return out;
  }

  script::Session& session() { return shell.session(); }

  repl::Shell shell;
  std::mutex mutex;  // of given_up
  std::vector<std::unique_ptr<const Value>> given_up;
};

Session::Session(const Options& options) : impl_(std::make_shared<Impl>(options)) {}
Session::~Session() = default;

Status Session::run(std::string_view text) {
  impl_->forget_given_up();
  Status status = impl_->shell.entry(std::string(text));
  (void)impl_->session().take_exit_code();  // exit() ends the entry, and the session goes on
  return status;
}

Status Session::define(std::string_view text, std::string_view file, int first_line) {
  impl_->forget_given_up();
  const std::string blank(static_cast<size_t>(std::max(first_line, 1) - 1), '\n');
  return impl_->session().run(blank + std::string(text), std::string(file), script::Mode::kFile);
}

Result<SessionValue> Session::evaluate(std::string_view expression) {
  impl_->forget_given_up();
  KILN_TRY(Value v, impl_->shell.value(std::string(expression)));
  return impl_->value_of(impl_, v);
}

SessionCommandResult Session::command(std::string_view line) {
  impl_->forget_given_up();
  repl::MagicResult done = impl_->shell.command_for_value(line);
  SessionCommandResult out{std::move(done.status), std::move(done.text), {}, impl_->shell.was_interrupted()};
  if (done.value.get<script::Str>()) return out;  // its text again
  auto value = impl_->value_of(impl_, done.value);
  if (value.ok())
    out.value = *std::move(value);
  else if (out.status.ok())
    out.status = std::move(value.error());
  return out;
}

namespace {

Status check_name(std::string_view name) {
  const bool is_name =
      !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
      std::ranges::all_of(name, [](unsigned char c) { return std::isalnum(c) || c == '_' || c > 127; });
  return is_name ? Status{} : error(ErrorKind::kName, "'{}' is no variable's name", name);
}

}  // namespace

Status Session::set(std::string_view name, const Tensor& tensor) {
  KILN_CHECK_OK(check_name(name));
  if (!tensor) return error(ErrorKind::kValue, "'{}' is set to no tensor", name);
  impl_->forget_given_up();
  impl_->session().set_variable(name, script::make<script::TensorObject>(tensor));
  return {};
}

Status Session::set(std::string_view name, const SessionValue& value) {
  KILN_CHECK_OK(check_name(name));
  impl_->forget_given_up();
  impl_->session().set_variable(name, value.handle ? *static_cast<const Value*>(value.handle.get()) : Value::none());
  return {};
}

void Session::remove(std::string_view name) {
  impl_->forget_given_up();
  impl_->session().set_variable(name, {});
}

SessionCompletion Session::complete(std::string_view before_cursor) {
  impl_->forget_given_up();
  editor::Completion found = impl_->shell.complete(before_cursor);
  return {std::move(found.candidates), found.replaced};
}

SessionValue Session::variable(std::string_view name) {
  impl_->forget_given_up();
  SessionValue out;
  Value v = impl_->session().variable(name);
  if (v.missing()) return out;
  out.kind = SessionValue::Kind::kOther;
  out.type = impl_->session().interp().type_name(v);
  out.handle = impl_->handle_of(impl_, std::move(v));
  return out;
}

bool Session::holds(std::string_view name, const SessionValue& value) {
  const Value now = impl_->session().variable(name);
  return value.handle && !now.missing() && now.same(*static_cast<const Value*>(value.handle.get()));
}

void Session::interrupt() { impl_->shell.interrupt(); }

std::span<const SessionCommand> Session::commands() {
  static const std::vector<SessionCommand> all = [] {
    std::vector<SessionCommand> rows;
    for (const repl::Magic& m : repl::magics())
      rows.push_back({std::string(m.name), std::string(m.synopsis), std::string(m.help), repl::describe_magic(m)});
    return rows;
  }();
  return all;
}

}  // namespace kiln
