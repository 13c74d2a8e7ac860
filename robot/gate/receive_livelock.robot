*** Settings ***
Documentation     What does an end host deliver when it is offered far more than it can take, and from where on less?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     UDP Delivery Does Not Livelock Earlier

Test Tags         livelock


*** Test Cases ***    RECEIVERS    CALL
One Receiver
    [Tags]    livelock-one
                      1            recvmsg
Four Receivers
                      4            recvmsg
All Packets In One Call
                      1            recvmmsg


*** Keywords ***
UDP Delivery Does Not Livelock Earlier
    [Documentation]    PDR, overload throughput and livelock threshold are judged together.
    [Arguments]    ${receivers}    ${call}
    Given The SUT Delivers UDP To ${receivers} Receivers By ${call}
    And Its Interrupts Are Pinned To    1 cpu
    And It Is Offered Up To 8 Times What It Can Take
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
