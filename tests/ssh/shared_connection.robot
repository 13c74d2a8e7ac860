*** Settings ***
Documentation     A suite whose own SSH keywords use the testbed's connection, by the alias of the SUT's host.

Library           SSHLibrary
Resource          ../../resources/gate.resource

Suite Setup       Open Testbed    ${TESTBED}    profile=smoke    wait=10 min
Suite Teardown    Close Testbed


*** Test Cases ***
A Command On The SUT
    [Documentation]    It runs over there.
    Switch Connection    sut
    ${where}    ${code} =    Execute Command    echo $SSH_CONNECTION    return_rc=True
    Should Be Equal As Integers    ${code}    0
    Should End With    ${where}    127.0.0.1 ${PORT}

A File Of The SUT
    [Documentation]    SFTP goes by the same connection.
    Switch Connection    sut
    File Should Exist    /proc/sys/net/ipv4/ip_forward

The Connection Is Made Again When It Was Lost
    [Documentation]    Whoever comes next gets a new one.
    Switch Connection    sut
    ${before} =    Execute Command    echo $SSH_CONNECTION
    Run Keyword And Ignore Error    Execute Command    kill -KILL $PPID
    ${after} =    Execute Command    echo $SSH_CONNECTION
    Should Not Be Equal    ${before}    ${after}

Closing All Of One's Own Connections Leaves The Testbed Its Own
    [Documentation]    The testbed measures on.
    Close All Connections
    The SUT Routes IPv6
    Its Receive Buffers Hold 512 Packets
    TRY
        Measure Load    20 kpps    200 ms
        Get Loss Ratio    <    100%
    EXCEPT    GENERATOR_LIMITED*    DISTURBED*    type=GLOB
        Log    Something else kept the generator's CPU; the SUT was set up all the same.
    END
