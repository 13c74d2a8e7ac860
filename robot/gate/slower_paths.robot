*** Settings ***
Documentation     How many packets does a path that got slower forward? It is searched by pairs of boots, at once.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open Where A Path Got Slower
Suite Teardown    Close Testbed
Test Template     Its PDR Is Told

Test Tags         portfolio


*** Test Cases ***    WHICH PATH
The Path That Got Slowest
                      The SUT Is Set Up As The Path That Got Slowest
A Path That Another Function Made Slower
                      The SUT Is Set Up As A Path That Another Function Made Slower


*** Keywords ***
Its PDR Is Told
    [Documentation]    Both builds are booted in turn, and PDR, saturation throughput and cost are judged.
    [Arguments]    ${path}
    Given Run Keyword    ${path}
    When Both Builds Are Booted In Turn
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
