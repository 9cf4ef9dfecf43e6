#include "profiler/shard/shard.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "support/diag.h"

namespace kiln::profiler {

namespace {

constexpr size_t kMostShards = 1'000'000;

std::optional<size_t> count_in(std::string_view text) {
  size_t value = 0;
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string Shard::text() const { return fmt::format("{}/{}", index, count); }
std::string Shard::file_name() const { return fmt::format("shard-{}-of-{}.jsonl", index, count); }

Result<Shard> parse_shard(std::string_view text) {
  const size_t slash = text.find('/');
  const auto index = count_in(text.substr(0, slash));
  const auto count = slash == std::string_view::npos ? std::nullopt : count_in(text.substr(slash + 1));
  if (!index || !count)
    return with_note(error(ErrorKind::kValue, "a shard is I/N, got '{}'", text),
                     "help: --shard 0/4 to --shard 3/4 are the four shards of a list");
  if (*count < 1 || *count > kMostShards)
    return error(ErrorKind::kValue, "there are 1 to {} shards, got {}", kMostShards, *count);
  if (*index >= *count)
    return error(ErrorKind::kValue, "shards are counted from 0: of {} the last is {}/{}, got {}", *count, *count - 1,
                 *count, text);
  return Shard{*index, *count};
}

}  // namespace kiln::profiler
