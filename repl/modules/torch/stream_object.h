// Streams, events and graphs as values of the host language, with torch.cuda's names.
#pragma once
#include <optional>

#include "kiln/device.h"
#include "kiln/graph.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

class StreamObject : public Object {
 public:
  static inline const KindOf<StreamObject> kKind{"torch.cuda.Stream"};
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
  static inline const KindOf<EventObject> kKind{"torch.cuda.Event"};
  explicit EventObject(Device d) : Object(kKind), device(std::move(d)) {}
  std::string repr(Interp&) override;

  const Device device;
  Event event;  // empty: not recorded yet
};

/// A graph, also while it is being captured.
class GraphObject : public Object {
 public:
  static inline const KindOf<GraphObject> kKind{"torch.cuda.CUDAGraph"};
  explicit GraphObject(Device d) : Object(kKind), device(std::move(d)) {}
  std::string repr(Interp&) override;

  const Device device;
  Graph graph;  // empty: not captured yet
  std::optional<GraphCapture> capture;
};

/// graph(g): the context manager of `with`.
class GraphContext : public Object {
 public:
  static inline const KindOf<GraphContext> kKind{"torch.cuda.graph"};
  GraphContext(Ref<GraphObject> g, Stream s) : Object(kKind), graph(std::move(g)), stream(std::move(s)) {}

  const Ref<GraphObject> graph;
  const Stream stream;
};

}  // namespace kiln::script
