"""torch.utils: what loads data (torch.utils.data)."""
