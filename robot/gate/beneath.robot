*** Settings ***
Documentation     What an eBPF program lets pass, and the data path that --beneath names takes.

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open For A Program
Suite Teardown    Close Testbed

Test Tags         beneath


*** Test Cases ***
What A Program Lets Pass
    [Documentation]    The program stands before the data path.
    Given The SUT Carries Packets By    ${BENEATH}
    Then It Is As Fast As Before
