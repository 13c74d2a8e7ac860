"""How often is measured (floor 3): samples of two builds, and the rule that ends a comparison. It knows no packets."""

from pdrgate.replication.rule import PairsRule, Standing
from pdrgate.replication.samples import Samples

__all__ = ["PairsRule", "Samples", "Standing"]
