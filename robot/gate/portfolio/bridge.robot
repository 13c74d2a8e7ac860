*** Settings ***
Documentation    Frames to the station behind the SUT go from port to port.
Metadata         Rank    primary
Metadata         Why    Hypervisors and container hosts join their guests by a bridge. It is the one path on which
...              frames are forwarded by their MAC addresses and no route is looked up.
Metadata         Fault    ip link set gate0 type bridge vlan_filtering 1
Metadata         Seen In    vlan|allowed

Resource         ../../../resources/gate.resource

Test Tags        path-bridge


*** Test Cases ***
A Bridge
    Given The SUT Bridges
    Then It Is As Fast As Before    several_cpus=True
