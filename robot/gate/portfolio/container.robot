*** Settings ***
Documentation    A container behind a pair of veths routes each packet back, and its port hands it on.
Metadata         Rank    primary
Metadata         Why    A container on a host is behind a pair of veths and a namespace of its own. Packets pass two
...              more devices and a second routing decision on the way.
Metadata         Fault    tc filter add dev gate0 egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-container


*** Test Cases ***
A Container's Namespace
    Given The SUT Is Set Up With
    ...    ip netns add pdrgate-$HOP && ip link add gate0 type veth peer address 02:00:00:00:09:02 netns pdrgate-$HOP
    ...    undo: ip netns delete pdrgate-$HOP
    ...    ip netns exec pdrgate-$HOP sh -c 'cd /proc/sys/net/ipv4; echo 1 >ip_forward; echo 0 | tee */*/send_redirects'
    ...    ip -n pdrgate-$HOP link set veth0 up && ip -n pdrgate-$HOP neigh add 192.0.2.1 lladdr $OUT_PEER_MAC dev veth0
    ...    ip -n pdrgate-$HOP address add 192.0.2.2/24 dev veth0 && ip -n pdrgate-$HOP route add default via 192.0.2.1
    ...    tc qdisc add dev gate0 clsact && ip neighbour add 192.0.2.2 lladdr 02:00:00:00:09:02 dev gate0
    ...    ip link set gate0 up && tc filter add dev gate0 ingress matchall action mirred egress redirect dev $OUT
    ...    for half in 0 128; do ip route add 198.18.$half.0/17 via 192.0.2.2 dev gate0 onlink; done
    Then It Is As Fast As Before
