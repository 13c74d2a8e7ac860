"""Cold boots: the replication that boots each build anew for each pair."""
