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

constexpr std::string_view kIsLastOf =
    "@triton.jit\n"
    "def is_last_of(turns_ptr, programs):\n"
    "    # Whether all others of so many programs have come here: what they stored is there then.\n"
    "    tl.debug_barrier()\n"
    "    last = tl.atomic_add(turns_ptr, 1, sem=\"acq_rel\") == programs - 1\n"
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
    Group g = named();
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
    finish(g);
    return g;
  }

  Group joined_rows(int64_t sharing, int turns) {
    Group g = named();
    g.functions.clear();
    g.arguments.clear();
    g.unspecialized.clear();
    names_.fresh(std::string(kProgramOfTotal));
    g.body = called("    ", "parts_of_" + parts_.name, parts_, "", g);
    const std::string counter = names_.fresh("turns_ptr");
    g.arguments.push_back({.name = counter, .value = TensorArg{turns, 0}});
    g.body += fmt::format("\n    {0} = tl.program_id(0) // {1}\n    if is_last_of({2} + {0}, {1}):", kProgramOfTotal,
                          sharing, counter);
    g.functions.emplace_back(kIsLastOf);
    g.ends_by_rows = true;
    g.body += called("        ", "total_of_" + total_.name, total_, kProgramOfTotal, g);
    finish(g);
    // Each program behind parts reads and writes its own rows alone.
    for (const auto& pair : total_.in_place)
      if (std::ranges::find(parts_.reads, pair.second) == parts_.reads.end()) g.in_place.push_back(pair);
    return g;
  }

 private:
  Group named() const {
    Group g = parts_;
    g.name = parts_.name + "_" + total_.name;
    g.kernel = g.name + "_kernel";
    g.comment = parts_.comment + total_.comment;
    g.libdevice = parts_.libdevice || total_.libdevice;
    return g;
  }

  /// Its source, and what it reads, writes and moves.
  void finish(Group& g) const {
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
  }

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
  if (parts.ends_by_rows) return false;
  // Programs that make parts count themselves anyway, for the totals that come; few ones do so at about the same time.
  constexpr int64_t kFewPrograms = 1024;
  const bool counts_anyway = of_parts.splits > 1 || parts.totals > 0 || parts.grid[0] <= kFewPrograms;
  return may_count(parts, of_parts) && is_small(total, of_total, parts.num_warps) && !total.precedes_product &&
         (counts_anyway || overlap(parts.writes, total.reads));
}

bool may_join_rows(const Dag& dag, const Group& parts, const Cluster& of_parts, const Group& total,
                   const Cluster& of_total) {
  constexpr int64_t kMostOfThread = 32;
  if (parts.rows_of_part == 0 || parts.totals > 0 || parts.ends_by_rows || !may_count(parts, of_parts) ||
      !is_plain(total, of_total) || total.precedes_product || of_total.splits > 1)
    return false;
  const auto kept = of_parts.dims.begin() + of_parts.kept;
  const bool of_its_rows = of_parts.form == Form::kRows && of_total.form == Form::kRows &&
                           of_total.kept == of_parts.kept && std::ssize(of_total.dims) == of_parts.kept + 1 &&
                           of_total.dims.back() == of_parts.splits && total.row_order == parts.row_order &&
                           std::equal(of_parts.dims.begin(), kept, of_total.dims.begin());
  if (!of_its_rows || cdiv(of_parts.rows(), parts.rows_of_part) > kMostTurns ||
      parts.rows_of_part * of_parts.splits > kMostOfThread * 32 * parts.num_warps)
    return false;
  // Of what the programs with parts make, each reads its own rows.
  bool reads = false;
  for (const int m : of_total.members)
    for (size_t i = 0; i < dag.nodes[at(m)].operands.size(); ++i) {
      const Operand& o = dag.nodes[at(m)].operands[i];
      if (o.is_number() || !of_parts.contains(o.node)) continue;
      const DagNode& from = dag.nodes[at(o.node)];
      const std::vector<int>&made = of_parts.map_of(o.node), read = operand_map(dag, of_total, m, i);
      if (from.kind != DagKind::kReduce || !is_whole(o, from.shape)) return false;
      for (size_t d = 0; d < from.shape.size(); ++d)
        if (from.shape[d] != 1 && read[d] != (made[d] == kSplitDim ? of_total.kept : made[d])) return false;
      reads = true;
    }
  return reads;
}

Group joined_rows(const Group& parts, const Group& total, int64_t sharing, int turns) {
  return Joiner(parts, total, /*asks_for_program=*/true).joined_rows(sharing, turns);
}

bool asks_for_program(const Cluster& of_total) { return !of_total.reduces() || of_total.kept > 0; }

Group joined(const Group& parts, const Group& total, const Cluster& of_total, int turns) {
  return Joiner(parts, total, asks_for_program(of_total)).joined(turns);
}

}  // namespace kiln::fusion
