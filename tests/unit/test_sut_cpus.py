import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdrgate.hosts.cpus import (
    CpuPlan,
    cpu_mask,
    format_cpu_list,
    parse_cpu_list,
    parse_cpu_mask,
    plan_cpus,
    thread_siblings,
)
from pdrgate.values.errors import TestbedError

FOUR_THREADS = {0: {0, 1}, 1: {0, 1}, 2: {2, 3}, 3: {2, 3}}
ALONE = {cpu: {cpu} for cpu in range(8)}

some_cpus = st.sets(st.integers(0, 300))


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [((), "0"), ((0,), "1"), ((1,), "2"), ((0, 1), "3"), ((31,), "80000000"), ((32,), "1,00000000"),
     (range(36), "f,ffffffff"), ((64,), "1,00000000,00000000")],
)  # fmt: skip
def test_mask_is_hexadecimal_in_groups_of_32_bits(cpus, mask):
    assert cpu_mask(cpus) == mask


@pytest.mark.parametrize(
    ("mask", "cpus"), [("00000002\n", (1,)), ("f,ffffffff", tuple(range(36))), ("00000000,00000003", (0, 1)), ("0", ())]
)
def test_kernel_masks_are_read(mask, cpus):
    assert parse_cpu_mask(mask) == cpus


@given(some_cpus)
def test_masks_and_lists_survive_a_round_trip(cpus):
    assert set(parse_cpu_mask(cpu_mask(cpus))) == cpus
    assert set(parse_cpu_list(format_cpu_list(cpus))) == cpus


def test_lists_have_the_kernels_form():
    assert format_cpu_list([5, 0, 1, 2]) == "0-2,5"
    assert parse_cpu_list("0-2,5\n") == (0, 1, 2, 5)


@pytest.mark.parametrize("text", ["", "x", "1;2"])
def test_what_is_no_mask_is_refused(text):
    with pytest.raises(ValueError, match="invalid literal"):
        parse_cpu_mask(text)


@pytest.mark.parametrize(
    ("generator", "sut", "available", "siblings", "plan"),
    [
        (None, None, (0, 1), ALONE, CpuPlan(0, (1,))),
        (1, None, (0, 1), ALONE, CpuPlan(1, (0,))),
        (None, (0,), (0, 1), ALONE, CpuPlan(1, (0,))),
        (None, None, (2, 5, 7), ALONE, CpuPlan(2, (5,))),
        (None, None, (0, 1, 2, 3), FOUR_THREADS, CpuPlan(0, (2,))),
        (None, (0, 1), (0, 1, 2, 3), FOUR_THREADS, CpuPlan(2, (0, 1))),
        (None, (3, 0, 3), (0, 1, 2, 3), FOUR_THREADS, CpuPlan(1, (0, 3), shared_core=True)),
        (None, None, (0, 1), FOUR_THREADS, CpuPlan(0, (1,), shared_core=True)),
        (1, (0,), (0, 1), FOUR_THREADS, CpuPlan(1, (0,), shared_core=True)),
    ],
)
def test_generator_and_sut_share_no_cpu_and_no_core_when_there_is_a_choice(generator, sut, available, siblings, plan):
    assert plan_cpus(generator, sut, available, siblings) == plan


@given(st.sets(st.integers(0, 40), min_size=2), st.booleans())
def test_a_plan_never_overlaps(available, threads):
    siblings = {cpu: {cpu & ~1, cpu | 1} if threads else {cpu} for cpu in available}
    plan = plan_cpus(None, None, available, siblings)
    assert plan.generator not in plan.sut
    assert {plan.generator, *plan.sut} <= available


def test_one_cpu_is_refused_with_reason_and_remedy():
    with pytest.raises(TestbedError) as refused:
        plan_cpus(None, None, (3,), ALONE)
    assert str(refused.value) == (
        "only CPU 3 is available, and a generator that shares it with the SUT would slow the SUT instead of "
        "overloading it, so that no loss shows; give this machine or "
        "container two CPUs (check taskset -p $$ and the cpuset)"
    )


@pytest.mark.parametrize(
    ("generator", "sut", "message"),
    [
        (9, None, "generator.cpu: CPU 9 is not available, CPUs 0-3 are; choose of these or write auto"),
        (None, (1, 8, 9), "sut.cpus: CPU 8-9 is not available, CPUs 0-3 are; choose of these or write auto"),
        (1, (0, 1), "sut.cpus: CPU 1 is the generator's; give the SUT others or write auto"),
        (
            None,
            (0, 1, 2, 3),
            "generator.cpu: no CPU is left, the SUT has them all; leave it one, or write auto for both",
        ),
    ],
)
def test_an_impossible_plan_names_key_and_remedy(generator, sut, message):
    with pytest.raises(TestbedError) as refused:
        plan_cpus(generator, sut, (0, 1, 2, 3), ALONE)
    assert str(refused.value) == message


def test_siblings_come_from_sysfs_and_are_alone_where_it_says_nothing(tmp_path):
    topology = tmp_path / "cpu0" / "topology"
    topology.mkdir(parents=True)
    (topology / "thread_siblings_list").write_text("0,64\n")
    assert thread_siblings([0, 1], tmp_path) == {0: {0, 64}, 1: {1}}
