*** Settings ***
Documentation    Programs send bytes to a program of the SUT in a group with a limit of memory (cgroups v2).
Metadata         Rank    secondary
Metadata         Why    Containers receive TCP within a memory limit. Socket memory is charged to the group and its
...              pressure shrinks windows.

Resource         ../../../resources/gate.resource

Test Tags        path-tcp-memory-group    end-host    closed-loop


*** Test Cases ***
TCP To A Memory Group
    Given The SUT Receives TCP By 1 Streams
    And Its TCP Windows Have 256 KiB
    And The SUT Is Set Up With
    ...    mkdir all && mount -t cgroup2 none all && echo +memory >all/cgroup.subtree_control
    ...    undo: umount all
    ...    mkdir all/gate && echo 64M >all/gate/memory.max
    ...    undo: cat all/gate/cgroup.procs | while read one; do echo $one >all/cgroup.procs; done; rmdir all/gate
    ...    for one in $(pidof iperf3); do echo $one >all/gate/cgroup.procs || exit; done
    Then It Is As Fast As Before
