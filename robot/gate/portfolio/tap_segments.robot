*** Settings ***
Documentation    A virtual machine's TAP: packets go to it one by one, and come from it as large TCP segments.
Metadata         Rank    primary
Metadata         Why    Virtual machines send large TCP segments by a TAP. The kernel cuts them for a port that cannot,
...              the work that offloads otherwise hide.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook forward priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-tap-segments


*** Test Cases ***
Large Segments From A TAP
    Given The SUT Is Set Up With
    ...    modprobe -q tun; ip tuntap add gate0 mode tap vnet_hdr && ip link set gate0 up
    ...    ethtool -k $OUT | sed -n 's/^tcp-segmentation-offload: //p' >tso && ethtool -K $OUT tso off
    ...    undo: ethtool -K $OUT tso $(cat tso)
    ...    ip address add 192.0.2.1/24 dev gate0 && ip route add 198.18.0.0/17 via 192.0.2.2
    ...    ip neighbour add 192.0.2.2 lladdr 02:00:00:00:09:02 dev gate0 nud permanent
    ...    pdrgate-relay from tap gate0 192.0.2.2 to tap 198.18.128.1 segments
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=198.18.0.1 dport=53 src=@in flows=256
    And The Frames Have 512 Bytes
    Then It Is As Fast As Before
