"""torch.nn.modules.transformer."""
from torch.nn import (Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
                      TransformerEncoderLayer)
