"""torch.types: annotations."""
from typing import Any

from torch import Size, Tensor, device, dtype

Number = Device = Storage = FileLike = Any
