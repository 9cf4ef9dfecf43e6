#include "compiler/fusion/emitter.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/diag.h"

namespace kiln::fusion {

namespace {

constexpr size_t kLongestInline = 60;

/// Shorter forms of operations, whose errors are hidden where the result is at once rounded to 16 bits.
struct HalfForm {
  ExprOp op;
  std::string_view text;
};
constexpr HalfForm kHalfForms[] = {{ExprOp::kGelu, "gelu_of_half({0})"}, {ExprOp::kGeluTanh, "gelu_tanh_of_half({0})"}};

/// Operations whose result is one of their operands, or is as exact as they are.
constexpr ExprOp kMakeNoDigits[] = {ExprOp::kNeg,     ExprOp::kAbs,   ExprOp::kRelu,  ExprOp::kFloor,
                                    ExprOp::kCeil,    ExprOp::kRound, ExprOp::kTrunc, ExprOp::kMaximum,
                                    ExprOp::kMinimum, ExprOp::kClamp, ExprOp::kWhere, ExprOp::kCast};

bool is_narrow(DType t) { return register_type(t) != t; }
bool is_wide_float(DType t) { return is_float(t) && !is_narrow(t); }

std::string_view pattern_of(const ExprOpInfo& row, const DagNode& n, bool is_rounded) {
  if (is_int(n.operand_type) && !row.int_text.empty()) return row.int_text;
  if (is_rounded && is_half(n.dtype))
    for (const HalfForm& form : kHalfForms)
      if (form.op == n.op) return form.text;
  return row.text;
}

bool is_name(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

std::string type_name(DType t) { return fmt::format("tl.{}", info(t).triton); }

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

Emitter::Emitter(const Dag& dag, const Grouping& grouping, const Cluster& cluster, const std::vector<int>& value_of)
    : dag_(dag), grouping_(grouping), cluster_(cluster), value_of_(value_of), uses_(dag.nodes.size()) {
  for (int m : cluster.members) {
    for (const Operand& o : dag.nodes[at(m)].operands)
      if (!o.is_number()) ++uses_[at(o.node)];
    if (const auto& f = dag.nodes[at(m)].function) names.fresh(f->name);
  }
}

void Emitter::begin_loop(const std::string& head, const std::vector<std::string>& first, bool hoist) {
  KILN_ASSERT(!loop_, "a loop in a loop");
  loop_ = true;
  inner_names_.clear();
  hoist_ = hoist;
  indent_ = "        ";
  inner_lines_ = {"    " + head};
  for (const std::string& l : first) line(l);
}

void Emitter::begin_part() {
  begin_loop("", {});
  inner_lines_.clear();
  indent_ = "    ";
}

void Emitter::end_loop() {
  loop_ = false;
  indent_ = "    ";
  lines_.insert(lines_.end(), inner_lines_.begin(), inner_lines_.end());
  inner_lines_.clear();
  inner_.clear();
  inner_loads_.clear();
  for (const std::string& name : inner_names_) names.release(name);  // they end with the loop
  inner_names_.clear();
}

void Emitter::change_columns() {
  auto along_columns = [](const auto& entry) { return (entry.second.level & kAlongColumns) != 0; };
  std::erase_if(outer_, along_columns);
  std::erase_if(inner_, along_columns);
  std::erase_if(outer_loads_, along_columns);
  std::erase_if(inner_loads_, along_columns);
}

void Emitter::change_index(int dim) {
  inner_.clear();
  std::erase_if(inner_loads_, [&](const auto& entry) { return entry.first.strides[at(dim)] != 0; });
}

std::string Emitter::literal(const Number& n, DType type) {
  if (type == DType::kI1) return std::visit([](auto v) { return v != 0 ? "True" : "False"; }, n);
  if (is_float(type)) {
    const double v = std::visit([](auto x) { return static_cast<double>(x); }, n);
    if (std::isnan(v)) return "float(\"nan\")";
    if (std::isinf(v)) return v > 0 ? "float(\"inf\")" : "-float(\"inf\")";
    std::string text = fmt::format("{}", v);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text;
  }
  const int64_t v = std::visit([](auto x) { return static_cast<int64_t>(x); }, n);
  return type == DType::kU64 ? fmt::format("{}", static_cast<uint64_t>(v)) : fmt::format("{}", v);
}

std::string Emitter::mask(unsigned level) const {
  const bool both = two_ranges && level == kWhole;
  std::string out;
  if (level & kAlongRows && !row_mask.empty()) out = row_mask + (both ? "[:, None]" : "");
  if (level & kAlongColumns && !column_mask.empty())
    out += (out.empty() ? "" : " & ") + column_mask + (both ? "[None, :]" : "");
  return out;
}

std::string Emitter::address(const Access& a, const std::string& pointer, unsigned* level) {
  unsigned own = kUniform;
  for (size_t d = 0; d < index.size(); ++d)
    if (a.strides[d] != 0) own |= index[d].level;
  *level |= own;
  std::string out = pointer;
  // A dimension of one element still needs its place in the tile, of as many dimensions as the other terms.
  const std::string_view rows = *level == kWhole ? "[:, None]" : "", columns = *level == kWhole ? "[None, :]" : "";
  if (*level & ~own & kAlongRows && !row_index.empty()) out += fmt::format(" + 0 * {}{}", row_index, rows);
  if (*level & ~own & kAlongColumns && !column_index.empty()) out += fmt::format(" + 0 * {}{}", column_index, columns);
  int terms = 0;  // that differ from element to element
  auto add = [&](std::string term, int64_t stride, unsigned of) {
    terms += of != kUniform;
    if (two_ranges && *level == kWhole && of != kUniform) term += of == kAlongRows ? "[:, None]" : "[None, :]";
    if (stride != 1) term += " * " + (stride < 10 ? std::to_string(stride) : size(stride, "stride"));
    out += " + " + term;
  };
  std::vector<bool> done(index.size());
  for (const Walk& w : walks) {
    bool runs_on = a.strides[at(w.dims.back().first)] != 0 && !done[at(w.dims.back().first)];
    for (size_t i = 0; i + 1 < w.dims.size(); ++i)
      runs_on = runs_on && a.strides[at(w.dims[i].first)] == a.strides[at(w.dims[i + 1].first)] * w.dims[i + 1].second;
    if (!runs_on) continue;
    add(w.index, a.strides[at(w.dims.back().first)], w.level);
    for (const auto& [d, elements] : w.dims) done[at(d)] = true;
  }
  for (size_t d = 0; d < a.strides.size(); ++d) {
    if (a.strides[d] == 0) continue;
    if (d == index.size())
      add(*split, a.strides[d], kUniform);
    else if (!done[d] && !index[d].text.empty())  // empty: part of the next one's index
      add(index[d].text, a.strides[d], index[d].level);
  }
  return terms > 1 && (own == kAlongRows || own == kAlongColumns) && fits(a) ? widened_once(pointer, out) : out;
}

// One index of 32 bits for all terms, which several pointers may share, instead of a sum of 64 bits for each.
std::string Emitter::widened_once(const std::string& base, const std::string& place) {
  return fmt::format("{} + ({})", base, place.substr(base.size() + std::string_view(" + ").size()));
}

bool Emitter::fits(const Access& a) const {
  double most = 0;
  for (size_t d = 0; d < cluster_.dims.size() && d < a.strides.size(); ++d)
    most += static_cast<double>(cluster_.dims[d]) * static_cast<double>(std::abs(a.strides[d]));
  return most < 0x1p31 && a.strides.size() == index.size();
}

Access Emitter::access(int consumer, size_t i) const {
  const Operand& o = dag_.nodes[at(consumer)].operands[i];
  const std::vector<int> map = operand_map(dag_, cluster_, consumer, i);
  Access a{o.node, Shape(cluster_.dims.size(), 0), o.offset};
  for (size_t d = 0; d < map.size(); ++d)
    if (map[d] >= 0) a.strides[at(map[d])] = o.strides[d];
  // What is only copied keeps its bits: by way of float32, NaNs and the infinities of fp8 would change.
  const DagNode& n = dag_.nodes[at(consumer)];
  a.as_stored = n.op == ExprOp::kCast && uses_[at(consumer)] == 0 && n.dtype == dag_.nodes[at(o.node)].dtype;
  return a;
}

Access Emitter::store_access(int node) const {
  const DagNode& n = dag_.nodes[at(node)];
  const std::vector<int>& map = cluster_.map_of(node);
  const Shape strides = n.part_of >= 0 ? n.part_strides : stored_strides(n);
  Access a{node, Shape(cluster_.dims.size(), 0), n.part_offset};
  for (size_t d = 0; d < map.size(); ++d) {
    if (map[d] == kSplitDim) a.strides.push_back(strides[d]);
    if (map[d] >= 0) a.strides[at(map[d])] = strides[d];
  }
  return a;
}

bool Emitter::stored_along_columns(int node) const {
  const std::vector<int>& map = cluster_.map_of(node);
  return std::any_of(map.begin(), map.end(), [&](int d) { return d >= cluster_.kept; });
}

void Emitter::line_of(unsigned level, const std::string& text) {
  if (loop_ && outside_loop(level))
    lines_.push_back("    " + text);
  else
    line(text);
}

Text Emitter::filled(Text t, unsigned level, const std::string& shape) {
  if (t.level == level) return t;
  t.text = fmt::format("tl.zeros({}, {}) + {}", shape, type_name(t.type), spread(t, level, 7));
  t.binds = 6;
  t.level = level;
  return t;
}

Text Emitter::named(Text t, const std::string& hint) {
  if (t.number || is_name(t.text)) return t;
  const std::string name = names.fresh(hint.empty() ? "t" : hint);
  line_of(t.level, name + " = " + t.text);
  if (!(loop_ && outside_loop(t.level))) inner_names_.push_back(name);
  t.text = name;
  t.binds = 10;
  return t;
}

std::string Emitter::spread(Text t, unsigned level, int needed) {
  if (two_ranges && level == kWhole && (t.level == kAlongRows || t.level == kAlongColumns)) {
    const std::string suffix = t.level == kAlongRows ? "[:, None]" : "[None, :]";
    return named(std::move(t), "").text + suffix;
  }
  return t.binds < needed ? "(" + t.text + ")" : t.text;
}

std::string Emitter::named_inside(const std::string& text, const std::string& hint) {
  const std::string name = names.fresh(hint);
  inner_names_.push_back(name);
  line(name + " = " + text);
  return name;
}

std::string Emitter::load_of_pointers(const Access& a, Text* t) {
  const DagNode& n = dag_.nodes[at(a.node)];
  if (runs && runs->is_of(a)) {
    use_helper("load_in_runs");
    t->level |= kAlongColumns;
    return fmt::format("load_in_runs({}, {}, {}, {}, {}, {}, WHOLE={})", pointer(a.node, a.offset, false), runs->first,
                       runs->start, runs->end, runs->total, runs->run, runs->whole ? "True" : "False");
  }
  const std::string place = address(a, pointer(a.node, a.offset, read_back.contains(a.node)), &t->level);
  std::string text = "tl.load(" + place;
  if (const std::string m = mask(t->level); !m.empty()) {
    text += ", mask=" + m;
    if (t->level & kAlongColumns && !column_mask.empty() && other) {
      const bool real = is_float(n.dtype);
      const double fill = real && other_low.count(a.node) ? -kInf : real && other_one.count(a.node) ? 1.0 : *other;
      text += ", other=" + literal(fill, n.dtype == DType::kI1 ? DType::kI32 : n.dtype);
      if (real) t->outside = fill;
    }
  }
  const bool own_of_rows = cluster_.kept == 0 || std::any_of(a.strides.begin(), a.strides.begin() + cluster_.kept,
                                                             [](int64_t s) { return s != 0; });
  std::string eviction = own_of_rows ? evictions.own : evictions.shared;
  if (eviction.empty() && own_of_rows && read_once.count(a.node)) eviction = "evict_first";
  if (!eviction.empty() && t->level & kAlongColumns) text += fmt::format(", eviction_policy=\"{}\"", eviction);
  return text + ")";
}

Text Emitter::load(const Access& a) {
  for (const auto* cache : {&outer_loads_, &inner_loads_})
    if (auto it = cache->find(a); it != cache->end()) return it->second;
  const DagNode& n = dag_.nodes[at(a.node)];
  Text t;
  if (n.counts) {
    std::string sum = address(a, std::to_string(a.offset), &t.level);
    if (a.offset == 0 && sum.starts_with("0 + ")) sum.erase(0, 4);
    t.text = t.level == kUniform ? fmt::format("tl.full([], {}, {})", sum, type_name(n.dtype))
                                 : fmt::format("{}.to({})", is_name(sum) ? sum : "(" + sum + ")", type_name(n.dtype));
    t.type = n.dtype;
    t = named(std::move(t), n.name);
    return (outside_loop(t.level) ? outer_loads_ : inner_loads_)[a] = t;
  }
  if (auto block = blocks.find(a); block != blocks.end()) {
    t.text = block->second;
    t.level = kWhole;
  } else {
    t.text = load_of_pointers(a, &t);
  }
  t.type = a.as_stored ? n.dtype : register_type(n.dtype);
  if (t.type != n.dtype) t.text += ".to(" + type_name(t.type) + ")";
  t = named(std::move(t), n.name.empty() ? (n.kind == DagKind::kLeaf ? "x" : "t") : n.name);
  (outside_loop(t.level) ? outer_loads_ : inner_loads_)[a] = t;
  return t;
}

Text Emitter::scalar(const Operand& o, DType type, bool is_stride) {
  auto known = std::find_if(scalars_.begin(), scalars_.end(),
                            [&](const Scalar& s) { return s.node == o.argument && s.type == type; });
  if (known == scalars_.end())
    known =
        scalars_.insert(scalars_.end(), {o.argument, type, fusion::converted(o.number, type), names.fresh("alpha")});
  known->is_stride = known->is_stride || is_stride;
  Text t;
  t.text = known->name;
  t.type = type;
  t.finite = true;
  return t;
}

bool Emitter::makes_no_digits(const DagNode& n) const {
  const bool extreme = n.op == ExprOp::kMax || n.op == ExprOp::kMin;
  if (n.op == ExprOp::kTake) return true;
  if (!extreme && std::find(std::begin(kMakeNoDigits), std::end(kMakeNoDigits), n.op) == std::end(kMakeNoDigits))
    return false;
  for (size_t i = n.op == ExprOp::kWhere ? 1 : 0; i < n.operands.size(); ++i) {
    const Operand& o = n.operands[i];
    if (o.argument >= 0) return false;
    if (!o.is_number()) {
      if (dag_.nodes[at(o.node)].dtype != n.dtype) return false;
      continue;
    }
    const double v = std::visit([](auto x) { return static_cast<double>(x); }, o.number);
    const double kept = std::get<double>(fusion::converted(o.number, n.dtype));
    if (v != kept && !std::isnan(v)) return false;
  }
  return true;
}

bool Emitter::is_added(int node) const {
  for (int m : cluster_.members) {
    const DagNode& n = dag_.nodes[at(m)];
    if (std::none_of(n.operands.begin(), n.operands.end(), [&](const Operand& o) { return o.node == node; })) continue;
    // A jit function may add what it gets.
    if (n.op == ExprOp::kAdd || n.op == ExprOp::kSub || n.op == ExprOp::kSum || n.op == ExprOp::kCumSum ||
        n.op == ExprOp::kCall)
      return true;
    if (n.op == ExprOp::kCast && n.dtype == dag_.nodes[at(node)].dtype && is_added(m)) return true;
  }
  return false;
}

Text Emitter::rounded(Text t, DType dtype) { return converted(converted(std::move(t), dtype), register_type(dtype)); }

Text Emitter::settled(int node, Text t) {
  const DagNode& n = dag_.nodes[at(node)];
  const bool rounds = dag_.exact || n.op == ExprOp::kCast;
  return !rounds || uses_[at(node)] == 0 || !is_narrow(n.dtype) || makes_no_digits(n) ? t
                                                                                      : rounded(std::move(t), n.dtype);
}

Text Emitter::product(int node, Text sum) {
  return named(settled(node, converted(std::move(sum), register_type(dag_.nodes[at(node)].dtype))), "");
}

Text Emitter::operand(int consumer, size_t i) {
  const DagNode& n = dag_.nodes[at(consumer)];
  const Operand& o = n.operands[i];
  if (o.argument >= 0) {
    Text t = scalar(o, n.operand_type, n.op == ExprOp::kMul && is_of_places(consumer));
    return is_narrow(n.number_type) ? rounded(std::move(t), n.number_type) : t;
  }
  if (o.is_number()) {
    Text t;
    t.number = true;
    t.type = n.op == ExprOp::kWhere && i == 0 ? DType::kI1 : n.operand_type;
    if (n.op == ExprOp::kCall)
      t.type = o.number.index() == 2 ? DType::kF32 : o.number.index() == 1 ? DType::kI64 : DType::kI1;
    t.text = literal(o.number, t.type);
    if (t.text[0] == '-') t.binds = 8;
    t.outside = std::visit([](auto v) { return static_cast<double>(v); }, o.number);
    return t;
  }
  if (!cluster_.contains(o.node)) return load(access(consumer, i));
  const DType dtype = dag_.nodes[at(o.node)].dtype;
  const bool rounds = n.op == ExprOp::kCast || n.kind == DagKind::kReduce || n.kind == DagKind::kScan;
  return !dag_.exact && rounds && is_narrow(dtype) ? rounded(value(o.node), dtype) : value(o.node);
}

const Text& Emitter::value(int node) {
  for (auto* cache : {&outer_, &inner_})
    if (auto it = cache->find(node); it != cache->end()) return it->second;
  Text t = compute(node);
  const bool once = uses_[at(node)] + (grouping_.stored[at(node)] ? 1 : 0) <= 1;
  const bool hoisted = loop_ && outside_loop(t.level);
  if (dag_.nodes[at(node)].kind == DagKind::kReduce || !once || hoisted || t.text.size() > kLongestInline)
    t = named(std::move(t), dag_.nodes[at(node)].name);
  auto& cache = outside_loop(t.level) ? outer_ : inner_;
  return cache[node] = std::move(t);
}

Text Emitter::converted(Text t, DType to) {
  if (t.type == to) return t;
  // torch's uint8 of -1.0 is 255: what is negative wraps.
  if (is_float(t.type) && is_int(to) && !is_signed(to) && to != DType::kI1 && bits(to) < 64)
    t = converted(std::move(t), DType::kI64);
  // As torch: wide numbers are rounded to float32 on the way to a half.
  if (is_narrow(to) && t.type != DType::kF32 && (t.type == DType::kF64 || (is_int(t.type) && bits(t.type) >= 32)))
    t = converted(std::move(t), DType::kF32);
  if (is_fp8(to)) {
    use_helper("float8");
    t.text = fmt::format("float8({}, {})", t.text, type_name(to));
    t.binds = 10;
    t.type = to;
    return t;
  }
  t.text = (t.binds < 10 ? "(" + t.text + ")" : t.text) + ".to(" + type_name(to) + ")";
  t.binds = 10;
  t.type = to;
  return t;
}

Text Emitter::compute(int node) {
  const DagNode& n = dag_.nodes[at(node)];
  if (read_back.contains(node)) return load(store_access(node));
  if (n.kind == DagKind::kReduce) return combine(node, reduced(node));
  if (n.op == ExprOp::kTake) return taken(node);
  std::vector<Text> in;
  for (size_t i = 0; i < n.operands.size(); ++i) in.push_back(operand(node, i));
  return settled(node, apply(n, node, std::move(in)));
}

DType Emitter::reduction_type(const DagNode& n) {
  return n.op == ExprOp::kSum || n.op == ExprOp::kCumProd || bits(n.operand_type) >= 32 ? n.operand_type : DType::kI32;
}

std::string Emitter::identity(const DagNode& n) {
  const DType type = n.operand_type;
  if (n.op == ExprOp::kSum) return literal(0.0, type);
  if (n.op == ExprOp::kCumProd) return literal(1.0, type);
  const bool greatest = n.op == ExprOp::kMax;
  if (is_float(type)) return literal(greatest ? -kInf : kInf, type);
  const bool sign = is_signed(type);
  const int64_t low = sign ? static_cast<int64_t>(~uint64_t{0} << (bits(type) - 1)) : 0;
  const int64_t high = sign ? ~low : static_cast<int64_t>(~uint64_t{0} >> (64 - bits(type)));
  return literal(greatest ? low : high, type);
}

std::string Emitter::extreme(const DagNode& n) {
  const std::string_view base = n.op == ExprOp::kMax ? "maximum" : "minimum";
  if (n.plain_max || is_int(n.operand_type)) return fmt::format("tl.{}", base);
  use_helper(base);
  return std::string(base);
}

Text Emitter::scanned(int scan) {
  const DagNode& n = dag_.nodes[at(scan)];
  Text v = converted(operand(scan, 0), n.operand_type);
  if (runs) v = neutral_ahead(v, reduction_of(n));
  if (n.reverse) v = neutral_outside(std::move(v), reduction_of(n));
  return named(filled(std::move(v), two_ranges ? kWhole : kAlongColumns, tile_shape), "");
}

Text Emitter::running(int scan, const Text& tile) {
  const DagNode& n = dag_.nodes[at(scan)];
  use_pattern(info(n.op).text);
  Text t;
  t.text = fmt::format(fmt::runtime(info(n.op).text), tile.text, two_ranges || in_runs ? 1 : 0);
  if (n.reverse) t.text.insert(t.text.size() - 1, ", reverse=True");
  t.level = tile.level;
  t.type = n.operand_type;
  return t;
}

Text Emitter::combine(int reduction, const Text& tile) {
  const DagNode& n = dag_.nodes[at(reduction)];
  const ExprOpInfo& row = info(n.op);
  const bool extreme = n.op == ExprOp::kMax || n.op == ExprOp::kMin;
  const std::string_view pattern = n.op == ExprOp::kCumProd                             ? "tl.reduce({}, {}, multiply)"
                                   : extreme && (n.plain_max || is_int(n.operand_type)) ? row.int_text
                                                                                        : row.text;
  use_pattern(pattern);
  Text t;
  t.text = fmt::format(fmt::runtime(pattern), tile.text, tile.level == kWhole ? 1 : 0);
  t.level = tile.level & ~static_cast<unsigned>(kAlongColumns);
  t.type = reduction_type(n);
  return settled(reduction, converted(std::move(t), register_type(n.dtype)));
}

Text Emitter::call(const DagNode& n, int node, std::vector<Text> in) {
  const auto& f = n.function;
  const auto same_name =
      std::find_if(functions_.begin(), functions_.end(), [&](const auto& g) { return g->name == f->name; });
  if (same_name == functions_.end())
    functions_.push_back(f);
  else if ((*same_name)->text != f->text)
    problem_ = with_note(error(ErrorKind::kUnsupported, "two functions named {} meet in one kernel", f->name),
                         "help: give one of them another name");
  for (const std::string& defined : f->defines)
    if (is_helper(defined))
      problem_ =
          with_note(error(ErrorKind::kUnsupported, "the function {} has the name of one of the fuser's", defined),
                    "help: give it another name");
  Text t;
  for (const Text& x : in) t.level |= x.level;
  t.text = f->name + "(";
  for (size_t i = 0; i < in.size(); ++i) t.text += (i ? ", " : "") + spread(in[i], t.level, 0);
  t.text += ").to(" + type_name(register_type(n.dtype)) + ")";
  t.type = register_type(n.dtype);
  if (!is_wide_float(n.dtype) || !is_added(node)) return t;
  // Should the function end with a product.
  t.text = fmt::format("libdevice.mul_rn({}, 1.0)", t.text);
  libdevice_ = true;
  return t;
}

Text Emitter::apply(const DagNode& n, int node, std::vector<Text> in) {
  if (n.op == ExprOp::kCall) return call(n, node, std::move(in));
  const DType type = n.operand_type;
  if (n.op == ExprOp::kCast && n.operands[0].is_literal()) {
    in[0].text = fmt::format("tl.full([], {}, {})", in[0].text, type_name(in[0].type)), in[0].binds = 10;
    in[0].number = false;
  }
  if (n.op == ExprOp::kCast) return in[0].type == n.dtype ? in[0] : converted(in[0], register_type(n.dtype));
  const ExprOpInfo& row = info(n.op);
  std::string pattern(pattern_of(row, n, dag_.exact || uses_[at(node)] == 0));
  int row_binds = row.binds;
  // An fma of two operations would round once where each of them rounds.
  const bool alone = n.op == ExprOp::kMul && is_wide_float(n.dtype) && is_added(node);
  if (alone) pattern = "libdevice.mul_rn({0}, {1})", row_binds = 10;
  if (pattern == "{0}") return converted(converted(std::move(in[0]), type), register_type(n.dtype));
  use_pattern(pattern);

  bool all_numbers = true;
  for (size_t i = n.op == ExprOp::kWhere ? 1 : 0; i < in.size(); ++i) all_numbers = all_numbers && in[i].number;
  // A literal is an int32 or float32 where the language does not let it follow the other operand.
  const bool follows = n.op == ExprOp::kAdd || n.op == ExprOp::kSub || (n.op == ExprOp::kMul && !alone) ||
                       (n.op == ExprOp::kWhere && !all_numbers);
  const bool strong = !follows && type != DType::kF32 && type != DType::kI32 && type != DType::kI1;
  Text t;
  for (const Text& x : in) t.level |= x.level;
  t.outside = outside(n, in);
  std::vector<std::string> args;
  for (size_t i = 0; i < in.size(); ++i) {
    Text& x = in[i];
    if (!(n.op == ExprOp::kWhere && i == 0)) {
      if (x.number && strong) x.text = fmt::format("tl.full([], {}, {})", x.text, type_name(type)), x.binds = 10;
      if (!x.number) x = converted(std::move(x), type);
    }
    const std::string place = fmt::format("{{{}}}", i);
    const size_t first = pattern.find(place);
    const bool repeated = pattern.find(place, first + 1) != std::string::npos;
    if (repeated) x = named(std::move(x), "");
    const int needed = row_binds == 10 ? (repeated ? 10 : 0) : first == 0 && row_binds > 1 ? row_binds : row_binds + 1;
    args.push_back(spread(std::move(x), t.level, needed));
  }
  t.text.clear();
  for (size_t p = 0; p < pattern.size(); ++p) {
    if (pattern[p] == '{')
      t.text += args[static_cast<size_t>(pattern[p + 1] - '0')], p += 2;
    else
      t.text += pattern[p];
  }
  t.binds = row_binds;
  t.type = row.dtypes == ExprDTypeRule::kBool || n.op == ExprOp::kLogicalNot ? DType::kI1 : type;
  if (t.type != type && t.type != DType::kI1) t.type = type;
  // Comparisons bind looser than &, |; with a name or parentheses they cannot be misread.
  const DType result = register_type(n.dtype);
  if (n.op == ExprOp::kWhere && all_numbers && strong) return t;
  return t.type == result ? t : converted(std::move(t), result);
}

std::optional<double> Emitter::outside(const DagNode& n, const std::vector<Text>& in) const {
  if (!is_float(n.operand_type)) return std::nullopt;
  auto known = [&](size_t i) { return in[i].outside; };
  // An infinity stays one, whatever finite number or row's value is added (a NaN there makes the row NaN anyway).
  auto infinite = [&](size_t i, size_t j) {
    return known(i) && std::isinf(*known(i)) && !(in[j].level & kAlongColumns);
  };
  if (n.op == ExprOp::kAdd && infinite(0, 1)) return known(0);
  if (n.op == ExprOp::kAdd && infinite(1, 0)) return known(1);
  if (n.op == ExprOp::kSub && infinite(0, 1)) return known(0);
  auto zero = [&](size_t i, size_t j) { return known(i) && *known(i) == 0 && in[j].finite; };
  if (n.op == ExprOp::kMul && (zero(0, 1) || zero(1, 0))) return 0.0;
  if (n.op == ExprOp::kDiv && zero(0, 1)) return 0.0;  // a number that is an argument is not 0
  if (!std::all_of(in.begin(), in.end(), [](const Text& t) { return t.outside.has_value(); })) return std::nullopt;
  if (n.op == ExprOp::kAdd) return *known(0) + *known(1);
  if (n.op == ExprOp::kSub) return *known(0) - *known(1);
  if (n.op == ExprOp::kMul) return *known(0) * *known(1);
  if (n.op == ExprOp::kDiv && *known(1) == 1) return known(0);
  if (n.op == ExprOp::kExp) return std::exp(*known(0));
  if (n.op == ExprOp::kNeg) return -*known(0);
  if (n.op == ExprOp::kAbs) return std::abs(*known(0));
  return std::nullopt;
}

Text Emitter::reduced(int reduction) {
  const DagNode& n = dag_.nodes[at(reduction)];
  return neutral_outside(converted(operand(reduction, 0), n.operand_type), n);
}

Text Emitter::neutral_outside(Text v, const DagNode& n) {
  const bool masked = !column_mask.empty();
  const double neutral = n.op == ExprOp::kSum ? 0 : n.op == ExprOp::kCumProd ? 1 : n.op == ExprOp::kMax ? -kInf : kInf;
  if (v.level & kAlongColumns && (!masked || (v.outside && *v.outside == neutral))) return v;
  Text t = v;
  t.level |= kAlongColumns;
  const bool both = two_ranges && t.level == kWhole;
  std::string test = masked ? column_mask : "(" + column_test + ")";
  if (both) test += "[None, :]";
  const std::string taken = spread(v, t.level, 0);
  t.text = fmt::format("tl.where({}, {}, {})", test, taken, identity(n));
  t.binds = 10;
  t.outside = neutral;
  return t;
}

Text Emitter::neutral_ahead(const Text& v, const DagNode& n) {
  Text t = v;
  t.level |= kAlongColumns;
  t.text = fmt::format("tl.where({}, {}, {})", runs->ahead, identity(n), spread(v, t.level, 0));
  t.binds = 10;
  return t;
}

void Emitter::store(int node) {
  if (dag_.nodes[at(node)].op == ExprOp::kPut) return put(node);
  const Access a = store_access(node);
  const std::string p = pointer(node, a.offset, true);
  Text t = value(node);
  // A store rounds to the element's type by itself, but float8 in the language's way.
  if (const DType type = dag_.nodes[at(node)].dtype; is_fp8(type)) t = converted(std::move(t), type);
  if (runs && runs->is_of(a) && t.level & kAlongColumns) {
    use_helper("store_in_runs");
    return line(fmt::format("store_in_runs({}, {}, {}, {}, {}, {}, {})", p, t.text, runs->first, runs->start,
                            runs->begin, runs->end, runs->run));
  }
  unsigned level = row_index.empty() ? static_cast<unsigned>(kUniform) : t.level;
  const std::string place = address(a, p, &level);
  std::string text = fmt::format("tl.store({}, {}", place, spread(t, level, 0));
  if (const std::string m = mask(level); !m.empty()) text += ", mask=" + m;
  if (!evictions.stores.empty() && level & kAlongColumns)
    text += fmt::format(", eviction_policy=\"{}\"", evictions.stores);
  line_of(level, text + ")");
}

}  // namespace kiln::fusion
