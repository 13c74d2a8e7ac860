*** Settings ***
Documentation     Does a packet cost as much as it did, on each of these paths? The same guests stay up for all of them.

Resource          ../../../resources/gate.resource

Suite Setup       The Testbed Is Open For Kernel Builds
Suite Teardown    Close Testbed

Test Tags         portfolio
