*** Settings ***
Documentation     A scenario of your own, from the file that --scenario-file names.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For A Scenario File
Suite Teardown    Close Testbed

Test Tags         scenario-file


*** Test Cases ***
Scenario File
    [Documentation]    The SUT is set up as the file says, and one build or two are measured.
    Given The Scenario Is Read From    ${SCENARIO_FILE}
    When It Is Measured As The Run Asks
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
