*** Settings ***
Documentation    Packets leave more slowly than they come, by htb and fq_codel, which drops.
Metadata         Rank    primary
Metadata         Why    An uplink is slower than what feeds it. It is the path on which a queue stands, and packets are
...              dropped by the discipline's rule.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-slow-egress


*** Test Cases ***
A Slow Egress
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root handle 1: htb default 1
    ...    tc class add dev $OUT parent 1: classid 1:1 htb rate 128kbit
    ...    tc qdisc add dev $OUT parent 1:1 fq_codel limit 128
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=4
    And What Counts Is    handled
    Then It Is As Fast As Before
