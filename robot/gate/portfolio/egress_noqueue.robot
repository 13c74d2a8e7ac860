*** Settings ***
Documentation    Packets leave by noqueue, and the port takes all of them.
Metadata         Rank    secondary
Metadata         Why    Virtual devices have no queue. It shows what is left of sending when no queueing discipline is
...              passed.
Metadata         Fault    tc qdisc add dev $OUT clsact && tc filter add dev $OUT egress matchall action pass
Metadata         Seen In    mall_classify

Resource         ../../../resources/gate.resource

Test Tags        path-egress-noqueue


*** Test Cases ***
Queueing By noqueue
    # Since Linux 6.11 virtio-net limits the bytes that wait at a port, beyond which noqueue drops packets.
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root noqueue
    ...    for q in /sys/class/net/$OUT/queues/*/byte_queue_limits; do [ ! -d $q ] || echo 1000000 >$q/limit_min; done
    ...    undo: for q in /sys/class/net/$OUT/queues/*/byte_queue_limits; do [ ! -d $q ] || echo 0 >$q/limit_min; done
    Then It Is As Fast As Before
