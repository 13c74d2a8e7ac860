"""How often is measured (floor 3): samples of two builds, the rule that ends a comparison, what earlier
tries have left, and what equal builds deviate by. It knows no packets."""

from pdrgate.replication.earlier_tries import Try
from pdrgate.replication.noise import MeasurandNoise, NoiseFloor, NoiseObservation, ObservedBoot, TrialScatter
from pdrgate.replication.rule import PairsRule, Standing
from pdrgate.replication.samples import Contradiction, Samples, contradiction

__all__ = [
    "Contradiction",
    "MeasurandNoise",
    "NoiseFloor",
    "NoiseObservation",
    "ObservedBoot",
    "PairsRule",
    "Samples",
    "Standing",
    "TrialScatter",
    "Try",
    "contradiction",
]
