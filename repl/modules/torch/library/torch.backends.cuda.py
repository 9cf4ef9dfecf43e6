"""torch.backends.cuda: what products of float32 may do."""
import torch


class _Products:

    @property
    def allow_tf32(self):
        return torch.get_float32_matmul_precision() != "highest"

    @allow_tf32.setter
    def allow_tf32(self, on):
        torch.set_float32_matmul_precision("high" if on else "highest")


matmul = _Products()


def is_built():
    return True
