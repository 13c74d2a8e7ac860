*** Settings ***
Documentation    The kernel gives each flow to one of four programs.
Metadata         Rank    secondary
Metadata         Why    Servers share a port between processes by SO_REUSEPORT. The flow's hash chooses the socket, and
...              several programs share the CPU.
Metadata         Fault    nft add table ip more
...              nft 'add chain ip more more { type filter hook input priority 5; }'
...              nft add rule ip more more udp sport 7 drop
Metadata         Seen In    nft_do_chain

Resource         ../../../resources/gate.resource

Test Tags        path-udp-delivery-to-four    end-host    udp


*** Test Cases ***
UDP Delivery To Four Receivers
    Given The SUT Delivers UDP To 4 Receivers
    Then It Is As Fast As Before
