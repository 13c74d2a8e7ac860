*** Settings ***
Documentation    Packets of a flow are put together on receipt, and taken apart where they leave.
Metadata         Rank    secondary
Metadata         Why    Routers of QUIC and tunnels let UDP be merged on receipt. Packets are put together and cut apart
...              again where they leave.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-udp-gro


*** Test Cases ***
UDP Put Together On Receipt
    Given The SUT Is Set Up With
    ...    ethtool -K $IN rx-udp-gro-forwarding on
    ...    undo: ethtool -K $IN rx-udp-gro-forwarding off
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=1
    Then It Is As Fast As Before
