// Profiles in scripts: `with profile(wait=1, warmup=1, active=3) as p:`, and ranges in them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "profiler/profile/schedule.h"
#include "profiler/profile/tables.h"
#include "profiler/profile/timeline.h"
#include "profiler/session/session.h"
#include "repl/script/interp/interp.h"

namespace kiln::script {

struct ProfileSettings {
  std::optional<profiler::Schedule> schedule;  // none: all of the block
  profiler::SessionOptions session;
  Value on_ready;              // called with the profile at the end of each cycle; missing: nothing
  profiler::ProfileView view;  // what its tables show where they are not asked for more
};

/// What profile(…) gives. The block's part that the schedule keeps becomes a timeline; each step of it, from one
/// p.step() to the next, is a range.
class ProfileObject : public Object {
 public:
  static inline const KindOf<ProfileObject> kKind{"torch.profiler.profile"};
  explicit ProfileObject(ProfileSettings settings) : Object(kKind), settings_(std::move(settings)) {}
  /// A profile that was taken already.
  explicit ProfileObject(profiler::Timeline timeline)
      : Object(kKind), state_(State::kEnded), timeline_(std::move(timeline)) {}

  void enter(Interp& in);
  /// Keeps what was seen; `raised` is the exception that ended the block, whose error matters more than one of the
  /// profile's own; empty: none did.
  void leave(Interp& in, const std::string& raised);
  void step(Interp& in);
  /// The last cycle; an error explains why there is none yet.
  const profiler::Timeline& timeline(Interp& in) const;
  std::string tables(Interp& in, const profiler::ProfileView& view) const;
  const profiler::ProfileView& view() const { return settings_.view; }

  std::optional<Value> attribute(Interp& in, std::string_view name) override;
  void attribute_names(std::vector<std::string>& out) const override;
  /// Also print(p): the tables.
  std::string repr(Interp& in) override;

 private:
  enum class State : uint8_t { kNew, kInside, kEnded };

  profiler::StepAction action() const;
  /// Applies the schedule to the step that begins.
  void begin_step(Interp& in);
  void end_step();
  Status stop();
  void ready(Interp& in);

  ProfileSettings settings_;
  State state_ = State::kNew;
  int64_t step_ = 0;
  int64_t step_start_ = 0;  // 0: the step is not kept
  bool warming_ = false;
  std::unique_ptr<profiler::ProfileSession> session_;
  std::optional<profiler::Timeline> timeline_;
  std::string problem_;  // why there is no timeline
};

/// The rows of p.key_averages(); `stack`: separated by so many lines of the script.
Value key_averages_of(Interp& in, Ref<ProfileObject> profile, bool by_shape, int64_t stack);
void install_profile_methods(Interp& in);

}  // namespace kiln::script
