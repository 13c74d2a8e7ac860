*** Settings ***
Documentation    Packets leave by pfifo_fast.
Metadata         Rank    secondary
Metadata         Why    It was the default of physical ports for a long time and still is where nobody chose another. It
...              is the shortest way through a queue without a lock.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-egress-pfifo-fast


*** Test Cases ***
Queueing By pfifo_fast
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root pfifo_fast
    Then It Is As Fast As Before
