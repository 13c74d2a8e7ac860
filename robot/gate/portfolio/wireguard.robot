*** Settings ***
Documentation    WireGuard encrypts each packet to the SUT itself, and decrypts it.
Metadata         Rank    primary
Metadata         Why    Modern VPNs are WireGuard. Packets are encrypted and decrypted by workers on queues, a way of
...              working that ESP does not have.
Metadata         Fault    tc filter add dev gate0 egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-wireguard


*** Test Cases ***
WireGuard
    # Of two filters the later one goes first.
    # Workers of the kernel end what they have begun: how often they take turns else depends on how fast the guest is.
    Given The SUT Is Set Up With
    ...    for end in 0 1; do ip link add gate$end type wireguard || exit; done
    ...    for end in 0 1; do wg genkey >$end && wg pubkey <$end >$end.pub || exit; done
    ...    wg set gate0 listen-port 5000 private-key 0 peer $(cat 1.pub) endpoint 127.0.0.1:5001 allowed-ips 0.0.0.0/0
    ...    wg set gate1 listen-port 5001 private-key 1 peer $(cat 0.pub) endpoint 127.0.0.1:5000 allowed-ips 0.0.0.0/0
    ...    for end in 0 1; do ip link set gate$end up && tc qdisc add dev gate$end clsact || exit; done
    ...    for half in 0 128; do ip route add 198.18.$half.0/17 dev gate0; done
    ...    tc filter add dev gate1 ingress matchall action mirred egress redirect dev $OUT
    ...    tc filter add dev gate1 ingress matchall action vlan push_eth dst_mac $OUT_PEER_MAC src_mac $OUT_MAC continue
    ...    grep -l ^kworker/0:[0-9] /proc/[0-9]*/comm | cut -d / -f 3 >workers
    ...    for worker in $(cat workers); do chrt -f -p 1 $worker || test ! -e /proc/$worker; done
    ...    undo: for worker in $(cat workers); do chrt -o -p 0 $worker || test ! -e /proc/$worker; done
    Then It Is As Fast As Before
