*** Settings ***
Documentation    Packets leave by fq.
Metadata         Rank    primary
Metadata         Why    Servers that pace TCP send by fq. It sorts packets by flow and by time, which no other
...              discipline here does.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-egress-fq


*** Test Cases ***
Queueing By fq
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root fq
    Then It Is As Fast As Before
