#include "compiler/fusion/join_totals.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/fusion/emitter.h"

namespace kiln::fusion {

namespace {

constexpr std::string_view kIsLast =
    "@triton.jit\n"
    "def is_last(turns_ptr):\n"
    "    # Whether all other programs have come here: what they stored is there then, and the count begins anew.\n"
    "    tl.debug_barrier()\n"
    "    last = tl.atomic_add(turns_ptr, 1, sem=\"acq_rel\") == tl.num_programs(0) - 1\n"
    "    if last:\n"
    "        tl.store(turns_ptr, 0)\n"
    "    return last";

bool overlap(const std::vector<int>& a, const std::vector<int>& b) {
  return std::ranges::any_of(a, [&](int v) { return std::ranges::find(b, v) != b.end(); });
}

/// Two kernels in one: each becomes a function, which the new kernel calls.
class Joiner {
 public:
  Joiner(const Group& parts, const Group& total, bool asks_for_program)
      : parts_(parts), total_(total), asks_(asks_for_program) {}

  Group joined(int turns) {
    Group g = parts_;
    g.name = parts_.name + "_" + total_.name;
    g.kernel = g.name + "_kernel";
    g.comment = parts_.comment + total_.comment;
    g.libdevice = parts_.libdevice || total_.libdevice;
    if (parts_.totals > 0) {
      g.functions.pop_back();
      for (const Argument& a : g.arguments) names_.fresh(a.name);
      g.body += "\n        tl.debug_barrier()";
    } else {
      g.functions.clear();
      g.arguments.clear();
      g.unspecialized.clear();
      g.body = called("    ", "parts_of_" + parts_.name, parts_, "", g);
      const std::string counter = names_.fresh("turns_ptr");
      g.arguments.push_back({.name = counter, .value = TensorArg{turns, 0}});
      g.body += fmt::format("\n    if is_last({}):", counter);
      g.functions.emplace_back(kIsLast);
    }
    const bool several = total_.grid[0] > 1;
    if (several) g.body += fmt::format("\n        for {} in range({}):", kProgramOfTotal, total_.grid[0]);
    const std::string number = g.totals > 0 ? std::to_string(g.totals) : "";
    ++g.totals;
    g.body += called(several ? "            " : "        ", fmt::format("total{}_of_{}", number, total_.name), total_,
                     !asks_    ? ""
                     : several ? kProgramOfTotal
                               : "0",
                     g);
    g.functions.push_back(function_text(g.kernel, g.arguments, g.unspecialized, g.body));
    g.source = source_of(g);
    g.configurations.clear();  // of the numbers of one of them
    for (auto list : {&Group::nodes, &Group::reads, &Group::writes}) merge(g.*list, total_.*list);
    std::erase_if(g.reads, [&](int v) { return std::ranges::find(parts_.writes, v) != parts_.writes.end(); });
    // What the last program reads, others may have overwritten before.
    std::erase_if(g.in_place, [&](const std::pair<int, int>& pair) {
      return std::ranges::find(total_.reads, pair.second) != total_.reads.end();
    });
    g.bytes += total_.bytes;
    g.flop += total_.flop;
    return g;
  }

 private:
  static void merge(std::vector<int>& into, const std::vector<int>& from) {
    into.insert(into.end(), from.begin(), from.end());
    std::ranges::sort(into);
    into.erase(std::ranges::unique(into).begin(), into.end());
  }

  /// Makes `of` a function of `g` and its arguments some of g's. Gives the call; `program`: the number of its program,
  /// if it asks for that.
  std::string called(const std::string& indent, const std::string& function, const Group& of, std::string_view program,
                     Group& g) {
    for (const std::string& f : of.functions)
      if (&f != &of.functions.back() && std::ranges::find(g.functions, f) == g.functions.end())
        g.functions.push_back(f);
    std::vector<Argument> parameters = of.arguments;
    if (!program.empty()) parameters.emplace(parameters.begin())->name = kProgramOfTotal;
    g.functions.push_back(function_text(function, parameters, {}, of.body));
    std::string given(program);
    for (const Argument& a : of.arguments) {
      const auto* tensor = std::get_if<TensorArg>(&a.value);
      const auto known = std::ranges::find_if(g.arguments, [&](const Argument& other) {
        const auto* same = std::get_if<TensorArg>(&other.value);
        return tensor && same && same->value == tensor->value && same->offset == tensor->offset;
      });
      given += given.empty() ? "" : ", ";
      if (known != g.arguments.end()) {
        given += known->name;
        continue;
      }
      Argument own = a;
      own.name = names_.fresh(a.name);
      given += own.name;
      if (std::ranges::find(of.unspecialized, a.name) != of.unspecialized.end()) g.unspecialized.push_back(own.name);
      g.arguments.push_back(std::move(own));
    }
    return "\n" + broken(fmt::format("{}{}({})", indent, function, given));
  }

  const Group &parts_, &total_;
  const bool asks_;
  Names names_;
};

/// A kernel of elements or rows, whose programs have one number.
bool is_plain(const Group& g, const Cluster& c) {
  return (c.form == Form::kRows || c.form == Form::kPointwise) && g.grid[1] * g.grid[2] == 1 && g.num_ctas == 1 &&
         !g.descriptors;
}

/// Whether each of its programs may count itself when it ends: so many do not wait for one another.
bool may_count(const Group& g, const Cluster& c) {
  constexpr int64_t kMostPrograms = 4096;
  return is_plain(g, c) && g.grid[0] > 1 && g.grid[0] <= kMostPrograms;
}

/// Whether one program makes all of it soon enough.
bool is_small(const Group& g, const Cluster& c, int num_warps) {
  constexpr int64_t kMostOfThread = 32, kMostPrograms = 4;
  return is_plain(g, c) && c.splits == 1 && g.grid[0] <= kMostPrograms &&
         numel(c.dims) <= kMostOfThread * 32 * num_warps;
}

}  // namespace

bool may_join(const Group& parts, const Cluster& of_parts, const Group& total, const Cluster& of_total) {
  // Programs that make parts count themselves anyway, for the totals that come; few ones do so at about the same time.
  constexpr int64_t kFewPrograms = 1024;
  const bool counts_anyway = of_parts.splits > 1 || parts.totals > 0 || parts.grid[0] <= kFewPrograms;
  return may_count(parts, of_parts) && is_small(total, of_total, parts.num_warps) && !total.precedes_product &&
         (counts_anyway || overlap(parts.writes, total.reads));
}

bool asks_for_program(const Cluster& of_total) { return !of_total.reduces() || of_total.kept > 0; }

Group joined(const Group& parts, const Group& total, const Cluster& of_total, int turns) {
  return Joiner(parts, total, asks_for_program(of_total)).joined(turns);
}

}  // namespace kiln::fusion
