*** Settings ***
Documentation     How many UDP packets does this kernel deliver to programs, and does it deliver as many as it did?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed
Test Template     UDP Delivery Keeps Its PDR

Test Tags         udp


*** Test Cases ***    PINNING     RECEIVERS    CALL        SOCKET    FRAME
One Receiver
    [Tags]    udp-one
                      1 cpu       1            recvmsg     2         64
Small Socket Buffers
                      1 cpu       1            recvmsg     1         64
Large Socket Buffers
                      1 cpu       1            recvmsg     4         64
All Packets In One Call
                      1 cpu       1            recvmmsg    2         64
Four Receivers
                      1 cpu       4            recvmsg     2         64
Full-Size Frames
                      1 cpu       1            recvmsg     2         1518
Balanced Interrupts
                      unpinned    1            recvmsg     2         64


*** Keywords ***
UDP Delivery Keeps Its PDR
    [Documentation]    One scenario: set up, measured, judged.
    [Arguments]    ${pinning}    ${receivers}    ${call}    ${socket}    ${frame}
    Given The SUT Delivers UDP To ${receivers} Receivers By ${call}
    And Its Socket Buffers Hold ${socket} MB
    And Its Interrupts Are Pinned To    ${pinning}
    And The Frames Have ${frame} Bytes
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
