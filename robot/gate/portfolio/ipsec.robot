*** Settings ***
Documentation    ESP encrypts each packet to the SUT itself, and decrypts it.
Metadata         Rank    primary
Metadata         Why    Site-to-site VPNs encrypt by ESP. It exercises policy and state lookups and the kernel's crypto
...              together.
Metadata         Fault    tc filter add dev gate0 egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-ipsec


*** Test Cases ***
IPsec By AES-GCM
    Given The SUT Is Set Up With
    ...    ip link add gate0 type xfrm dev lo if_id 7 && ip link set gate0 up && tc qdisc add dev gate0 clsact
    ...    ip address add 192.0.2.1/32 dev lo && echo src 192.0.2.1 dst 192.0.2.1 proto esp spi 7 mode tunnel >tunnel
    ...    ip xfrm state add $(cat tunnel) if_id 7 aead 'rfc4106(gcm(aes))' 0x$(printf %040d 7) 128
    ...    for dir in out in; do ip xfrm policy add dir $dir if_id 7 tmpl $(cat tunnel) || exit; done
    ...    undo: for dir in out in; do ip xfrm policy delete src 0/0 dst 0/0 dir $dir if_id 7; done
    ...    for half in 0 128; do ip route add 198.18.$half.0/17 dev gate0; done
    ...    tc filter add dev gate0 ingress prio 1 matchall action pedit ex munge eth dst set $OUT_PEER_MAC continue
    ...    tc filter add dev gate0 ingress prio 2 matchall action mirred egress redirect dev $OUT
    Then It Is As Fast As Before
