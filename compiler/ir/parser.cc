// Reads the text form (docs/ir.md). It builds any module that parses; the verifier decides whether it is legal.
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "compiler/ir/ir.h"
#include "compiler/ir/lexer.h"
#include "support/float_bits.h"

namespace kiln::ir {

namespace {

// attrs.def's third column as values.
enum class AttrKind { kBool, kInt, kText, kInts, kNumber, kWord };
using namespace attr_kinds;
template <class T>
constexpr AttrKind kAttrKindOf = std::is_same_v<T, bool>      ? AttrKind::kBool
                                 : std::is_same_v<T, int64_t> ? AttrKind::kInt
                                 : std::is_same_v<T, Text>    ? AttrKind::kText
                                 : std::is_same_v<T, Ints>    ? AttrKind::kInts
                                 : std::is_same_v<T, Number>  ? AttrKind::kNumber
                                                              : AttrKind::kWord;
constexpr AttrKind kAttrKinds[] = {
#define KILN_ATTR(e, name, kind) kAttrKindOf<kind>,
#include "compiler/ir/attrs.def"
};

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<std::unique_ptr<Module>> parse(std::shared_ptr<const SourceText> source) {
    auto module = std::make_unique<Module>("");
    module->keep_alive(std::move(source));
    module_ = module.get();
    while (peek().is_word("layout")) KILN_CHECK_OK(parse_layout());
    KILN_CHECK_OK(parse_kernel());
    if (peek().kind != TokenKind::kEnd) return unexpected("the end of the text");
    return module;
  }

 private:
  // --- tokens
  const Token& peek(size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  const Token& next() {
    const Token& t = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  bool accept(std::string_view mark) {
    if (!peek().is(mark)) return false;
    next();
    return true;
  }
  bool accept_word(std::string_view word) {
    if (!peek().is_word(word)) return false;
    next();
    return true;
  }
  Diagnostic unexpected(std::string_view wanted) const {
    const Token& t = peek();
    return error_at(t.range, ErrorKind::kSyntax, "expected {}, got '{}'", wanted,
                    t.kind == TokenKind::kEnd ? std::string_view(t.text) : t.range.str());
  }
  Status expect(std::string_view mark) {
    if (!accept(mark)) return unexpected("'" + std::string(mark) + "'");
    return {};
  }
  Status expect_word(std::string_view word) {
    if (!peek().is_word(word)) return unexpected("'" + std::string(word) + "'");
    next();
    return {};
  }
  Result<int64_t> integer() {
    if (peek().kind != TokenKind::kNumber) return unexpected("an integer");
    int64_t v = 0;
    const std::string& text = peek().text;
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (code == std::errc::result_out_of_range)
      return error_at(peek().range, ErrorKind::kValue, "{} does not fit 64 bits", text);
    if (end != text.data() + text.size()) return unexpected("an integer");
    next();
    return v;
  }
  /// A comma-separated list of what `item` reads, up to `close` (which is read too).
  template <class Fn>
  Status list(std::string_view close, Fn&& item) {
    if (accept(close)) return {};
    do KILN_CHECK_OK(item());
    while (accept(","));
    return expect(close);
  }

  // --- types and attributes
  Result<Shape> shape() {
    Shape s;
    KILN_CHECK_OK(expect("["));
    KILN_CHECK_OK(list("]", [&]() -> Status {
      const SourceRange range = peek().range;
      KILN_TRY(int64_t d, integer());
      if (s.rank == kMaxRank) return error_at(range, ErrorKind::kValue, "a tile has at most {} dimensions", kMaxRank);
      if (d < 0 || d > std::numeric_limits<int32_t>::max())
        return error_at(range, ErrorKind::kValue, "{} is no size of a dimension", d);
      s.dims[s.rank++] = static_cast<int32_t>(d);
      return {};
    }));
    return s;
  }

  Result<Type> type() {
    Type t;
    t.form = accept_word("desc")      ? Form::kDescriptor
             : accept_word("shared")  ? Form::kShared
             : accept_word("barrier") ? Form::kBarrier
                                      : Form::kValue;
    if (t.form == Form::kBarrier)
      t.dtype = DType::kI64;
    else
      KILN_CHECK_OK(element_shape_layout(t));
    if (t.form == Form::kShared || t.form == Form::kBarrier) {
      if (accept_word("x")) {
        const SourceRange range = peek().range;
        KILN_TRY(int64_t copies, integer());
        if (copies < 1 || copies > kMaxNumel) return error_at(range, ErrorKind::kValue, "{} copies", copies);
        t.copies = static_cast<int32_t>(copies);
      }
    }
    return t;
  }

  /// "*f16", "f32[64]{L2}"
  Status element_shape_layout(Type& t) {
    t.pointer = accept("*");
    const std::optional<DType> dtype = peek().kind == TokenKind::kWord ? parse_dtype(peek().text) : std::nullopt;
    if (!dtype || kiln::name(*dtype) != peek().text) return unexpected("a type");
    next();
    t.dtype = *dtype;
    if (peek().is("[")) {
      KILN_TRY(t.shape, shape());
    }
    // No region starts with a lone word.
    if (peek().is("{") && peek(1).kind == TokenKind::kWord && peek(1).text.starts_with("L") && peek(2).is("}")) {
      next();
      auto found = layouts_.find(peek().text);
      if (found == layouts_.end()) return error_at(peek().range, ErrorKind::kName, "unknown layout '{}'", peek().text);
      t.layout = found->second;
      next();
      next();
    }
    return {};
  }

  Result<std::vector<Type>> types() {
    std::vector<Type> list;
    do {
      KILN_TRY(Type t, type());
      list.push_back(t);
    } while (accept(","));
    return list;
  }

  Result<double> number(DType dtype) {
    const Token& t = peek();
    double v = 0;
    if (t.is_word("nan")) {
      v = std::numeric_limits<double>::quiet_NaN();
    } else if (t.is_word("inf") || t.text == "-inf") {
      v = t.is_word("inf") ? HUGE_VAL : -HUGE_VAL;
    } else {
      auto [end, code] = std::from_chars(t.text.data(), t.text.data() + t.text.size(), v);
      if (t.kind != TokenKind::kNumber || end != t.text.data() + t.text.size()) return unexpected("a number");
      if (is_float(dtype) && dtype != DType::kF64) v = float_from_bits(dtype, float_to_bits(dtype, v));
    }
    next();
    return v;
  }
  static bool looks_float(const Token& t) {
    return t.kind == TokenKind::kWord || t.text.find_first_of(".eni") != std::string::npos;
  }

  Result<Attr> attr_value(AttrName attr) {
    switch (kAttrKinds[static_cast<size_t>(attr)]) {
      case AttrKind::kBool: {
        const bool v = peek().is_word("true");
        if (!v && !peek().is_word("false")) return unexpected("true or false");
        next();
        return Attr(v);
      }
      case AttrKind::kInt: {
        KILN_TRY(int64_t v, integer());
        return Attr(v);
      }
      case AttrKind::kText:
        if (peek().kind != TokenKind::kString) return unexpected("a string");
        return Attr(next().text);
      case AttrKind::kWord: {
        if (peek().kind != TokenKind::kString) return unexpected("a string");
        const std::optional<Attr> word = parse_word(attr, peek().text);
        if (!word)
          return error_at(peek().range, ErrorKind::kValue, "{} is one of {}, got '{}'", name(attr),
                          list_words(words_of(attr)), peek().text);
        next();
        return *word;
      }
      case AttrKind::kInts: {
        std::vector<int64_t> v;
        KILN_CHECK_OK(expect("["));
        KILN_CHECK_OK(list("]", [&]() -> Status {
          KILN_TRY(int64_t i, integer());
          v.push_back(i);
          return {};
        }));
        return Attr(std::move(v));
      }
      case AttrKind::kNumber: {
        if (looks_float(peek())) {
          KILN_TRY(double v, number(DType::kF64));
          return Attr(v);
        }
        KILN_TRY(int64_t v, integer());
        return Attr(v);
      }
    }
    KILN_UNREACHABLE("attribute kind");
  }

  Status attrs(Op* op) {
    KILN_CHECK_OK(expect("{"));
    return list("}", [&]() -> Status {
      const std::optional<AttrName> attr =
          peek().kind == TokenKind::kWord ? parse_attr_name(peek().text) : std::nullopt;
      if (!attr) return unexpected("the name of an attribute");
      if (op->has(*attr)) return error_at(peek().range, ErrorKind::kSyntax, "'{}' is given twice", peek().text);
      next();
      KILN_CHECK_OK(expect("="));
      KILN_TRY(Attr value, attr_value(*attr));
      op->set(*attr, std::move(value));
      return {};
    });
  }

  // --- values
  Result<Value*> use() {
    const Token& t = peek();
    if (t.kind != TokenKind::kValue) return unexpected("a value");
    auto found = values_.find(t.text);
    if (found == values_.end()) return error_at(t.range, ErrorKind::kName, "%{} is not defined above", t.text);
    next();
    return found->second;
  }
  Result<Token> new_name() {
    if (peek().kind != TokenKind::kValue) return unexpected("a name for a value");
    return next();
  }
  Status define(const Token& name, Value* v) {
    if (!values_.emplace(name.text, v).second)
      return error_at(name.range, ErrorKind::kName, "%{} is defined twice", name.text);
    const bool numbered = name.text.find_first_not_of("0123456789") == std::string::npos;
    v->name = numbered ? std::string_view() : module_->intern(name.text);
    return {};
  }
  Status define_results(Op* op, const std::vector<Token>& names, const std::vector<Type>& result_types,
                        SourceRange where) {
    if (names.size() != result_types.size())
      return error_at(where, ErrorKind::kSyntax, "{} names for {} results", names.size(), result_types.size());
    for (size_t i = 0; i < names.size(); ++i) KILN_CHECK_OK(define(names[i], module_->add_result(op, result_types[i])));
    return {};
  }
  Status arg_list(Block* block) {
    KILN_CHECK_OK(expect("("));
    return list(")", [&]() -> Status { return argument(block); });
  }
  Status argument(Block* block) {
    KILN_TRY(Token name, new_name());
    KILN_CHECK_OK(expect(":"));
    KILN_TRY(Type t, type());
    return define(name, module_->add_arg(block, t));
  }

  // --- the module
  Status parse_layout() {
    static constexpr std::string_view kIns[] = {"register", "lane", "warp", "block", "offset"};
    next();
    const Token name = next();
    if (name.kind != TokenKind::kWord) return error_at(name.range, ErrorKind::kSyntax, "expected the layout's name");
    KILN_CHECK_OK(expect("="));
    KILN_TRY(Shape s, shape());
    layout::LinearLayout l(s.span());
    KILN_CHECK_OK(expect("{"));
    KILN_CHECK_OK(list("}", [&]() -> Status {
      int in = 0;
      while (in < layout::kNumIns && !peek().is_word(kIns[in])) ++in;
      if (in == layout::kNumIns) return unexpected("register, lane, warp, block or offset");
      next();
      KILN_CHECK_OK(expect("="));
      KILN_CHECK_OK(expect("["));
      return list("]", [&]() -> Status {
        layout::Coord c;
        int dim = 0;
        KILN_CHECK_OK(expect("("));
        KILN_CHECK_OK(list(")", [&]() -> Status {
          if (dim >= s.rank) return unexpected("as many numbers as the layout has dimensions");
          KILN_TRY(int64_t v, integer());
          c[dim++] = static_cast<int32_t>(v);
          return {};
        }));
        l.push(static_cast<layout::In>(in), c);
        return {};
      });
    }));
    const auto* interned = module_->intern(l);
    if (!layouts_.emplace(name.text, interned).second)
      return error_at(name.range, ErrorKind::kName, "layout {} is defined twice", name.text);
    return {};
  }

  Status parse_kernel() {
    KILN_CHECK_OK(expect_word("kernel"));
    if (peek().kind != TokenKind::kSymbol) return unexpected("the kernel's name as @name");
    module_->name = next().text;
    KILN_CHECK_OK(expect("("));
    KILN_CHECK_OK(list(")", [&]() -> Status {
      KILN_CHECK_OK(argument(module_->body()));
      ParamInfo info{std::string(module_->body()->args.back()->name), 1};
      if (accept("{")) {
        KILN_CHECK_OK(expect_word("divisibility"));
        KILN_CHECK_OK(expect("="));
        KILN_TRY(int64_t d, integer());
        info.divisibility = static_cast<int>(d);
        KILN_CHECK_OK(expect("}"));
      }
      module_->params.push_back(std::move(info));
      return {};
    }));
    if (peek().is_word("attributes")) {
      next();
      KILN_CHECK_OK(expect("{"));
      KILN_CHECK_OK(list("}", [&]() -> Status { return module_attr(); }));
    }
    return body(module_->body());
  }

  Status module_attr() {
    const Token name = next();
    KILN_CHECK_OK(expect("="));
    if (name.is_word("stage")) {
      const Token stage = next();
      if (stage.text != "tile" && stage.text != "distributed")
        return error_at(stage.range, ErrorKind::kValue, "the stage is \"tile\" or \"distributed\"");
      module_->stage = stage.text == "tile" ? Stage::kTile : Stage::kDistributed;
      return {};
    }
    KILN_TRY(int64_t v, integer());
    if (name.is_word("num_warps"))
      module_->num_warps = static_cast<int>(v);
    else if (name.is_word("num_stages"))
      module_->num_stages = static_cast<int>(v);
    else if (name.is_word("num_ctas"))
      module_->num_ctas = static_cast<int>(v);
    else if (name.is_word("shared_bytes"))
      module_->shared_bytes = v;
    else
      return error_at(name.range, ErrorKind::kName, "unknown attribute of a kernel '{}'", name.text);
    return {};
  }

  // --- ops
  Status body(Block* block) {
    KILN_CHECK_OK(expect("{"));
    while (!accept("}")) KILN_CHECK_OK(statement(block));
    return {};
  }

  Status statement(Block* block) {
    std::vector<Token> names;
    if (peek().kind == TokenKind::kValue) {
      do {
        KILN_TRY(Token name, new_name());
        names.push_back(std::move(name));
      } while (accept(","));
      KILN_CHECK_OK(expect("="));
    }
    const Token mnemonic = peek();
    if (mnemonic.kind != TokenKind::kWord) return unexpected("an op");
    const std::optional<OpKind> kind = parse_op_kind(mnemonic.text);
    if (!kind) {
      std::vector<std::string_view> all;
      for (int k = 0; k < num_op_kinds(); ++k) all.push_back(info(static_cast<OpKind>(k)).mnemonic);
      const std::string near = nearest_name(mnemonic.text, all);
      Diagnostic d = error_at(mnemonic.range, ErrorKind::kName, "unknown op '{}'", mnemonic.text);
      return near.empty() ? d : with_note(std::move(d), "help: did you mean '" + near + "'");
    }
    next();
    Op* op = module_->new_op(*kind, mnemonic.range);
    block->insert_before(nullptr, op);
    for (int i = 0; i < info(*kind).regions; ++i) module_->new_block(op);
    if (*kind == OpKind::kFor) return parse_for(op, names);
    if (*kind == OpKind::kWhile) return parse_while(op, names);
    if (*kind == OpKind::kIf) return parse_if(op, names);
    return parse_generic(op, names);
  }

  Status parse_generic(Op* op, const std::vector<Token>& names) {
    if (op->kind == OpKind::kConstant) return parse_constant(op, names);
    if (peek().kind == TokenKind::kValue && !is_statement_start()) KILN_CHECK_OK(operands(op));
    if (peek().is("{")) KILN_CHECK_OK(attrs(op));
    KILN_CHECK_OK(result_types(op, names));
    const bool any_number = info(op->kind).regions < 0;
    for (size_t i = 0; i < op->regions.size() || (any_number && peek().is("(")); ++i) {
      Block* region = i < op->regions.size() ? op->regions[i] : module_->new_block(op);
      KILN_CHECK_OK(arg_list(region));
      KILN_CHECK_OK(body(region));
    }
    return {};
  }

  // After an op without operands (yield), the next statement may start with a value: "%a = …" or "%a, %b = …".
  bool is_statement_start() const {
    size_t ahead = 0;
    while (peek(ahead).kind == TokenKind::kValue && peek(ahead + 1).is(",")) ahead += 2;
    return peek(ahead).kind == TokenKind::kValue && peek(ahead + 1).is("=");
  }

  Status operands(Op* op) {
    do {
      KILN_TRY(Value * v, use());
      op->append_operand(v);
    } while (accept(","));
    return {};
  }

  Status result_types(Op* op, const std::vector<Token>& names) {
    std::vector<Type> list;
    if (accept(":")) {
      KILN_TRY(list, types());
    }
    return define_results(op, names, list, op->range);
  }

  Status parse_constant(Op* op, const std::vector<Token>& names) {
    const size_t value_at = at_;
    next();  // parsed again below, once the type is known
    KILN_CHECK_OK(result_types(op, names));
    const size_t end = std::exchange(at_, value_at);
    const Type type = op->results.empty() ? scalar_type(DType::kI32) : op->result()->type;
    if (type.is_float()) {
      KILN_TRY(double v, number(type.dtype));
      op->set(AttrName::kValue, v);
    } else {
      KILN_TRY(int64_t v, integer());
      op->set(AttrName::kValue, v);
    }
    at_ = end;
    return {};
  }

  // (%acc = %init, …); the names' block arguments are made by the caller, when their types are known.
  Status inits(Op* op, std::vector<Token>& names) {
    KILN_CHECK_OK(expect("("));
    return list(")", [&]() -> Status {
      KILN_TRY(Token name, new_name());
      KILN_CHECK_OK(expect("="));
      KILN_TRY(Value * init, use());
      names.push_back(std::move(name));
      op->append_operand(init);
      return {};
    });
  }

  Status region_attrs(Op* op) {
    if (!peek().is_word("attributes")) return {};
    next();
    return attrs(op);
  }

  Status parse_for(Op* op, const std::vector<Token>& names) {
    KILN_TRY(Token iv, new_name());
    for (std::string_view mark : {"=", "to", "step"}) {
      if (mark == "=")
        KILN_CHECK_OK(expect(mark));
      else
        KILN_CHECK_OK(expect_word(mark));
      KILN_TRY(Value * v, use());
      op->append_operand(v);
    }
    std::vector<Token> iters;
    if (peek().is_word("iter")) {
      next();
      KILN_CHECK_OK(inits(op, iters));
    }
    KILN_CHECK_OK(expect(":"));
    KILN_TRY(Type iv_type, type());
    std::vector<Type> list;
    if (accept("->")) {
      KILN_CHECK_OK(expect("("));
      KILN_TRY(list, types());
      KILN_CHECK_OK(expect(")"));
    }
    KILN_CHECK_OK(region_attrs(op));
    KILN_CHECK_OK(define_results(op, names, list, op->range));
    if (iters.size() != list.size())
      return error_at(op->range, ErrorKind::kSyntax, "{} loop values for {} results", iters.size(), list.size());
    KILN_CHECK_OK(define(iv, module_->add_arg(op->region(), iv_type)));
    for (size_t i = 0; i < iters.size(); ++i) KILN_CHECK_OK(define(iters[i], module_->add_arg(op->region(), list[i])));
    return body(op->region());
  }

  Status parse_while(Op* op, const std::vector<Token>& names) {
    std::vector<Token> iters;
    KILN_CHECK_OK(inits(op, iters));
    KILN_CHECK_OK(result_types(op, names));
    KILN_CHECK_OK(region_attrs(op));
    for (size_t i = 0; i < iters.size(); ++i)
      KILN_CHECK_OK(define(iters[i], module_->add_arg(op->region(0), op->operands[i]->type)));
    KILN_CHECK_OK(body(op->region(0)));
    KILN_CHECK_OK(expect_word("do"));
    KILN_CHECK_OK(arg_list(op->region(1)));
    return body(op->region(1));
  }

  Status parse_if(Op* op, const std::vector<Token>& names) {
    KILN_CHECK_OK(operands(op));
    KILN_CHECK_OK(result_types(op, names));
    KILN_CHECK_OK(body(op->region(0)));
    if (peek().is_word("else")) {
      next();
      return body(op->region(1));
    }
    op->region(1)->insert_before(nullptr, module_->new_op(OpKind::kYield, op->range));
    return {};
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  Module* module_ = nullptr;
  std::unordered_map<std::string, Value*> values_;
  std::unordered_map<std::string, const layout::LinearLayout*> layouts_;
};

}  // namespace

Result<std::unique_ptr<Module>> parse_module(std::shared_ptr<const SourceText> text) {
  KILN_TRY(std::vector<Token> tokens, lex(*text));
  return Parser(std::move(tokens)).parse(std::move(text));
}

}  // namespace kiln::ir
