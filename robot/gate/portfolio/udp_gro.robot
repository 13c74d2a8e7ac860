*** Settings ***
Documentation    Packets of a flow are put together on receipt, and taken apart where they leave.

Resource         ../../../resources/gate.resource

Test Tags        path-udp-gro


*** Test Cases ***
UDP Put Together On Receipt
    Given The SUT Is Set Up With
    ...    ethtool -K $IN rx-udp-gro-forwarding on
    ...    undo: ethtool -K $IN rx-udp-gro-forwarding off
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=1
    Then A Packet Costs As Much As Before
