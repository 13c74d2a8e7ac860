*** Settings ***
Documentation    A bridge knows ten thousand stations.
Metadata         Rank    secondary
Metadata         Why    A bridge of a data centre knows many stations. A forwarding table of that size shows what a
...              lookup costs when its hash buckets fill.
Metadata         Fault    ip link set gate0 type bridge vlan_filtering 1
Metadata         Seen In    vlan|allowed

Resource         ../../../resources/gate.resource

Test Tags        path-bridge-of-10000


*** Test Cases ***
A Bridge Of Ten Thousand Stations
    Given The SUT Is Set Up With Nothing But
    ...    ip link add gate0 type bridge && ip link set gate0 up
    ...    for port in $IN $OUT; do ip link set $port master gate0 up || exit; done
    ...    for a in $(seq 0 99); do for b in $(seq 0 99); do echo 02:00:00:01:$a:$b; done; done >stations
    ...    sed "s/.*/fdb add & dev $OUT master static/" stations | bridge -batch -
    ...    sleep 0.3 && bridge fdb add $OUT_PEER_MAC dev $OUT master static
    ...    bridge fdb del $IN_PEER_MAC dev $IN master 2>/dev/null || true
    And Packets Are Sent Like    udp dst=198.18.0.1 src=198.19.0.0/24 dmac=@out flows=256
    Then It Is As Fast As Before
