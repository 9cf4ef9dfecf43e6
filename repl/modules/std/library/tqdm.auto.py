"""tqdm.auto: the same bars."""
from tqdm import tqdm, trange
