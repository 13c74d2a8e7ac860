*** Settings ***
Documentation    Ten thousand routes are replaced, by others of the same networks, while packets pass.
Metadata         Rank    secondary
Metadata         Why    Routing daemons replace routes while packets pass. It measures what the kernel takes for the
...              replacement and whether packets are lost meanwhile.
Metadata         Fault    ip monitor route >/dev/null 2>&1 &
...              undo: killall ip
Metadata         Seen In    do_one_broadcast|netlink_broadcast

Resource         ../../../resources/gate.resource

Test Tags        path-routes-replaced


*** Test Cases ***
Ten Thousand Routes Replaced
    Given The SUT Is Set Up With
    ...    for a in $(seq 40); do for b in $(seq 0 255); do echo 10.$a.$b.0/24; done; done >list
    ...    sed "s/.*/route replace & via $OUT_PEER_IP4/" list >now && ip -batch now
    ...    undo: ip route flush root 10.0.0.0/8 via $OUT_PEER_IP4
    ...    sed 's/$/ mtu 1400/' now >next
    And Packets Are Sent Like    udp dst=10.1.0.0-10.40.255.255 dport=53 src=@in flows=4096
    And They Are Replaced While Packets Pass    ip -batch next && mv now was && mv next now && mv was next    times=1
    Then It Is As Fast As Before
