*** Settings ***
Documentation    Packets leave by CAKE.
Metadata         Rank    secondary
Metadata         Why    Home routers shape by CAKE. Of all queueing disciplines here it does most for a packet: it finds
...              hosts and flows and keeps statistics.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-egress-cake


*** Test Cases ***
Queueing By cake
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root cake unlimited
    Then It Is As Fast As Before
