"""What `docs/compare.md` says of other libraries, where they are installed. Each is asked in a process of its own.

Only another version of a library changes an answer, so they are asked weekly.
"""

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from test_migrations import interpreter

DOCS = Path(__file__).resolve().parents[1] / "docs"


def ask(peer: str, program: str, folder: Path) -> Any:
    """What the last line of a program says, as JSON; skips the test where the peer is not installed."""
    path = folder / "program.py"
    path.write_text(textwrap.dedent(program))
    return json.loads(interpreter(peer)(path, folder).splitlines()[-1])


@pytest.mark.weekly
def test_a_state_of_torchdata_is_for_one_number_of_workers(tmp_path: Path) -> None:
    program = """
        import json
        from torchdata.stateful_dataloader import StatefulDataLoader

        def first(workers, state=None):
            loader = StatefulDataLoader(list(range(40)), batch_size=4, num_workers=workers)
            if state is not None:
                loader.load_state_dict(state)
            batches = iter(loader)
            return next(batches).tolist(), loader.state_dict()

        if __name__ == "__main__":
            batch, state = first(2)
            same, _ = first(2, state)
            try:
                other, _ = first(1, state)
            except AssertionError as error:
                other = type(error).__name__
            print(json.dumps([batch, same, other]))
    """
    assert ask("torchdata", program, tmp_path) == [[0, 1, 2, 3], [4, 5, 6, 7], "AssertionError"]


@pytest.mark.weekly
def test_a_state_of_grain_goes_on_elsewhere_with_other_workers(tmp_path: Path) -> None:
    program = """
        import json
        import grain
        from absl import app

        def batches(workers):
            ds = grain.MapDataset.range(40).to_iter_dataset().batch(4)
            return iter(ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)))

        def main(_):
            opened = [batches(2)]
            next(opened[0])
            state = opened[0].get_state()
            expected = next(opened[0]).tolist()
            results = []
            for workers in (2, 3):
                other = batches(workers)
                opened.append(other)
                other.set_state(state)
                results.append(next(other).tolist() == expected)
            for iterator in opened:
                iterator.close()
            print(json.dumps(results))

        if __name__ == "__main__":
            app.run(main)
    """
    assert ask("grain", program, tmp_path) == [True, False]


@pytest.mark.weekly
def test_batches_of_grain_follow_the_workers(tmp_path: Path) -> None:
    program = """
        import json
        import grain
        from absl import app

        def main(_):
            ds = grain.MapDataset.range(40).to_iter_dataset().batch(4)
            first = [next(iter(ds.mp_prefetch(grain.MultiprocessingOptions(num_workers=n)))).tolist() for n in (1, 2)]
            print(json.dumps(first))

        if __name__ == "__main__":
            app.run(main)
    """
    assert ask("grain", program, tmp_path) == [[0, 1, 2, 3], [0, 2, 4, 6]]


@pytest.mark.weekly
def test_workers_of_torch_each_read_an_iterable_dataset(tmp_path: Path) -> None:
    program = """
        import json
        from torch.utils.data import DataLoader, IterableDataset

        class Numbers(IterableDataset):
            def __iter__(self):
                return iter(range(4))

        if __name__ == "__main__":
            print(json.dumps([sorted(int(x) for x in DataLoader(Numbers(), batch_size=None, num_workers=n)) for n in (1, 2)]))
    """
    assert ask("torch", program, tmp_path) == [[0, 1, 2, 3], [0, 0, 1, 1, 2, 2, 3, 3]]


@pytest.mark.weekly
def test_the_order_of_litdata_follows_the_workers(tmp_path: Path) -> None:
    program = """
        import json, sys
        from litdata import StreamingDataLoader, StreamingDataset, optimize

        def sample(index):
            return {"n": index}

        def order(workers):
            dataset = StreamingDataset("chunks", shuffle=True, seed=1)
            return [n for batch in StreamingDataLoader(dataset, batch_size=4, num_workers=workers) for n in batch["n"].tolist()]

        if __name__ == "__main__":
            optimize(fn=sample, inputs=list(range(400)), output_dir="chunks", num_workers=1, chunk_size=50)
            one, two = order(1), order(2)
            print()
            print(json.dumps([one == order(1), one == two, sorted(one) == sorted(two)]))
    """
    assert ask("litdata", program, tmp_path) == [True, False, True]


@pytest.mark.weekly
def test_the_order_of_streaming_does_not_follow_the_workers(tmp_path: Path) -> None:
    program = """
        import json
        from streaming import MDSWriter, StreamingDataLoader, StreamingDataset
        from streaming.base.util import clean_stale_shared_memory

        def order(workers):
            clean_stale_shared_memory()
            dataset = StreamingDataset(local="mds", shuffle=True, shuffle_seed=1, batch_size=4, num_canonical_nodes=1)
            return [n for batch in StreamingDataLoader(dataset, batch_size=4, num_workers=workers) for n in batch["n"].tolist()]

        if __name__ == "__main__":
            with MDSWriter(out="mds", columns={"n": "int"}, size_limit=1000) as out:
                for n in range(400):
                    out.write({"n": n})
            print(json.dumps([order(1) == order(2)]))
    """
    assert ask("streaming", program, tmp_path) == [True]


@pytest.mark.weekly
def test_a_checkpoint_of_tf_data_holds_the_elements_of_its_shuffle(tmp_path: Path) -> None:
    program = """
        import glob, json, os
        import tensorflow as tf

        ds = tf.data.Dataset.range(10_000).map(lambda x: tf.random.stateless_uniform([1000], [x, 1], dtype=tf.int64, minval=None, maxval=None)).shuffle(1000, seed=1).batch(4)
        batches = iter(ds)
        next(batches)
        tf.train.Checkpoint(batches=batches).write("state")
        print(json.dumps(sum(os.path.getsize(path) for path in glob.glob("state*"))))
    """
    assert ask("tfdata", program, tmp_path) > 1000 * 8 * 900


def test_the_page_names_each_of_them() -> None:
    page = (DOCS / "compare.md").read_text()
    for test in [name for name in globals() if name.startswith("test_") and name != "test_the_page_names_each_of_them"]:
        assert f"`{test}`" in page, test
