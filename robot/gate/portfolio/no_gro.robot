*** Settings ***
Documentation    Each packet is received by itself.
Metadata         Rank    secondary
Metadata         Why    Routers that must not merge packets turn GRO off. Each packet goes up the stack by itself, so
...              that a cost for each call is paid for each packet.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-no-gro


*** Test Cases ***
Routing Without GRO
    Given The SUT Routes IPv6
    And GRO Is Off
    Then It Is As Fast As Before
