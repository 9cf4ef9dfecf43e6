"""torch.nn.modules.sparse."""
from torch.nn import Embedding, EmbeddingBag
