*** Settings ***
Documentation    The far network is behind tunnels from router to router.
Metadata         Rank    primary
Metadata         Why    Overlay networks of clouds and containers are VXLAN. It is a tunnel by UDP with a device and a
...              forwarding table of its own.
Metadata         Fault    tc qdisc add dev gate0 clsact && tc filter add dev gate0 egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-vxlan


*** Test Cases ***
A VXLAN Tunnel
    Given The SUT Tunnels By VXLAN
    Then It Is As Fast As Before
