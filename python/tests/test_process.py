"""What a program sees of the package beyond its data: imports, and how it ends."""

import subprocess
import sys
import textwrap
import time

import gristmill as gm
import pytest


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_an_import_brings_nothing_but_numpy() -> None:
    loaded = run(
        """
        import sys
        before = set(sys.modules)
        import gristmill
        print(*{name.partition(".")[0] for name in set(sys.modules) - before} - sys.stdlib_module_names)
        """
    )
    assert set(loaded.split()) <= {"gristmill", "numpy"}


@pytest.mark.parametrize("is_first", [True, False])
def test_other_interpreters_of_a_process_are_refused(is_first: bool) -> None:
    module = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    told = run(
        f"""
        import {module} as interpreters
        if not {is_first}:
            import gristmill
        other = interpreters.create()
        try:
            failed = interpreters.run_string(other, "import gristmill")
            print(failed)
        except interpreters.RunFailedError as error:
            print(error)
        interpreters.destroy(other)
        import gristmill as gm
        print(list(gm.MapDataset.range(3).map(lambda x: x + 1)))
        """
    )
    assert "gristmill works only in the main interpreter of a process" in told and told.endswith("[1, 2, 3]\n")


def test_a_program_ends_with_threads_at_work() -> None:
    told = run(
        """
        import gristmill as gm
        ds = gm.MapDataset.range(10).map(lambda x: x + 1).repeat().to_iter_dataset().batch(4)
        running = ds.loader(threads=2)
        print(next(running).tolist())
        """
    )
    assert told == "[1, 2, 3, 4]\n"


@pytest.mark.parametrize("end", ["close", "del"])
def test_nobody_calls_functions_once_a_pass_has_ended(end: str) -> None:
    """Not even to its end: a program that ends then would take the interpreter away from them."""
    entered: list[int] = []
    left: list[int] = []

    def slow(x: int) -> int:
        entered.append(x)
        # So that a call is under way, usually, when the pass ends.
        time.sleep(0.001)
        left.append(x)
        return x

    ds = gm.MapDataset.range(1 << 40).map(slow).to_iter_dataset().batch(2)
    for _ in range(20):
        running = ds.loader(threads=2)
        next(running)
        if end == "close":
            running.close()
        del running
        assert len(entered) == len(left)


def test_an_iterator_may_be_dropped_at_any_time() -> None:
    told = run(
        """
        import gristmill as gm
        ds = gm.MapDataset.range(10).map(lambda x: x + 1).repeat().to_iter_dataset()
        for _ in range(20):
            it = ds.loader(threads=3)
            next(it)
            del it
        print("ended")
        """
    )
    assert told == "ended\n"


def test_other_threads_run_while_native_work_waits() -> None:
    told = run(
        """
        import threading
        import gristmill as gm
        gate = threading.Event()
        ds = gm.MapDataset.range(3).map(lambda x: gate.wait(60) and x)
        consumer = threading.Thread(target=lambda: print(list(ds.loader(threads=2))))
        consumer.start()
        gate.set()
        consumer.join(60)
        """
    )
    assert told == "[0, 1, 2]\n"


def test_threads_of_python_may_share_an_iterator() -> None:
    told = run(
        """
        import threading
        import time
        import gristmill as gm
        seen = []
        # A sleep of 0 hands the interpreter to another thread.
        shared = iter(gm.MapDataset.range(300).map(lambda x: time.sleep(0) or x))
        consumers = [threading.Thread(target=lambda: seen.extend(shared)) for _ in range(4)]
        for consumer in consumers:
            consumer.start()
        for consumer in consumers:
            consumer.join(60)
        print(sorted(seen) == list(range(300)))
        """
    )
    assert told == "True\n"


def test_a_pass_without_workers_imports_nothing_for_them() -> None:
    loaded = run(
        """
        import sys
        import gristmill as gm
        print(list(gm.MapDataset.range(3).select_indices(list(range(3)))))
        print("gristmill._workers" in sys.modules, "cloudpickle" in sys.modules, "typing" in sys.modules)
        """
    )
    assert loaded == "[0, 1, 2]\nFalse False False\n"
