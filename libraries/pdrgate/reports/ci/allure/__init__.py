"""Allure's results of a run, told by the stored result: allure-robotframework wrote them while the run went on."""

from pdrgate.reports.ci.allure.folder import tell_allure

__all__ = ["tell_allure"]
