*** Settings ***
Documentation    A set of ten thousand addresses is replaced by another one while packets pass.
Metadata         Rank    secondary
Metadata         Why    Block lists of ipset are swapped as a whole. It measures the swap, which waits for readers, and
...              the packets that pass it.
Metadata         Fault    replaced with: ipset create more hash:ip && ipset destroy more
Metadata         Seen In    ip_set_create$

Resource         ../../../resources/gate.resource

Test Tags        path-set-replaced


*** Test Cases ***
A Set Of Ten Thousand Replaced
    Given The SUT Is Set Up With
    ...    ipset create now hash:ip maxelem 16384 && ipset create next hash:ip maxelem 16384
    ...    undo: ipset destroy now; ipset destroy next
    ...    for a in $(seq 0 99); do for b in $(seq 100); do echo add now 203.0.$a.$b; done; done >list
    ...    ipset restore <list && sed s/now/next/ list | ipset restore
    ...    iptables -A FORWARD -m set --match-set now src -j DROP
    ...    undo: iptables -D FORWARD -m set --match-set now src -j DROP
    And They Are Replaced While Packets Pass    ipset swap now next    times=8
    Then It Is As Fast As Before
