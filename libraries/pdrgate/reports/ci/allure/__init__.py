"""Allure's results of a run, completed from the stored result. allure-robotframework wrote them during the run."""

from pdrgate.reports.ci.allure.folder import tell_allure

__all__ = ["tell_allure"]
