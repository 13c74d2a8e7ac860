*** Settings ***
Documentation     Is each of these paths as fast as it was? A file is a path; ``--measure`` says what is measured.

Resource          ../../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed

Test Tags         portfolio
