"""torch.version: the PyTorch whose rules are kept. Of libraries that PyTorch is built with it names none."""
import torch

__version__ = torch.__version__
cuda = hip = xpu = git_version = None
debug = False
