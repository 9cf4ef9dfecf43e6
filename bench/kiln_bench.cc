// kiln_bench [GROUP…] [--json FILE] [--device NAME] [--timeout S] [--list]
//            of the group gemm: [--shapes MxNxK,…] [--dtypes T,…] [--contenders C,…] [--seconds S] [--no-sustained]
//            [--tune]
//            of the group terrain: [--seed N] [--count N]
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/bench.h"
#include "kiln/runtime.h"
#include "profiler/report/table.h"
#include "support/knobs.h"

namespace kiln::bench {
namespace {

using nlohmann::ordered_json;
using report::Align;
using report::Cell;

ordered_json to_json(const Side& s) {
  ordered_json j = {{"name", s.name},   {"us", s.us.median}, {"min_us", s.us.min},
                    {"q1_us", s.us.q1}, {"q3_us", s.us.q3},  {"n", s.us.n}};
  if (s.bytes > 0) j["bytes"] = s.bytes, j["gb_per_s"] = s.gb_per_s();
  return j;
}

ordered_json to_json(const Figure& f) {
  ordered_json j = {{"group", f.group}, {"name", f.name}};
  if (!f.size.empty()) j["size"] = f.size;
  j["ours"] = to_json(f.ours);
  if (f.peer) {
    j["peer"] = to_json(*f.peer);
    j["ratio"] = f.ratio;
    j["ratio_95"] = {f.ratio_95.low, f.ratio_95.high};
  }
  // Without a goal nothing is met or missed, and neither key is there.
  if (auto met = f.met()) j["goal"] = f.goal_text(), j["met"] = *met;
  if (!f.note.empty()) j["note"] = f.note;
  return j;
}

report::Table table_of(const std::vector<Figure>& figures, const std::string& group) {
  report::Table t({{group, "", Align::kLeft, "name"},
                   {"size", "", Align::kLeft},
                   {"ours", ""},
                   {"±", "%", Align::kRight, "spread"},
                   {"rate", "GB/s"},
                   {"peer", "", Align::kLeft},
                   {"time", "", Align::kRight, "peer_time"},
                   {"rate", "GB/s", Align::kRight, "peer_rate"},
                   {"ratio", ""},
                   {"95 %", "", Align::kRight, "interval"},
                   {"n", ""},
                   {"goal", "", Align::kLeft},
                   {"met", "", Align::kLeft}});
  for (const Figure& f : figures) {
    if (f.group != group) continue;
    auto rate = [](const Side& s) {
      // One decimal below 100 GB/s, as three digits are what a measurement of this kind has.
      return s.bytes > 0 ? Cell::of(s.gb_per_s(), s.gb_per_s() < 100 ? 1 : 0) : Cell("");
    };
    auto met = f.met();
    t.add_row({f.name, f.size, report::human_time(f.ours.us.median), Cell::of(f.ours.us.spread() * 100, 1),
               rate(f.ours), f.peer ? f.peer->name : "",
               f.peer ? Cell(report::human_time(f.peer->us.median)) : Cell(""), f.peer ? rate(*f.peer) : Cell(""),
               f.peer ? Cell::of(f.ratio, 3) : Cell(""),
               f.peer ? Cell(fmt::format("{:.3f}–{:.3f}", f.ratio_95.low, f.ratio_95.high)) : Cell(""),
               Cell::of(int64_t{f.ours.us.n}), f.goal_text(), met ? (*met ? "yes" : "NO") : ""});
    if (!f.note.empty()) t.add_note(f.name + ": " + f.note);
  }
  return t;
}

std::string now_utc() {
  std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  return text;
}

std::string own_folder() {
  char path[4096];
  // No rate and no peer is an empty cell, so that a table without them stays readable.
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  std::string whole(path, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return whole.substr(0, whole.rfind('/'));
}

int fail(const Diagnostic& d) {
  fmt::print(stderr, "{}", render(d, report::wants_color(STDERR_FILENO)));
  return 1;
}

int main_(int argc, char** argv) {
  // Before the first driver call: the driver reads the setting once, as it starts.
  leave_drivers_code_cache_off();
  CLI::App app{"Kiln's benchmarks: both sides of every ratio, measured in one run", "kiln_bench"};
  std::vector<std::string> wanted, shapes;
  std::string json_file, device_name;
  bool list = false;
  Context context;
  app.add_option("groups,--only", wanted, "only these groups");
  app.add_option("--json", json_file, "also write JSON lines to this file");
  app.add_option("--device", device_name, "cuda, cuda:N or cpu");
  app.add_option("--timeout", context.timeout_s, "seconds for each comparison")->check(CLI::PositiveNumber);
  app.add_flag("--list", list, "list the groups");
  GemmOptions& gemm = context.gemm;
  app.add_option("--shapes", shapes, "gemm: only these, as MxNxK,…")->delimiter(',');
  app.add_option("--dtypes", gemm.types, "gemm: only these, as bf16,fp8,…")->delimiter(',');
  app.add_option("--tiles", gemm.tiles, "gemm: our kernel with these tiles, as 128x256x64:3:8,…")->delimiter(',');
  app.add_option("--contenders", gemm.contenders, "gemm: only these, as cublas,cublaslt-best,…")->delimiter(',');
  app.add_option("--seconds", gemm.seconds, "gemm: for each shape and dtype, in bursts and again sustained")
      ->check(CLI::PositiveNumber);
  // `!` turns the flag around: what is stored is whether sustained figures are wanted.
  app.add_flag("!--no-sustained", gemm.sustained, "gemm: bursts only");
  app.add_flag("--tune", gemm.tune, "gemm: instead, the best tiles of our own kernels, for --seconds each");
  app.add_option("--seed", context.terrain.seed, "terrain: what the draws follow from");
  app.add_option("--count", context.terrain.count, "terrain: so many draws")->check(CLI::PositiveNumber);
  app.add_option("--terrain-seconds", context.terrain.seconds, "terrain: no draw begins later than this")
      ->check(CLI::PositiveNumber);
  app.add_option("--draws", context.terrain.draws, "terrain: these products, as 'bf16 4 of 64x128x256 NT+bias'")
      ->delimiter(',');
  app.add_flag("--configurations", context.terrain.configurations,
               "terrain: also measure every other configuration of our kernels");
  CLI11_PARSE(app, argc, argv);
  if (list) {
    for (const Group& g : groups()) fmt::print("{:<10} {}\n", g.name, g.what);
    return 0;
  }
  for (const std::string& text : shapes) {
    auto shape = parse_gemm_shape(text);
    if (!shape) {
      fmt::print(stderr, "kiln_bench: '{}' is no shape; write it as MxNxK\n", text);
      return 2;
    }
    gemm.shapes.push_back(*shape);
  }
  for (const std::string& w : wanted)
    if (std::none_of(groups().begin(), groups().end(), [&](const Group& g) { return g.name == w; })) {
      fmt::print(stderr, "kiln_bench: there is no group '{}'; --list shows them\n", w);
      return 2;
    }
  const Runtime runtime;
  auto device = device_name.empty() ? runtime.open_default() : runtime.open(device_name);
  if (!device.ok()) return fail(device.error());
  context.device = *device;
  // The program of this build stands beside this one.
  context.kiln_binary = own_folder() + "/kiln";
  DeviceInfo info = device->info();

  std::ofstream json;
  if (!json_file.empty()) {
    json.open(json_file);
    if (!json) {
      fmt::print(stderr, "kiln_bench: cannot write {}\n", json_file);
      return 1;
    }
    // The first line says what was measured on, the others are figures.
    json << ordered_json{{"kiln", KILN_VERSION},  {"device", device->name()}, {"name", info.name},
                         {"target", info.target}, {"driver", info.driver},    {"date", now_utc()}}
                .dump()
         << "\n";
  }
  fmt::print("kiln {} · {} {} · {}{} · {}\n", KILN_VERSION, device->name(), info.name, info.target,
             info.driver.empty() ? "" : " · driver " + info.driver, now_utc());
  std::vector<Figure> figures;
  std::vector<std::string> skipped;
  context.add = [&](Figure f) {
    // Flushed for each figure: a run that is ended early has what it measured.
    if (json) json << to_json(f).dump() << '\n' << std::flush;
    figures.push_back(std::move(f));
  };
  context.skip = [&](const std::string& why) { skipped.push_back(why); };
  int code = 0;
  context.wrong = [&](const std::string& what) {
    fmt::print(stderr, "kiln_bench: {}\n", what);
    code = 1;
  };
  context.show = [](const report::Table& t) {
    fmt::print("\n{}", report::to_text(t, {report::wants_color(STDOUT_FILENO)}));
    std::fflush(stdout);
  };
  context.add_json = [&](const std::string& line) {
    // A figure that is wrong changes the exit code, and the other groups still run.
    if (json) json << line << '\n' << std::flush;
  };
  for (const Group& g : groups()) {
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), g.name) == wanted.end()) continue;
    Status s = g.run(context);
    // A group that fails keeps the figures that it has given so far.
    if (!s.ok()) code = fail(s.error());
    report::Table t = table_of(figures, std::string(g.name));
    if (!t.rows().empty()) fmt::print("\n{}", report::to_text(t, {report::wants_color(STDOUT_FILENO)}));
    std::fflush(stdout);
  }
  for (const std::string& why : skipped) fmt::print("\nskipped: {}\n", why);
  if (!figures.empty())
    fmt::print(
        "\ncold caches; medians of interleaved pairs in random order; ratio of rates where both are shown, else peer's "
        "time over ours, with its "
        "95 % interval; ± is half the interquartile range\n");
  return code;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) { return kiln::bench::main_(argc, argv); }
