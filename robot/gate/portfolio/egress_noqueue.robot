*** Settings ***
Documentation    Packets leave by noqueue, and the port takes all of them.

Resource         ../../../resources/gate.resource

Test Tags        path-egress-noqueue


*** Test Cases ***
Queueing By noqueue
    # Since Linux 6.11 virtio-net limits the bytes that wait at a port, beyond which noqueue drops packets.
    Given The SUT Is Set Up With
    ...    tc qdisc replace dev $OUT root noqueue
    ...    for q in /sys/class/net/$OUT/queues/*/byte_queue_limits; do [ ! -d $q ] || echo 1000000 >$q/limit_min; done
    ...    undo: for q in /sys/class/net/$OUT/queues/*/byte_queue_limits; do [ ! -d $q ] || echo 0 >$q/limit_min; done
    Then A Packet Costs As Much As Before
