*** Settings ***
Documentation    Packets leave by fq_codel.
Metadata         Rank    primary
Metadata         Why    Distributions make fq_codel the default of ports. It classifies each packet into a flow and
...              keeps the time that it waited.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-fq-codel


*** Test Cases ***
Queueing By fq_codel
    Given The SUT Queues By FQ CoDel
    Then It Is As Fast As Before
