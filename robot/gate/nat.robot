*** Settings ***
Documentation     How fast does this kernel translate addresses with nftables, and is it as fast as it was?

Resource          ../../resources/gate.resource

Suite Setup       The Testbed Is Open
Suite Teardown    Close Testbed

Test Tags         nat


*** Test Cases ***
NAT Keeps Its PDR
    [Documentation]    What leaves the router has its address: connections are tracked, sources translated.
    Given The SUT Is Set Up With
    ...    nft add table ip gate
    ...    nft 'add chain ip gate leaving { type nat hook postrouting priority srcnat; }'
    ...    nft add rule ip gate leaving oifname ${OUT} masquerade
    And Its Interrupts Are Pinned To    1 cpu
    And Its Receive Buffers Hold 4096 Packets
    When The Partial Drop Rate Is Searched    loss=0.5%    width=1%
    Then The Measurement Is Stable
    And The PDR Has Not Regressed
