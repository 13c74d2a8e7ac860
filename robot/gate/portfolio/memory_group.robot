*** Settings ***
Documentation    A program six groups of memory below the root, as in a container, sends on each datagram (cgroups v2).
Metadata         Rank    primary
Metadata         Why    Programs of containers receive in groups with memory limits. The memory of each packet is
...              charged through six groups, which no other path of UDP does.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook input priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-memory-group    end-host


*** Variables ***
${ABOVE}      all/pods/kind/pod/box
${GROUP}      ${ABOVE}/system/app
${SOCKETS}    udp 198.18.0.1 53 sockets 32 buffer 16384


*** Test Cases ***
UDP Sockets In A Memory Group
    Given The SUT Is Set Up With
    ...    mkdir all && mount -t cgroup2 none all && echo +memory >all/cgroup.subtree_control
    ...    undo: umount all
    ...    mkdir -p ${ABOVE}/system
    ...    undo: rmdir ${ABOVE}/system ${ABOVE} all/pods/kind/pod all/pods/kind all/pods
    ...    cd all && for g in pods kind pod box system; do cd $g && echo +memory >cgroup.subtree_control || exit; done
    ...    mkdir ${GROUP} && echo 64M >${GROUP}/memory.max
    ...    undo: rmdir ${GROUP}
    ...    ip address add 198.18.0.1/32 dev lo
    ...    echo $$ >${GROUP}/cgroup.procs && exec pdrgate-relay from ${SOCKETS} to udp 198.18.0.2 53
    ...    undo: pdrgate-relay end
    And Packets Are Sent Like    udp dst=198.18.0.1 dport=53-84 src=@in flows=256
    And The Frames Have 1024 Bytes
    Then It Is As Fast As Before    several_cpus=True
