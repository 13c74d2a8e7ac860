"""Looks at a testbed before it measures: what is missing, what would disturb, and what to do about it."""

from pdrgate.doctor.examination import Examination
from pdrgate.doctor.finding import Finding, Status, worst

__all__ = ["Examination", "Finding", "Status", "worst"]
