*** Settings ***
Documentation    IPVS gives packets for a virtual address to real servers, by turns.
Metadata         Rank    primary
Metadata         Why    Kubernetes and load balancers hand connections to real servers by IPVS. It schedules, keeps
...              connections of its own and rewrites addresses.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-ipvs


*** Test Cases ***
IPVS
    Given The SUT Is Set Up With
    ...    ip address add 198.18.0.1/32 dev lo
    ...    ipvsadm -A -u 198.18.0.1:53 -s rr
    ...    undo: ipvsadm -D -u 198.18.0.1:53
    ...    for one in 1 2 3 4; do ipvsadm -a -u 198.18.0.1:53 -r 198.18.1.$one -m || exit; done
    And Packets Are Sent Like    udp dst=198.18.0.1 dport=53 src=@in flows=256
    Then It Is As Fast As Before
