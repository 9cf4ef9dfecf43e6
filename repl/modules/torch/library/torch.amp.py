"""torch.amp: autocast() and GradScaler."""
from torch._amp import GradScaler, autocast, get_autocast_dtype, is_autocast_enabled
