*** Settings ***
Documentation     A scenario of your own, from the YAML file that --scenario names.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For A Scenario File
Suite Teardown    Close Testbed

Test Tags         scenario-file


*** Test Cases ***
Scenario File
    [Documentation]    The SUT is set up as the file says, and what the run asks for is measured.
    Given The Scenario Is Read From    ${SCENARIO_FILE}
    Then It Is As Fast As Before
