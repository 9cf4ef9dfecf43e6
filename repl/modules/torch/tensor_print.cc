// How torch prints tensors: four digits, one width, long ones shortened.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "repl/modules/torch/tensor_object.h"

namespace kiln::script {

namespace {

struct Printer {
  const PrintOptions& options;
  DType dtype;
  bool summarize = false;
  bool whole = true;  // every float is a whole number: "1."
  bool scientific = false;
  size_t width = 1;

  std::string text(const Value& v) const {
    std::string out = bare(v);
    return out.size() < width ? std::string(width - out.size(), ' ') + out : out;
  }
  std::string bare(const Value& v) const {
    if (v.is_bool()) return v.boolean() ? "True" : "False";
    if (!v.is_float()) return ast::to_string(std::get<ast::Int>(*v.constant()));
    double d = v.real();
    if (std::isnan(d)) return "nan";
    if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
    if (scientific) return fmt::format("{:.{}e}", d, options.precision);
    if (whole) return fmt::format("{:.0f}.", d);
    return fmt::format("{:.{}f}", d, options.precision);
  }

  void measure(const std::vector<Value>& shown) {
    if (!is_float(dtype)) {
      for (const Value& v : shown) width = std::max(width, bare(v).size());
      return;
    }
    double low = INFINITY, high = 0;
    for (const Value& v : shown) {
      double d = std::fabs(v.real());
      if (!std::isfinite(d) || d == 0) continue;
      low = std::min(low, d);
      high = std::max(high, d);
      if (d != std::ceil(d)) whole = false;
    }
    if (high == 0) return;
    scientific = high / low > 1000 || high > 1e8 || (!whole && low < 1e-4);
    scientific = options.scientific.value_or(scientific);
    // Whole numbers are measured without what is not finite, as in torch: "[nan, 1., 2.]".
    for (const Value& v : shown)
      if (!whole || scientific || std::isfinite(v.real())) width = std::max(width, bare(v).size());
  }
};

/// The elements that are shown, row-major, and the text of any block of them.
struct Block {
  const PrintOptions& options;
  const size_t width;
  const std::vector<std::string>& texts;
  const Shape& full;   // the tensor's shape
  const Shape& shape;  // of what is shown

  bool cut_at(size_t dim, int64_t i) const { return full[dim] != shape[dim] && i == options.edge; }

  std::string vector(size_t offset, int indent) const {
    size_t dim = shape.size() - 1;
    int element = static_cast<int>(width) + 2;
    size_t per_line = static_cast<size_t>(std::max(1, (options.line_width - indent) / element));
    std::vector<std::string> items;
    for (int64_t i = 0; i < shape[dim]; ++i) {
      if (cut_at(dim, i)) items.push_back(" ...");
      items.push_back(texts[offset + static_cast<size_t>(i)]);
    }
    std::string out = "[";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out += i % per_line == 0 ? ",\n" + std::string(static_cast<size_t>(indent) + 1, ' ') : ", ";
      out += items[i];
    }
    return out + "]";
  }

  std::string text(size_t dim, size_t offset, int indent) const {
    if (dim + 1 == shape.size()) return vector(offset, indent);
    size_t stride = 1;
    for (size_t d = dim + 1; d < shape.size(); ++d) stride *= static_cast<size_t>(shape[d]);
    std::string between =
        "," + std::string(shape.size() - dim - 1, '\n') + std::string(static_cast<size_t>(indent) + 1, ' ');
    std::string out = "[";
    for (int64_t i = 0; i < shape[dim]; ++i) {
      if (i) out += between;
      if (cut_at(dim, i)) out += "..." + between;
      out += text(dim + 1, offset + static_cast<size_t>(i) * stride, indent + 1);
    }
    return out + "]";
  }
};

/// The elements at those positions along each dimension. Copies no more than whole rows of the last dimension's edges.
std::vector<Value> gather(Interp& in, const Tensor& t, const std::vector<std::vector<int64_t>>& kept) {
  std::vector<Value> out;
  size_t rank = kept.size();
  std::vector<size_t> at(rank, 0);
  size_t size = static_cast<size_t>(size_of(t.dtype()));
  for (;;) {
    // One run of neighbours in the last dimension at a time.
    int64_t offset = t.offset();
    for (size_t d = 0; d + 1 < rank; ++d) offset += kept[d][at[d]] * t.strides()[d];
    size_t i = 0, n = rank ? kept[rank - 1].size() : 1;
    while (i < n) {
      size_t end = i + 1;
      while (rank && end < n && kept[rank - 1][end] == kept[rank - 1][end - 1] + 1) ++end;
      Shape run_shape, run_strides;
      if (rank) run_shape = {static_cast<int64_t>(end - i)}, run_strides = {t.strides()[rank - 1]};
      Tensor run = in.take(
          t.as_strided(run_shape, run_strides, offset + (rank ? kept[rank - 1][i] * t.strides()[rank - 1] : 0)));
      std::vector<std::byte> bytes = in.take(run.to_bytes());
      for (size_t k = 0; k < end - i; ++k) out.push_back(element_value(t.dtype(), bytes.data() + k * size));
      i = end;
    }
    size_t d = rank > 0 ? rank - 1 : 0;
    while (d > 0 && ++at[d - 1] == kept[d - 1].size()) at[--d] = 0;
    if (d == 0) return out;
  }
}

std::string size_text(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
}

}  // namespace

std::string tensor_text(Interp& in, const Tensor& t, const Tensor* imag, std::string_view gradient) {
  const PrintOptions& options = torch_state(in).print;
  Printer printer{options, t.dtype()}, imag_printer{options, t.dtype()};
  Shape shape = shape_vector(t);
  std::vector<std::string> suffixes;
  if (t.device().is_cuda()) suffixes.push_back(fmt::format("device='{}'", t.device().name()));
  bool plain = t.dtype() == default_dtype(in) || t.dtype() == DType::kI64 || t.dtype() == DType::kI1;
  const std::string type(!imag ? info(t.dtype()).torch : t.dtype() == DType::kF64 ? "complex128" : "complex64");
  std::string body;
  if (t.numel() == 0) {
    if (t.rank() != 1) suffixes.push_back("size=" + size_text(shape));
    if (imag || t.dtype() != default_dtype(in)) suffixes.push_back("dtype=torch." + type);
    body = "[]";
  } else {
    printer.summarize = t.numel() > options.threshold;
    if (options.edge == 0) suffixes.push_back("size=" + size_text(shape));
    if (!plain) suffixes.push_back("dtype=torch." + type);
  }
  if (!gradient.empty()) suffixes.emplace_back(gradient);
  if (t.numel() > 0 && printer.summarize && options.edge == 0) {
    body = "[...]";
  } else if (t.numel() > 0) {
    // A summary needs the edges only: gather them into a small tensor's worth of values, dimension by dimension.
    Shape small = shape;
    std::vector<std::vector<int64_t>> kept(shape.size());
    for (size_t d = 0; d < shape.size(); ++d) {
      bool cut = printer.summarize && shape[d] > 2 * options.edge;
      for (int64_t i = 0; i < shape[d]; ++i) {
        if (cut && i == options.edge) i = shape[d] - options.edge;
        kept[d].push_back(i);
      }
      small[d] = static_cast<int64_t>(kept[d].size());
    }
    std::vector<Value> shown = gather(in, t, kept);
    printer.measure(shown);
    std::vector<std::string> texts;
    for (const Value& v : shown) texts.push_back(printer.text(v));
    size_t width = printer.width;
    if (imag) {
      const std::vector<Value> parts = gather(in, *imag, kept);
      imag_printer.measure(parts);
      for (size_t i = 0; i < parts.size(); ++i) {
        const std::string part = imag_printer.bare(parts[i]);
        texts[i] += (part.starts_with('-') ? "" : "+") + part + "j";
      }
      width += imag_printer.width + 1;
    }
    Block block{options, width, texts, shape, small};
    body = shape.empty() ? texts[0] : block.text(0, 0, 7);
  }
  std::string out = "tensor(" + body;
  size_t last_line = out.size() - (out.rfind('\n') == std::string::npos ? 0 : out.rfind('\n') + 1);
  for (const std::string& s : suffixes) {
    if (last_line + s.size() + 2 > static_cast<size_t>(options.line_width)) {
      out += ",\n" + std::string(7, ' ') + s;
      last_line = 7 + s.size();
    } else {
      out += ", " + s;
      last_line += s.size() + 2;
    }
  }
  return out + ")";
}

}  // namespace kiln::script
