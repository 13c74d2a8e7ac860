*** Settings ***
Documentation    Packets leave more slowly than they come, by htb and pfifo_fast, which drops those that come last.
Metadata         Rank    secondary
Metadata         Why    The same uplink with a plain queue that drops what comes last. It is what others are compared
...              with.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-slow-egress-pfifo-fast


*** Test Cases ***
A Slow Egress By pfifo_fast
    Given The SUT Is Set Up With
    ...    ip link set $OUT txqueuelen 128
    ...    undo: ip link set $OUT txqueuelen 1000
    ...    tc qdisc replace dev $OUT root handle 1: htb default 1
    ...    tc class add dev $OUT parent 1: classid 1:1 htb rate 128kbit
    ...    tc qdisc add dev $OUT parent 1:1 pfifo_fast
    And Packets Are Sent Like    udp dst=@out dport=53 src=@in flows=4
    And What Counts Is    handled
    Then It Is As Fast As Before
