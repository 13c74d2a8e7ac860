*** Settings ***
Documentation    The kernel forwards between VLAN interfaces of its ports.
Metadata         Rank    primary
Metadata         Why    Routers on a trunk take frames of VLANs. Tags are taken off and put on, and packets pass a
...              device above the port.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-vlan


*** Test Cases ***
IPv4 Behind A VLAN
    Given The SUT Carries Packets By    vlan-ipv4-routing
    Then It Is As Fast As Before
