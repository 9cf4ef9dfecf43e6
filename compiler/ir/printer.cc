// The text form (docs/ir.md). Every value has a unique name, so names need no scopes; unnamed values are numbered in
// the order in which they are printed, so that printing what was parsed gives the same text.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ir/ir.h"

namespace kiln::ir {

namespace {

std::string number_text(double v, DType dtype) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "inf" : "-inf";
  const float narrow = static_cast<float>(v);
  std::string s =
      dtype != DType::kF64 && static_cast<double>(narrow) == v ? fmt::format("{}", narrow) : fmt::format("{}", v);
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return s;
}

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      s += '\\', s += c;
    else if (c == '\n')
      s += "\\n";
    else if (c == '\t')
      s += "\\t";
    else if (static_cast<unsigned char>(c) < 0x20)
      s += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      s += c;
  }
  return s + "\"";
}

std::string ints_text(const std::vector<int64_t>& list) { return fmt::format("[{}]", fmt::join(list, ", ")); }

struct AttrText {
  DType dtype;
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return fmt::format("{}", v); }
  std::string operator()(double v) const { return number_text(v, dtype); }
  std::string operator()(const std::string& v) const { return quoted(v); }
  std::string operator()(const std::vector<int64_t>& v) const { return ints_text(v); }
  template <WordSet E>
  std::string operator()(E v) const {
    return quoted(spelling(v));
  }
};

std::string attr_text(const Attr& attr, DType dtype) { return std::visit(AttrText{dtype}, attr); }

/// Names of all values of a module.
class Names {
 public:
  explicit Names(const Block* body) {
    if (body) name_block(*body);
  }

  const std::string& of(const Value* v) {
    auto it = names_.find(v);
    return it != names_.end() ? it->second : name_value(v);  // a detached op's operand is named when first met
  }

 private:
  void name_block(const Block& block) {
    for (const Value* arg : block.args) name_value(arg);
    for (const Op* op = block.first; op; op = op->next) {
      for (const Value* r : op->results) name_value(r);
      for (const Block* region : op->regions) name_block(*region);
    }
  }

  const std::string& name_value(const Value* v) {
    std::string base = "%";
    for (char c : v->name) {
      const auto u = static_cast<unsigned char>(c);
      base += std::isalnum(u) || c == '_' || c == '.' || u >= 0x80 ? c : '_';
    }
    // A name of digits alone belongs to the numbered values.
    if (base.size() > 1 && std::isdigit(static_cast<unsigned char>(base[1]))) base.insert(1, "_");
    std::string name = base;
    if (base.size() == 1) name = fmt::format("%{}", next_number_++);
    for (int k = 1; base.size() > 1 && used_.count(name); ++k) name = fmt::format("{}_{}", base, k);
    used_.insert(name);
    return names_[v] = name;
  }

  std::unordered_map<const Value*, std::string> names_;
  std::unordered_set<std::string> used_;
  int next_number_ = 0;
};

class Printer {
 public:
  Printer(const Module* module, Names& names) : module_(module), names_(names) {}

  std::string take() { return std::move(out_); }

  void print_module() {
    const Module& m = *module_;
    for (size_t i = 0; i < m.layouts().size(); ++i) print_layout(i, *m.layouts()[i]);
    out_ += fmt::format("kernel @{}(", m.name);
    for (size_t i = 0; i < m.body()->args.size(); ++i) {
      if (i) out_ += ", ";
      print_arg(m.body()->args[i]);
      if (i < m.params.size() && m.params[i].divisibility != 1)
        out_ += fmt::format(" {{divisibility = {}}}", m.params[i].divisibility);
    }
    out_ += fmt::format(") attributes {{num_warps = {}, num_stages = {}, num_ctas = {}", m.num_warps, m.num_stages,
                        m.num_ctas);
    if (m.stage == Stage::kDistributed) out_ += ", stage = \"distributed\"";
    if (m.shared_bytes) out_ += fmt::format(", shared_bytes = {}", m.shared_bytes);
    out_ += "}";
    print_body(*m.body());
    out_ += "\n";
  }

  void print_op(const Op& op) {
    print_values(op.results);
    if (!op.results.empty()) out_ += " = ";
    out_ += info(op.kind).mnemonic;
    if (op.kind == OpKind::kFor) return print_for(op);
    if (op.kind == OpKind::kWhile) return print_while(op);
    if (op.kind == OpKind::kIf) return print_if(op);
    const bool constant = op.kind == OpKind::kConstant;
    if (constant && op.has(AttrName::kValue)) out_ += " " + attr_text(*op.find(AttrName::kValue), element_of(op));
    if (!op.operands.empty()) out_ += " ";
    print_values(op.operands);
    print_attrs(op, constant);
    print_result_types(op);
    for (const Block* region : op.regions) {
      print_arg_list(*region);
      print_body(*region);
    }
  }

 private:
  static DType element_of(const Op& op) { return op.results.empty() ? DType::kF64 : op.result()->type.dtype; }

  void print_layout(size_t index, const layout::LinearLayout& l) {
    static constexpr const char* kIns[] = {"register", "lane", "warp", "block", "offset"};
    std::vector<std::string> groups;
    for (int in = 0; in < layout::kNumIns; ++in) {
      if (l.bits(static_cast<layout::In>(in)) == 0) continue;
      std::vector<std::string> bases;
      for (const layout::Coord& c : l.bases(static_cast<layout::In>(in)))
        bases.push_back(fmt::format("({})", fmt::join(c.at.begin(), c.at.begin() + l.rank(), ", ")));
      groups.push_back(fmt::format("{} = [{}]", kIns[in], fmt::join(bases, ", ")));
    }
    out_ += fmt::format("layout L{} = [{}] {{{}}}\n", index, fmt::join(l.shape(), ", "), fmt::join(groups, ", "));
  }

  void print_type(const Type& type) {
    std::string layout;
    if (type.layout && module_) {
      const auto layouts = module_->layouts();
      const auto at = std::find(layouts.begin(), layouts.end(), type.layout);
      if (at != layouts.end()) layout = fmt::format("{{L{}}}", at - layouts.begin());
    }
    out_ += to_string(type, layout);
  }

  template <class Values>
  void print_types(const Values& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) out_ += ", ";
      print_type(values[i]->type);
    }
  }

  void print_result_types(const Op& op) {
    if (op.results.empty()) return;
    out_ += " : ";
    print_types(op.results);
  }

  template <class Values>
  void print_values(const Values& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) out_ += ", ";
      out_ += names_.of(values[i]);
    }
  }

  void print_arg(const Value* arg) {
    out_ += names_.of(arg) + ": ";
    print_type(arg->type);
  }

  void print_arg_list(const Block& block) {
    out_ += " (";
    for (size_t i = 0; i < block.args.size(); ++i) {
      if (i) out_ += ", ";
      print_arg(block.args[i]);
    }
    out_ += ")";
  }

  void print_attrs(const Op& op, bool but_value) {
    std::string list;
    for (const auto& [key, value] : op.attrs) {
      if (but_value && key == AttrName::kValue) continue;
      list += fmt::format("{}{} = {}", list.empty() ? "" : ", ", name(key), attr_text(value, element_of(op)));
    }
    if (!list.empty()) out_ += " {" + list + "}";
  }

  void print_region_attrs(const Op& op) {
    if (op.attrs.empty()) return;
    out_ += " attributes";
    print_attrs(op, false);
  }

  // (%acc = %init, …): block arguments from `first_arg` on, with the operands from `first_operand` on.
  void print_inits(const Op& op, size_t first_arg, size_t first_operand) {
    const auto& args = op.region()->args;
    out_ += " (";
    for (size_t i = first_arg; i < args.size(); ++i) {
      if (i > first_arg) out_ += ", ";
      out_ += names_.of(args[i]) + " = ";
      const size_t operand = i - first_arg + first_operand;
      if (operand < op.operands.size()) out_ += names_.of(op.operands[operand]);
    }
    out_ += ")";
  }

  void print_for(const Op& op) {
    const Block& body = *op.region();
    if (body.args.empty() || op.operands.size() < 3) return void(out_ += " <malformed>");
    out_ += fmt::format(" {} = {} to {} step {}", names_.of(body.args[0]), names_.of(op.operands[0]),
                        names_.of(op.operands[1]), names_.of(op.operands[2]));
    if (body.args.size() > 1) {
      out_ += " iter";
      print_inits(op, 1, 3);
    }
    out_ += " : ";
    print_type(body.args[0]->type);
    if (!op.results.empty()) {
      out_ += " -> (";
      print_types(op.results);
      out_ += ")";
    }
    print_region_attrs(op);
    print_body(body);
  }

  void print_while(const Op& op) {
    print_inits(op, 0, 0);
    print_result_types(op);
    print_body(*op.region(0));
    out_ += " do";
    print_arg_list(*op.region(1));
    print_body(*op.region(1));
  }

  void print_if(const Op& op) {
    out_ += " ";
    print_values(op.operands);
    print_result_types(op);
    print_body(*op.region(0));
    const Block& otherwise = *op.region(1);
    const bool trivial = otherwise.first && otherwise.first == otherwise.last && is_terminator(otherwise.first) &&
                         otherwise.first->operands.empty();
    if (trivial) return;
    out_ += " else";
    print_body(otherwise);
  }

  void print_body(const Block& block) {
    out_ += " {\n";
    ++indent_;
    for (const Op* op = block.first; op; op = op->next) {
      out_.append(2 * static_cast<size_t>(indent_), ' ');
      print_op(*op);
      out_ += "\n";
    }
    --indent_;
    out_.append(2 * static_cast<size_t>(indent_), ' ');
    out_ += "}";
  }

  const Module* module_;
  Names& names_;
  std::string out_;
  int indent_ = 0;
};

const Block* outermost(const Block* block) {
  while (block && block->parent && block->parent->parent) block = block->parent->parent;
  return block;
}

}  // namespace

std::string print(const Module& module) {
  Names names(module.body());
  Printer printer(&module, names);
  printer.print_module();
  return printer.take();
}

std::string print(const Op& op) {
  const Block* body = outermost(op.parent);
  Names names(body);
  Printer printer(body ? body->module : nullptr, names);
  printer.print_op(op);
  return printer.take();
}

}  // namespace kiln::ir
