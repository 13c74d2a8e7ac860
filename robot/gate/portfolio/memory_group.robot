*** Settings ***
Documentation    A program in a group within a group that has a limit of memory (cgroups v2) sends each datagram on.

Resource         ../../../resources/gate.resource

Test Tags        path-memory-group    end-host


*** Test Cases ***
UDP Sockets In A Memory Group
    Given The SUT Is Set Up With
    ...    mkdir all && mount -t cgroup2 none all && echo +memory >all/cgroup.subtree_control    undo: umount all
    ...    mkdir all/gate && echo 64M >all/gate/memory.max && echo +memory >all/gate/cgroup.subtree_control
    ...    undo: rmdir all/gate
    ...    mkdir all/gate/one    undo: rmdir all/gate/one
    ...    ip address add 198.18.0.1/32 dev lo
    ...    echo $$ >all/gate/one/cgroup.procs && exec pdrgate-relay from udp 198.18.0.1 53 to udp 198.18.0.2 53
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=198.18.0.1 dport=53 src=@in flows=256
    Then A Packet Costs As Much As Before    frame=1024    two_cpus=True
