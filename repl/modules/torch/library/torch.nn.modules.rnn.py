"""torch.nn.modules.rnn."""
from torch.nn import GRU, GRUCell, LSTM, LSTMCell, RNN, RNNBase, RNNCell, RNNCellBase
