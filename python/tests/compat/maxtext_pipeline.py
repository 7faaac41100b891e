"""MaxText's own input pipeline, its code untouched, over whatever `grain` is imported: run by `test_maxtext_pipeline.py`.

`maxtext_pipeline.py SHIM|WHEEL MAXTEXT FOLDER`: WHEEL is a folder with Grain in it, MAXTEXT one with MaxText. FOLDER gets the data and
the checkpoints. Prints, as JSON, the batches of each configuration, and whether a run that was saved with Orbax goes on with them.

What MaxText imports and this path does not use is stubbed where it is not installed; of `sentencepiece` a tokenizer of bytes.
"""

import hashlib
import json
import os
import sys
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import maxtext_stubs
import numpy as np

def write(folder: Path) -> None:
    """Two files of texts each of two kinds, and one of conversations."""
    from array_record.python import array_record_module
    from maxtext.input_pipeline.protos import example_pb2

    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        for shard in range(2):
            writer = array_record_module.ArrayRecordWriter(str(folder / f"{name}-{shard}.array_record"), "group_size:1")
            for _ in range(40):
                example = example_pb2.Example()
                text = " ".join(name + str(n) for n in rng.integers(1000, size=rng.integers(1, 24)))
                example.features.feature["text"].bytes_list.value.append(text.encode())
                writer.write(example.SerializeToString())
            writer.close()
    # Not in the order of their names, which is the one that they are mixed in.
    mixture = {"two": {"path": str(folder / "b-*"), "weight": 0.3}, "one": {"path": str(folder / "a-*"), "weight": 0.7}}
    (folder / "mixture.json").write_text(json.dumps(mixture))


def config(folder: Path, **given: Any) -> SimpleNamespace:
    """The options that the path reads, as MaxText's defaults are or close to them."""
    return SimpleNamespace(
        **{
            "add_bos": True,
            "add_eos": True,
            "blend_cache_dir": "",
            "blend_index_dir": "",
            "colocated_python_data_input": False,
            "data_shuffle_seed": 3,
            "elastic_enabled": False,
            "enable_data_shuffling": True,
            "expansion_factor_real_data": -1,
            "generate_padding_batch_train": False,
            "global_batch_size_to_load": 4,
            "grain_data_source_max_workers": 2,
            "grain_file_type": "arrayrecord",
            "grain_num_threads": 2,
            "grain_packing_type": "first_fit",
            "grain_per_worker_buffer_size": 1,
            "grain_prefetch_buffer_size": 8,
            "grain_ram_budget_mb": 256,
            "grain_shuffle_buffer_size": 16,
            "grain_train_files": str(folder / "a-*"),
            "grain_train_mixture_config_path": None,
            "grain_use_elastic_iterator": False,
            "grain_worker_count": 0,
            "hf_access_token": None,
            "max_segments_per_seq": None,
            "max_target_length": 64,
            "mmap_npy_split": None,
            "num_epoch": 1,
            "packing": True,
            "tokenize_train_data": True,
            "tokenizer_path": "bytes",
            "tokenizer_type": "sentencepiece",
            "train_data_columns": ["text"],
            "use_dpo": False,
            "use_multimodal": False,
            "use_sft": False,
            "use_truncation": True,
            **given,
        }
    )


CASES: dict[str, dict[str, Any]] = {
    "first fit": {},
    "first fit of few": {"max_segments_per_seq": 2, "num_epoch": 2},
    "best fit": {"grain_packing_type": "best_fit"},
    "concatenated": {"grain_packing_type": "concat_then_split"},
    "concatenated without beginnings": {"grain_packing_type": "concat_then_split", "add_bos": False},
    "chunks": {"use_truncation": False, "max_target_length": 24},
    "padded": {"packing": False},
    "mixture": {"mixture": True},
    "elastic": {"grain_use_elastic_iterator": True, "packing": False},
    "workers": {"grain_worker_count": 2, "packing": False},
}
BATCHES, SAVED = 8, 3


def shown(batch: Any) -> Any:
    return {
        name: [array.dtype.str, list(array.shape), hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]]
        for name, array in sorted((name, np.asarray(value)) for name, value in batch.items())
    }


def main() -> None:
    library, maxtext, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    os.environ.update(DECOUPLE_GCLOUD="TRUE", JAX_PLATFORMS="cpu")
    sys.path.append(maxtext)
    if library == "SHIM":
        import gristmill.compat.grain

        gristmill.compat.grain.install()
    else:
        sys.path.insert(0, library)
    folder.mkdir()
    maxtext_stubs.write(folder)
    sys.path.append(str(folder))
    maxtext_stubs.install()
    import jax
    from absl import flags
    from maxtext.input_pipeline import grain_data_processing, multihost_dataloading
    from orbax.checkpoint.experimental import v1

    flags.FLAGS(["maxtext"])
    write(folder)
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))

    def start(options: dict[str, Any]) -> Any:
        given = dict(options)
        if given.pop("mixture", False):
            given["grain_train_mixture_config_path"] = str(folder / "mixture.json")
        made = grain_data_processing.make_grain_train_iterator(config(folder, **given), mesh, [0])
        # It closes its passes when it goes.
        kept.append(made)
        return iter(made.dataloader)

    kept: list[Any] = []

    for name, options in CASES.items():
        pass_ = start(options)
        first = [shown(batch) for batch in islice(pass_, SAVED)]
        saves = hasattr(pass_, "save")
        if saves:
            v1.save_checkpointables(folder / f"checkpoint-{name.replace(' ', '-')}", {"data": pass_})
        state = pass_.get_state()
        rest = [shown(batch) for batch in islice(pass_, BATCHES)]
        again = start(options)
        if saves:
            v1.load_checkpointables(folder / f"checkpoint-{name.replace(' ', '-')}", {"data": again})
        else:
            again.set_state(json.loads(json.dumps(state)))
        goes_on = [shown(batch) for batch in islice(again, BATCHES)] == rest
        ends = True
        for one in (pass_, again):
            try:
                multihost_dataloading._terminate_iterator_workers(one)
            except AssertionError:
                # Grain's own iterators without a parent.
                ends = False
            multihost_dataloading._close_iterator(one)
        print(json.dumps({"name": name, "batches": first + rest, "goes_on": goes_on, "ends": ends}), flush=True)


if __name__ == "__main__":
    main()
