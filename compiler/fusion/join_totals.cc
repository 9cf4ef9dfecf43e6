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
  Joiner(const Group& parts, const Group& total) : parts_(parts), total_(total) {}

  Group joined(int turns) {
    Group g = parts_;
    g.name = parts_.name + "_" + total_.name;
    g.kernel = g.name + "_kernel";
    g.comment = parts_.comment + total_.comment;
    g.libdevice = parts_.libdevice || total_.libdevice;
    g.functions.clear();
    g.arguments.clear();
    g.unspecialized.clear();
    g.body = called("    ", "parts_of_" + parts_.name, parts_, g);
    const std::string counter = names_.fresh("turns_ptr");
    g.arguments.push_back({.name = counter, .value = TensorArg{turns, 0}});
    g.body += fmt::format("\n    if is_last({}):", counter);
    g.body += called("        ", "total_of_" + total_.name, total_, g);
    g.functions.emplace_back(kIsLast);
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

  /// Makes `of` a function of `g` and its arguments some of g's. Gives the call.
  std::string called(const std::string& indent, const std::string& function, const Group& of, Group& g) {
    for (const std::string& f : of.functions)
      if (&f != &of.functions.back() && std::ranges::find(g.functions, f) == g.functions.end()) g.functions.push_back(f);
    g.functions.push_back(function_text(function, of.arguments, {}, of.body));
    std::string given;
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
  Names names_;
};

/// Whether each of its programs may count itself when it ends: so many do not wait for one another.
bool may_count(const Group& g, const Cluster& c) {
  constexpr int64_t kMostPrograms = 4096;
  return (c.form == Form::kRows || c.form == Form::kPointwise) && g.grid[0] > 1 && g.grid[0] <= kMostPrograms &&
         g.grid[1] * g.grid[2] == 1 && g.num_ctas == 1 && !g.descriptors;
}

/// Whether one program makes it, of few elements for the warps of another kernel. It has one row, so that its source
/// asks for no number of its program.
bool is_small(const Cluster& c, int num_warps) {
  constexpr int64_t kMostOfThread = 64;
  return c.reduces() && c.kept == 0 && c.splits == 1 && c.columns() <= kMostOfThread * 32 * num_warps;
}

}  // namespace

void join_totals(Plan& plan, const Grouping& grouping, std::vector<int>& group_of) {
  std::vector<Group> groups;
  int turns = -1;
  const Cluster* before = nullptr;
  for (size_t c = 0; c < plan.groups.size(); ++c) {
    Group& g = plan.groups[c];
    const Cluster& cluster = grouping.clusters[c];
    const bool joins = before && may_count(groups.back(), *before) && is_small(cluster, groups.back().num_warps) &&
                       !g.precedes_product && overlap(groups.back().writes, g.reads);
    if (joins) {
      if (turns < 0) {
        turns = static_cast<int>(plan.values.size());
        plan.values.push_back({.dtype = DType::kI32, .shape = {1}, .strides = {1}, .name = "turns", .turns = true});
      }
      groups.back() = Joiner(groups.back(), g).joined(turns);
    } else {
      groups.push_back(std::move(g));
    }
    before = joins ? nullptr : &cluster;
    group_of[c] = static_cast<int>(groups.size()) - 1;
  }
  plan.groups = std::move(groups);
}

}  // namespace kiln::fusion
