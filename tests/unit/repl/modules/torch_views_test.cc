// Random programs of views and changes in place print what PyTorch printed (torch_views.py).
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "repl/session/session.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

const std::string kViewsFolder = std::string(KILN_SOURCE_DIR) + "/tests/unit/repl/modules/";

struct Recorded {
  std::string name, source, output;
};

std::vector<Recorded> recorded() {
  std::vector<Recorded> out;
  std::ifstream file(kViewsFolder + "torch_views.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# "))
      out.push_back({line.substr(2), {}, {}});
    else if (line.starts_with('>'))
      out.back().output += line.substr(1) + "\n";
    else
      out.back().source += line + "\n";
  }
  if (!out.empty()) out.erase(out.begin());  // the first says where they are from
  return out;
}

/// What the programs begin with, as the tool has it.
std::string prelude() {
  std::ostringstream tool;
  tool << std::ifstream(kViewsFolder + "torch_views.py").rdbuf();
  const std::string text = tool.str(), mark = "PRELUDE = '''\\\n";
  const size_t begin = text.find(mark) + mark.size();
  return text.substr(begin, text.find("'''", begin) - begin);
}

TEST(TorchViews, ProgramsPrintWhatTorchPrints) {
  const std::vector<Recorded> programs = recorded();
  ASSERT_GE(programs.size(), 50u);
  const std::string before = prelude();
  for (const Recorded& p : programs) {
    std::string out;
    Options options;
    options.output = [&](std::string_view s) { out += s; };
    options.device = *open_device("cpu");
    Session session(std::move(options));
    const Status status = session.run(before + p.source, "script.py", Mode::kFile);
    if (!status.ok()) out += render(status.error());
    EXPECT_EQ(out, p.output) << "program " << p.name << ":\n" << p.source;
  }
}

}  // namespace
}  // namespace kiln::script
