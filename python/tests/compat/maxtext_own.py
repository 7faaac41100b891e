"""`examples/dropins/maxtext_train.py` in MaxText's own code: run by `test_maxtext_pipeline.py`.

`maxtext_own.py MAXTEXT FOLDER`: MAXTEXT is a folder with MaxText, FOLDER gets the data and the checkpoint. Prints JSON.
"""

import importlib.util
import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import maxtext_stubs
import numpy as np
from maxtext_pipeline import config, shown

REPOSITORY = Path(__file__).resolve().parents[3]


def main() -> None:
    maxtext, folder = sys.argv[1], Path(sys.argv[2])
    os.environ.update(DECOUPLE_GCLOUD="TRUE", JAX_PLATFORMS="cpu")
    import gristmill.compat.grain

    # MaxText imports Grain.
    gristmill.compat.grain.install()
    sys.path.append(maxtext)
    maxtext_stubs.install()
    import jax
    from absl import flags
    from maxtext.common import grain_utility
    from maxtext.input_pipeline import input_pipeline_interface, multihost_dataloading
    from orbax.checkpoint.experimental import v1

    spec = importlib.util.spec_from_file_location("maxtext_train", REPOSITORY / "python/examples/dropins/maxtext_train.py")
    assert spec is not None and spec.loader is not None
    dropin: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dropin)
    dropin.install()

    flags.FLAGS(["maxtext"])
    texts = [json.dumps({"text": f"document {n}: " + "words " * (n % 17)}) for n in range(600)]
    (folder / "texts.jsonl").write_text("\n".join(texts))
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    given = {
        "dataset_type": "grain",
        "data_sharding": ["data"],
        "grain_file_type": "gristmill",
        "grain_train_files": str(folder / "texts.jsonl"),
        "global_batch_size_to_train_on": 4,
        "global_batch_size_to_eval_on": 4,
        "eval_interval": 10,
        "num_epoch": 2,
        "tokenizer_path": str(REPOSITORY / "src/demo/tokenizer.json"),
    }

    def start() -> tuple[Any, Any]:
        return input_pipeline_interface.create_data_iterator(config(folder, **given), mesh)

    def host(index: int) -> list[Any]:
        # `jax.process_index` is 0: the first of the list.
        hosts = [0, 1] if index == 0 else [1, 0]
        half = config(folder, **given | {"global_batch_size_to_load": 2})
        return list(islice(input_pipeline_interface.make_grain_train_iterator(half, mesh, hosts).dataloader, 4))

    train, evaluation = start()
    first = [shown(batch) for batch in islice(train, 3)]
    v1.save_checkpointables(folder / "checkpoint", {"iter": grain_utility.for_save(3, train, -1)})
    rest = [shown(batch) for batch in islice(train, 5)]
    again, _ = start()
    next(again)
    v1.load_checkpointables(folder / "checkpoint", {"iter": grain_utility.GrainCheckpointable(again.local_iterator)})
    passes = [[shown(batch) for batch in evaluation] for _ in range(2)]
    halves = [np.concatenate([a["inputs"], b["inputs"]]) for a, b in zip(host(0), host(1), strict=True)]
    whole = [np.asarray(batch["inputs"]) for batch in islice(start()[0], 4)]
    out = {
        "first": first,
        "goes_on": [shown(batch) for batch in islice(again, 5)] == rest,
        "evaluations": [len(one) for one in passes] if passes[0] == passes[1] else None,
        "hosts": all(np.array_equal(a, b) for a, b in zip(halves, whole, strict=True)),
    }
    multihost_dataloading.cleanup_all_iterators()
    print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
