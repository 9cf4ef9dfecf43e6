// torch.save and torch.load, as scripts call them.
#include <gtest/gtest.h>

#include "repl/session/session.h"
#include "support/process.h"
#include "tests/unit/open_device.h"

namespace kiln::script {
namespace {

class Files : public testing::Test {
 protected:
  Files() {
    Options options;
    options.output = [this](std::string_view text) { out_ += text; };
    options.device = *open_device("cpu");
    session_ = std::make_unique<Session>(std::move(options));
    run("import torch\nD = '" + folder_.path + "/'\n");
  }
  /// What it prints, or its error's message.
  std::string run(const std::string& text) {
    out_.clear();
    Status s = session_->run(text, "t.py", Mode::kFile);
    return s.ok() ? out_ : s.error().message;
  }

  ScratchFolder folder_;
  std::string out_;
  std::unique_ptr<Session> session_;
};

TEST_F(Files, ComeBackAsTheyWere) {
  EXPECT_EQ(run("x = torch.arange(6).view(2, 3)\ntorch.save(x.t(), D + 'x.npy')\n"
                "print(torch.load(D + 'x.npy').tolist())\n"),
            "[[0, 3], [1, 4], [2, 5]]\n");
  EXPECT_EQ(run("h = torch.ones(2, dtype=torch.bfloat16)\nfor f in ['m.safetensors']:\n"
                "    torch.save({'x': x, 'h': h}, D + f)\n    m = torch.load(D + f, map_location='cpu')\n"
                "    print(list(m), m['x'].tolist(), m['h'].dtype)\n"),
            "['x', 'h'] [[0, 1, 2], [3, 4, 5]] torch.bfloat16\n");
  EXPECT_EQ(run("torch.save([x, x + 1], D + 'l.npz')\nm = torch.load(D + 'l.npz')\nprint(list(m), m['arr_1'][1, 2])\n"),
            "['arr_0', 'arr_1'] tensor(6)\n");
  EXPECT_EQ(run("big = torch.ones(128, 128) * 2\ntorch.save({'big': big}, D + 'p.safetensors')\n"
                "print(torch.load(D + 'p.safetensors')['big'].sum().item())\n"),
            "32768.0\n");
  EXPECT_EQ(run("class P:\n    def __fspath__(self): return D + 'x.npy'\nprint(torch.load(P()).shape)\n"),
            "torch.Size([3, 2])\n");
}

TEST_F(Files, Mistakes) {
  EXPECT_EQ(run("torch.load(D + 'x.npy', mmap=True)"),
            "load() maps no files: one that is cut short while a tensor lies in it ends the process");
  EXPECT_EQ(run("torch.save(torch.ones(2), D + 'y.npy')\nprint(torch.load(D + 'y.npy', mmap=False).tolist())\n"),
            "[1.0, 1.0]\n");
  EXPECT_EQ(run("torch.save(torch.ones(1), D + 'x.safetensors')"),
            "a .safetensors file holds named tensors, a dict of them, not 'torch.Tensor'");
  EXPECT_EQ(run("torch.save({'a': 3}, D + 'x.npz')"), "save() writes tensors; 'a' is 'int'");
  EXPECT_EQ(run("torch.save({1: torch.ones(1)}, D + 'x.npz')"), "a tensor's name must be a str, got 'int'");
  EXPECT_EQ(run("torch.save([torch.ones(1)], D + 'x.npy')"), "a .npy file holds one tensor, not 'list'");
  EXPECT_EQ(run("torch.save(torch.ones(1), 'x.pt')"),
            "'x.pt': Kiln neither reads nor writes pickles, which are programs");
  EXPECT_EQ(run("torch.load('x.txt')"), "'x.txt' is none of .npy, .npz and .safetensors, which Kiln saves and loads");
  EXPECT_EQ(run("torch.load(D + 'none.npy')"), folder_.path + "/none.npy: No such file or directory");
  EXPECT_EQ(run("torch.load(3)"), "the file must be a str, got 'int'");
}

}  // namespace
}  // namespace kiln::script
