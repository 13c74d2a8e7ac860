*** Settings ***
Documentation    ESP tunnels each packet to the SUT itself, and does not encrypt it.

Resource         ../../../resources/gate.resource

Test Tags        path-ipsec-null    leaves-rules


*** Test Cases ***
IPsec Without A Cipher
    Given The SUT Is Set Up With
    ...    ip link add gate0 type xfrm dev lo if_id 7 && ip link set gate0 up
    ...    for one in 1 2; do ip address add 192.0.2.$one/32 dev lo || exit; done
    ...    echo src 192.0.2.1 dst 192.0.2.2 proto esp spi 7 mode tunnel >tunnel
    ...    ip xfrm state add $(cat tunnel) if_id 7 enc cipher_null '' auth digest_null ''
    ...    for dir in out in fwd; do ip xfrm policy add dir $dir if_id 7 tmpl $(cat tunnel) || exit; done
    ...    undo: for dir in out in fwd; do ip xfrm policy delete src 0/0 dst 0/0 dir $dir if_id 7; done
    ...    ip rule add iif $IN lookup 100 && ip route add default dev gate0 table 100
    Then A Packet Costs As Much As Before
