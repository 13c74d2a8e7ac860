*** Settings ***
Documentation    Namespaces are made and left, and pairs of veths into a container too, while packets pass.

Resource         ../../../resources/gate.resource

Test Tags        path-containers-made


*** Test Cases ***
Containers Made
    Given The SUT Is Set Up With
    ...    ip netns add pdrgate-$HOP
    ...    undo: ip netns delete pdrgate-$HOP
    ...    echo 'unshare -n true && ip link add gate0 type veth peer name gate1 netns pdrgate-$HOP' >make
    Then They Are Replaced As Fast As Before    . ./make && ip link set gate0 up && ip link delete gate0
