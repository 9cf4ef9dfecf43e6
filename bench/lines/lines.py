"""Lines as users of PyTorch write them, by family; each module adds its own to LINES."""
from draw import LINES, RANDOM, Draw, drawn
import lines_norms
import lines_activations
import lines_losses
import lines_optimisers
import lines_quantisation
import lines_attention
import lines_routing
import lines_sampling
import lines_sorts
import lines_vision
import lines_series
import lines_statistics
import lines_geometry
import lines_graphs
import lines_policies
import lines_speech
import lines_generation
import lines_images
import lines_training
