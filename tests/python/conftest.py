import os
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from common import FAULTLINE  # noqa: E402

# What a report says is looked at on its longer page; the short one, which people get unless they ask, has tests of its own (test_brief.py).
os.environ["FAULTLINE_VERBOSE"] = "1"

# Programs that are started here are told of signals as in a terminal, also where the tests run under nohup or in the
# background of a shell, which ignore some, and so would all that they start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def binary():
    path = Path(FAULTLINE).resolve()
    assert path.exists(), f"{path} is not there: run `make build`, or name the binary in FAULTLINE"
    return str(path)


# Left out unless --all is given (`make test-all`), and all that is run with --left-out (`make test-left-out`), so that `make test` stays within minutes on two cores: of large tables of cases every
# nth, and single tests that start many processes with PyTorch in each.
EVERY_NTH = {
    "plan/test_value_sizes.py": 4,
    "plan/test_accumulation.py": 3,
    "plan/test_accuracy.py": 4,
    "plan/test_alike.py": 2,
    "plan/test_api.py": 3,
    "plan/test_compiled_and_pools.py": 2,
    "plan/test_decided_by_values.py": 2,
    "plan/test_ends_and_values.py": 2,
    "plan/test_extensions_on_the_way.py": 3,
    "plan/test_files.py": 2,
    "plan/test_jax_constants.py": 5,
    "plan/test_jax_recomputation.py": 5,
    "plan/test_intervals.py": 4,
    "plan/test_leak_verdicts.py": 4,
    "plan/test_leaks.py": 7,
    "plan/test_loop_ends.py": 3,
    "plan/test_plan_time.py": 2,
    "plan/test_programs.py": 4,
    "plan/test_ranks.py": 3,
    "plan/test_ways_of_libraries.py": 4,
    "plan/test_pytest_plugin.py::test_what_comes_of": 8,
    "plan/test_releases.py": 6,
    "plan/test_remedies.py": 3,
    "plan/test_tensorflow_sizes.py": 5,
    "run/test_recorder.py": 4,
    "run/test_shim_torch.py": 2,
    "test_hostile.py": 4,
}
LONG = (
    "test_plan_cli.py::test_a_program_that_does_not_fit_names_the_line_and_what_helps",  # test_readme.py has such a plan
    "test_plan_cli.py::test_a_run_folder_is_explained_again",
    "test_progress.py::test_the_runs_of_a_plan_are_named",
    "test_plan_cli.py::test_the_failure_that_is_named_is_the_one_it_died_of[none",
    "test_plan_cli.py::test_a_failure_that_the_program_catches_is_a_finding_and_no_verdict",
    "test_plan_verdicts.py::test_without_a_gpu_a_program_that_sizes_itself_by_it_is_given_no_number[0-",
    "test_plan_verdicts.py::test_a_library_that_needs_cuda_to_load_is_no_failure_of_the_program",
    "test_more_gpus.py::test_the_command_to_type_is_told[\\nimport torch, torch.multiprocessing",
    "test_trace_room.py::test_a_disk_without_room_for_the_trace_gives_no_verdict[65536",
    "test_api.py::test_the_text_tells_of_the_function_and_of_no_folder",
    "test_files.py::test_a_function_of_a_running_program_writes_nothing_either",
    "test_live_process.py::test_what_is_open_is_the_programs_own",
    "test_shim_torch.py::test_torch_imported_in_a_thread",
    "test_hostile.py::test_a_text_that_unpacks_beyond_bounds_is_refused",
    "test_shim_torch.py::test_what_a_build_without_a_history_cannot_do_is_noted",
    "test_tensorflow_run.py::TestTensorFlow::test_the_verdict_on_programs_that_people_are_told_are_at_fault[10_huge_tensorflow",
    "test_tensorflow_run.py::TestTensorFlow::test_the_verdict_on_programs_that_people_are_told_are_at_fault[12_",
    "test_tensorflow_run.py::TestTensorFlow::test_the_verdict_on_programs_that_people_are_told_are_at_fault[11_growing_tensorflow1",
    "test_plan_cli.py::test_inference_that_keeps_its_graph_is_confirmed_to_fit_without",
    "test_ranks.py::test_one_gpu_that_is_named_stands_for_one_for_each_rank",
    "test_no_grad.py::test_a_remedy_under_which_memory_still_grows_says_so",
    "test_plan_verdicts.py::test_without_a_gpu_a_program_that_sizes_itself_by_it_is_given_no_number[0.6-True]",
    "test_bench_generator.py::test_a_size_in_bytes_is_met_by_repeating_periods",
    "test_plan_cli.py::test_no_end_is_taken_for_a_fit[a process of several that does not fit]",
    "test_plan_cli.py::test_the_batch_that_was_found_fits_and_the_next_does_not",
    "test_plan_cli.py::test_no_end_is_taken_for_a_fit[gives up after an out-of-memory]",
    "test_plan_verdicts.py::test_without_a_gpu_a_program_that_sizes_itself_by_it_is_given_no_number[0.05-True]",
    "test_plan_verdicts.py::test_a_server_that_fills_the_gpu_on_purpose_fits_and_is_told_so",
    "test_ranks.py::test_torchrun_starts_the_first_one_between_and_the_last",
    "test_ranks.py::test_more_ranks_than_gpus_fail_where_the_program_asks_for_one",
    "test_ranks.py::test_a_parent_that_waits_for_a_result_of_each_rank_gets_it",
    "test_plan_time.py::test_what_was_seen_until_there_is_told[signal]",
    "test_recorder.py::test_no_allocation_that_the_recorder_is_refused_reaches_the_program[graph_after_free",
    "test_ranks.py::test_the_worst_end_is_the_launchers",
    "test_ranks.py::test_ranks_of_multiprocessing",
    "test_ranks.py::test_ranks_that_part_are_not_planned",
    "test_ranks.py::test_what_is_not_known_is_said_with_its_line",
    "test_plan_cli.py::test_the_failure_that_is_named_is_the_one_it_died_of[tries",
    "test_plan_cli.py::test_the_failure_that_is_named_is_the_one_it_died_of[an error",
    "test_plan_cli.py::test_no_end_is_taken_for_a_fit[two processes that fit together]",
    "test_plan_cli.py::test_no_end_is_taken_for_a_fit[two processes that may not]",
    "test_plan_cli.py::test_a_request_that_failed_is_not_told_by_the_tensor_of_the_next_attempt",
    "test_plan_verdicts.py::test_a_server_that_takes_more_than_there_is_does_not_fit",
    "test_plan_verdicts.py::test_a_program_that_only_asks_is_tight",
    "test_plan_time.py::test_what_was_seen_until_there_is_told[time]",
    "test_plan_time.py::test_a_program_that_does_not_end_is_ended_when_its_time_is_over[child-away",
    "test_files.py::test_every_rerun_begins_where_the_first_began",
    "test_shim_torch.py::test_a_training_step_compiles_into_the_same_graphs",
    "test_shim_torch.py::test_data_workers_run_as_without_us[spawn]",
    "test_shim_torch.py::test_a_child_of_torch_multiprocessing_that_fails_is_told_as_without_us",
    "test_recorder.py::test_no_allocation_that_the_recorder_is_refused_reaches_the_program[all_well",
    "test_pytest_plugin.py::test_through_xdist_with_what_could_not_be_judged",
    "test_pytest_plugin.py::test_on_a_machine_with_a_gpu_the_test_is_run_for_real_too",
)


def pytest_addoption(parser):
    parser.addoption("--all", action="store_true", help="also the tests that take long")
    parser.addoption("--left-out", action="store_true", help="only the tests that take long, and those with TensorFlow")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--all") or any("::" in argument for argument in config.args):
        return
    seen: dict[str, int] = {}

    def is_left_out(item):
        if any(name in item.nodeid for name in LONG):
            return True
        for name, nth in EVERY_NTH.items():
            if name in item.nodeid and "[" in item.nodeid:
                table = item.nodeid.partition("[")[0]
                seen[table] = seen.get(table, -1) + 1
                return seen[table] % nth != 0
        return False

    others_too = config.getoption("--left-out")
    kept, left_out = [], []
    for item in items:
        wanted = is_left_out(item) == others_too or (others_too and "tensorflow" in item.nodeid.lower())
        (kept if wanted else left_out).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left_out)
