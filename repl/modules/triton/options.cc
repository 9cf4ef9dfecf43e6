#include "repl/modules/triton/options.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::script {

void set_option(Interp& in, const LaunchOption& option, const Value& value, CodeOptions& out) {
  if (option.takes_none() && value.is_none()) return option.set_default(out);
  if (option.flag) return option.set(out, in.truth(value));
  option.set(out, static_cast<int>(std::clamp<int64_t>(in.to_int(value, option.name), -1, 1 << 20)));
}

Value option_value(const LaunchOption& option, const CodeOptions& options) {
  const int value = option.get(options);
  if (option.takes_none() && value == option.get({})) return Value::none();
  return option.flag ? Value::boolean(value != 0) : Value::integer(value);
}

std::string config_arguments(const CodeOptions& options) {
  std::string out;
  for (const LaunchOption& o : kLaunchOptions)
    if (o.is_tuned() && (o.has('W') || o.get(options) != o.get({})))
      out += fmt::format("{}{}={}", out.empty() ? "" : ", ", o.name, o.get(options));
  return out;
}

}  // namespace kiln::script
