"""The benchmark suite: Stoker, its peers and the machine's limit, measured in one run."""
