// Streams and events as values of the host language, with torch.cuda's names.
#pragma once
#include "kiln/device.h"
#include "repl/script/interp.h"

namespace kiln::script {

class StreamObject : public Object {
 public:
  static constexpr Kind kKind = Kind::kStream;
  StreamObject(Device d, Stream s) : Object(kKind), device(std::move(d)), stream(std::move(s)) {}
  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  std::optional<Value> compare(Interp& in, ast::CompareOp op, const Value& other) override;
  std::string repr(Interp&) override;

  const Device device;
  const Stream stream;
};

class EventObject : public Object {
 public:
  static constexpr Kind kKind = Kind::kEvent;
  explicit EventObject(Device d) : Object(kKind), device(std::move(d)) {}
  std::string repr(Interp&) override;

  const Device device;
  Event event;  // empty: not recorded yet
};

}  // namespace kiln::script
