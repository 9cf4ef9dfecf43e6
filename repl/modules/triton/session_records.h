// What tuning found, as one session of scripts reads and keeps it.
#pragma once
#include "profiler/tune/records.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

inline profiler::TuneRecords& tune_records(Interp& in) {
  struct Records : profiler::TuneRecords {
    explicit Records(Interp&) {}
  };
  return in.state<Records>();
}

}  // namespace kiln::script
