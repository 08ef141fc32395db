"""Pages of runs: lists in `listing`, one run in `detail` and its neighbours."""
