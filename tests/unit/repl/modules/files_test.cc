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
  EXPECT_EQ(run("torch.load(D + 'none.pt')"), folder_.path + "/none.pt: No such file or directory");
  EXPECT_EQ(run("open(D + 'x.pt', 'w').write('text')\ntorch.load(D + 'x.pt')"),
            folder_.path + "/x.pt: it is no file of PyTorch's: a zip archive ends otherwise");
  EXPECT_EQ(run("torch.load(D + 'none.npy')"), folder_.path + "/none.npy: No such file or directory");
  EXPECT_EQ(run("torch.load(3)"), "the file must be a str, got 'int'");
}

// PyTorch's files are read as data: a name that is not on the list of what makes tensors is never called.
TEST_F(Files, PicklesAreNoPrograms) {
  const std::string save =
      "from torch import _kiln\n"
      "def read(pickle, *more):\n"
      "    _kiln.save_zip(D + 'x.pt', [('a/data.pkl', pickle), *more])\n"
      "    try:\n"
      "        print(torch.load(D + 'x.pt'))\n"
      "    except Exception as e:\n"
      "        print(type(e).__name__, str(e).replace(D, ''))\n";
  auto read = [&](const std::string& arguments) { return run(save + "read(" + arguments + ")"); };
  EXPECT_EQ(read("b'\\x80\\x02cos\\nsystem\\n(X\\x04\\x00\\x00\\x00truetR.'"),
            "NotImplementedError 'x.pt' holds 'os.system', which is code: load() reads tensors, numbers, texts and "
            "collections of them, as module.state_dict() is one\n");
  EXPECT_EQ(read("b'\\x80\\x02}(K\\x01K\\x02K\\x03N\\x87u.'"), "{1: (2, 3, None)}\n");
  EXPECT_EQ(read("b'\\x80\\x02]'"), "RuntimeError 'x.pt' is damaged: its pickle ends or goes wrong at byte 3\n");
  EXPECT_EQ(read("b'\\x80\\x02X\\xff\\xff\\xff\\xff'"),
            "RuntimeError 'x.pt' is damaged: its pickle ends or goes wrong at byte 7\n");
  EXPECT_EQ(read("b'\\x80\\x02K\\x01K\\x02\\x85R.'"),
            "RuntimeError 'x.pt' is damaged: its pickle ends or goes wrong at byte 8\n");
  EXPECT_EQ(read("b'\\x80\\x02i.'"),
            "NotImplementedError 'x.pt': its pickle has the code b'i', which load() does not run\n");
  // A tensor that would reach beyond its storage.
  const std::string tensor =
      "b'\\x80\\x02ctorch._utils\\n_rebuild_tensor_v2\\n((X\\x07\\x00\\x00\\x00storagectorch\\nFloatStorage\\n"
      "X\\x01\\x00\\x00\\x000X\\x03\\x00\\x00\\x00cpuK\\x02tQK\\x00K";
  const std::string rest = "\\x85K\\x01\\x85\\x89NtR.', ('a/data/0', b'\\x00\\x00\\x80?' * 2)";
  EXPECT_EQ(read(tensor + "\\x02" + rest), "tensor([1., 1.])\n");
  EXPECT_EQ(read(tensor + "\\x03" + rest), "RuntimeError a tensor of (3,) does not fit its storage of 2 elements\n");
}

}  // namespace
}  // namespace kiln::script
