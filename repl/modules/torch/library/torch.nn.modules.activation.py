"""torch.nn.modules.activation."""
from torch.nn import (ELU, GELU, GLU, CELU, SELU, SiLU, Mish, ReLU, ReLU6, RReLU, LeakyReLU, PReLU, Sigmoid, Tanh,
                      Softmax, Softmax2d, Softmin, LogSoftmax, Softplus, Softshrink, Softsign, Hardshrink,
                      Hardsigmoid, Hardswish, Hardtanh, LogSigmoid, Tanhshrink, Threshold, MultiheadAttention)
