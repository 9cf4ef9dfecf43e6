// Whether recorded work may be launched: a reader of hardware counters runs kernels again one by one, and a graph's
// kernels would be skipped or fault under it.
#pragma once

namespace kiln::runtime {

/// While one lives, Graph::launch of a GPU's graph fails with kUnsupported in the whole process.
class GraphRefusal {
 public:
  GraphRefusal();
  ~GraphRefusal();
  GraphRefusal(const GraphRefusal&) = delete;
  GraphRefusal& operator=(const GraphRefusal&) = delete;

  static bool is_on();
};

}  // namespace kiln::runtime
