// A contest as JSON, with all its samples, and back.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "profiler/compare/compare.h"
#include "support/diag.h"

namespace kiln::profiler {

namespace {

using nlohmann::ordered_json;

constexpr const char* kKind = "kiln-compare";
// To be raised when a reader of the old format would misread the new one.
constexpr int kVersion = 1;

ordered_json column(const std::vector<Sample>& samples, double Sample::*field) {
  ordered_json j = ordered_json::array();
  // Unknown figures are -1 in memory and null in the file, so that other readers do not average them.
  for (const Sample& s : samples) j.push_back(s.*field >= 0 ? ordered_json(s.*field) : ordered_json());
  return j;
}

ordered_json to_json(const std::vector<Sample>& samples) {
  ordered_json held = ordered_json::array();
  for (const Sample& s : samples) held.push_back(s.held);
  return {{"us", column(samples, &Sample::us)},
          {"call_us", column(samples, &Sample::call_us)},
          {"sm_mhz", column(samples, &Sample::sm_mhz)},
          {"held", held}};
}

template <class T>
ordered_json known(T value) {
  return value >= 0 ? ordered_json(value) : ordered_json();
}

ordered_json to_json(const ResultCheck& c) {
  if (!c.known()) return {{"unknown", c.unknown}};
  ordered_json j = {{"max_abs", c.max_abs}, {"max_rel", c.max_rel}, {"tolerance", c.tolerance},
                    {"nans", c.nans},       {"checked", c.checked}, {"total", c.total},
                    {"ok", c.ok()}};
  if (!c.ok()) j["first_bad"] = c.first_bad;
  return j;
}

ordered_json to_json(const Decision& d) {
  ordered_json j = {{"verdict", name(d.verdict)}, {"pairs", d.pairs},
                    {"speedup", d.speedup()},     {"speedup_95", {d.speedup_95().low, d.speedup_95().high}},
                    {"floor", d.floor},           {"cycles_disagree", d.cycles_disagree}};
  if (d.cycles_effect) j["cycles_speedup"] = std::exp(*d.cycles_effect);
  if (d.needed > 0) j["needed_pairs"] = d.needed;
  return j;
}

ordered_json to_json(const ContestRow& row) {
  const Facts& f = row.facts;
  ordered_json j = {{"name", row.name},
                    {"kernels", f.kernels},
                    {"bytes", known(f.bytes)},
                    {"flop", known(f.flop)},
                    {"registers", known(f.registers)},
                    {"spill_bytes", known(f.spill_bytes)},
                    {"occupancy", known(f.occupancy)},
                    {"limiter", f.limiter}};
  if (!f.note.empty()) j["note"] = f.note;
  if (!row.problem.ok()) j["problem"] = row.problem.error().message;
  j["check"] = to_json(row.check);
  if (row.is_measured()) {
    j["median_us"] = row.us().median;
    j["spread"] = row.us().spread();
    j["flags"] = flag_names(row.flags);
  }
  if (row.decision.pairs > 0) j["decision"] = to_json(row.decision);
  if (row.roof) j["roof"] = {{"share", row.roof->share}, {"bound", row.roof->bound}};
  j["samples"] = to_json(row.samples);
  j["base_samples"] = to_json(row.base);
  j["other_us"] = row.other_us;
  j["graph_us"] = row.graph_us;
  return j;
}

Diagnostic malformed(const std::string& name, const std::string& why) {
  return error(ErrorKind::kValue, "{} is no saved comparison: {}", name, why);
}

std::vector<Sample> samples_of(const ordered_json& j) {
  std::vector<Sample> samples;
  const ordered_json &us = j.at("us"), &call = j.at("call_us"), &mhz = j.at("sm_mhz"), &held = j.at("held");
  auto number = [](const ordered_json& v) { return v.is_null() ? -1 : v.get<double>(); };
  for (size_t i = 0; i < us.size(); ++i)
    samples.push_back({number(us.at(i)), number(call.at(i)), number(mhz.at(i)), held.at(i).get<bool>()});
  return samples;
}

Verdict verdict_of(const std::string& text) {
  for (Verdict v : {Verdict::kFaster, Verdict::kSlower, Verdict::kSame})
    if (text == name(v)) return v;
  return Verdict::kUndecided;
}

ContestRow row_of(const ordered_json& j) {
  auto number = [&](const char* key) { return j.at(key).is_null() ? -1 : j.at(key).get<double>(); };
  ContestRow row;
  row.name = j.at("name");
  row.facts.kernels = j.at("kernels").get<std::vector<std::string>>();
  row.facts.bytes = number("bytes");
  row.facts.flop = number("flop");
  row.facts.registers = static_cast<int>(number("registers"));
  row.facts.spill_bytes = static_cast<int64_t>(number("spill_bytes"));
  row.facts.occupancy = number("occupancy");
  row.facts.limiter = j.at("limiter");
  row.facts.note = j.value("note", "");
  if (j.contains("problem")) row.problem = error(ErrorKind::kValue, "{}", j["problem"].get<std::string>());
  const ordered_json& check = j.at("check");
  row.check.unknown = check.value("unknown", "");
  if (row.check.known()) {
    // JSON has no infinity: it is written as null.
    row.check.max_abs = check.at("max_abs").is_null() ? INFINITY : check["max_abs"].get<double>();
    row.check.max_rel = check.at("max_rel").is_null() ? INFINITY : check["max_rel"].get<double>();
    row.check.tolerance = check.at("tolerance");
    row.check.nans = check.at("nans");
    row.check.first_bad = check.value("first_bad", int64_t{-1});
  }
  if (j.contains("decision")) {
    const ordered_json& d = j["decision"];
    // Logarithms in memory, ratios in the file.
    row.decision.verdict = verdict_of(d.at("verdict"));
    row.decision.pairs = d.at("pairs");
    row.decision.effect = std::log(d.at("speedup").get<double>());
    row.decision.floor = d.at("floor");
  }
  row.samples = samples_of(j.at("samples"));
  row.base = samples_of(j.at("base_samples"));
  row.other_us = j.at("other_us").get<std::vector<double>>();
  row.graph_us = j.at("graph_us").get<std::vector<double>>();
  return row;
}

}  // namespace

std::string contest_json(const Contest& c) {
  ordered_json j = {
      {"kind", kKind},
      {"version", kVersion},
      {"kiln", KILN_VERSION},
      {"when", c.when},
      {"device", {{"name", c.device}, {"hardware", c.hardware}, {"target", c.target}, {"driver", c.driver}}},
      {"method", c.method},
      {"cache", name(c.cache)},
      {"baseline", c.rows[c.baseline].name},
      {"reference", c.reference},
      {"throttle", c.throttle},
      {"interrupted", c.interrupted},
      {"timed_out", c.timed_out}};
  for (const auto& [key, ceiling] : {std::pair("copy", &c.memory), std::pair("product", &c.math)})
    if (*ceiling) j["ceilings"][key] = {{"per_us", (*ceiling)->per_us}, {"what", (*ceiling)->what}};
  j["rows"] = ordered_json::array();
  for (const ContestRow& row : c.rows) j["rows"].push_back(to_json(row));
  j["control"] = {{"first", to_json(c.control_first)}, {"second", to_json(c.control_second)}};
  return j.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<Contest> parse_contest(const std::string& text, const std::string& name_of_file) {
  // Without exceptions: a file that is no JSON is a user's mistake.
  ordered_json j = ordered_json::parse(text, nullptr, false);
  if (j.is_discarded()) return malformed(name_of_file, "it is not JSON");
  if (!j.is_object() || j.value("kind", "") != kKind)
    return malformed(name_of_file, "%compare --json writes those that are");
  try {
    if (j.at("version").get<int>() != kVersion)
      return malformed(name_of_file,
                       fmt::format("its version is {}, and this Kiln reads {}", j.at("version").get<int>(), kVersion));
    Contest c;
    const ordered_json& device = j.at("device");
    c.device = device.at("name"), c.hardware = device.at("hardware");
    c.target = device.at("target"), c.driver = device.at("driver");
    c.when = j.at("when"), c.method = j.at("method");
    const std::string cache = j.at("cache"), baseline = j.at("baseline");
    c.cache = cache == name(Cache::kHot) ? Cache::kHot : Cache::kCold;
    c.reference = j.at("reference"), c.throttle = j.at("throttle");
    c.interrupted = j.at("interrupted"), c.timed_out = j.at("timed_out");
    for (const ordered_json& row : j.at("rows")) {
      if (row.at("name") == baseline) c.baseline = c.rows.size();
      c.rows.push_back(row_of(row));
    }
    c.control_first = samples_of(j.at("control").at("first"));
    c.control_second = samples_of(j.at("control").at("second"));
    if (c.rows.empty()) return malformed(name_of_file, "it has no rows");
    return c;
    // A missing or mistyped field; the exception's text names it.
  } catch (const nlohmann::json::exception& e) {
    return malformed(name_of_file, e.what());
  }
}

}  // namespace kiln::profiler
