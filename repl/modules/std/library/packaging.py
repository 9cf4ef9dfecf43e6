"""packaging: the versions of packages."""
