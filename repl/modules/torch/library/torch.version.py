"""torch.version: what PyTorch was built with."""
import torch

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]
__version__ = torch.__version__
# The language is that of a build for CUDA where there is a GPU, and of one for the CPU where there is none.
cuda = "13.0" if torch.cuda.is_available() else None
hip = xpu = None
debug = False
git_version = ""
