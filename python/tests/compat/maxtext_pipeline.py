"""MaxText's own input pipeline, its code untouched, over whatever `grain` is imported: run by `test_maxtext_pipeline.py`.

`maxtext_pipeline.py SHIM|WHEEL MAXTEXT FOLDER [all|time]`: WHEEL is a folder with Grain in it, MAXTEXT one with MaxText. FOLDER gets the data and
the checkpoints. Prints, as JSON, the batches of each configuration, and whether a run that was saved with Orbax goes on with them. With `time`,
prints the CPU time of a row of each configuration in place of its batches.

What MaxText imports and this path does not use is stubbed where it is not installed; of `sentencepiece` a tokenizer of bytes.
"""

import hashlib
import json
import os
import struct
import sys
import time
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import maxtext_stubs
import numpy as np


def example(values: dict[str, Any]) -> bytes:
    """A `tf.train.Example` of texts, ids and logits."""
    from maxtext.input_pipeline.protos import example_pb2

    made = example_pb2.Example()
    for name, value in values.items():
        feature = made.features.feature[name]
        if isinstance(value, str):
            feature.bytes_list.value.append(value.encode())
        elif value.dtype.kind == "f":
            feature.float_list.value.extend(value.ravel().tolist())
        else:
            feature.int64_list.value.extend(value.ravel().tolist())
    return made.SerializeToString()


def columns(name: str, rng: np.random.Generator) -> dict[str, Any]:
    """A row with the columns of all objectives."""
    said = [" ".join(name + str(n) for n in rng.integers(1000, size=rng.integers(1, 9))) for _ in range(5)]
    ids = rng.integers(3, 99, rng.integers(2, 40)).astype(np.int32)
    texts = {"prompt": said[0], "completion": said[1], "question": said[2], "answer": said[3]}
    pair = {"chosen": said[0] + said[1], "rejected": said[0] + said[2]}
    top = rng.integers(3, 99, (len(ids), 2)).astype(np.int32)
    return {"text": said[4], **texts, **pair, "ids": ids, "inputs": ids, "top_k_indices": top, "top_k_logits": top.astype(np.float32) / 7}


def write(folder: Path) -> None:
    """Two files of texts each of two kinds, and rows with all columns in each format."""
    import pyarrow as arrow
    from array_record.python import array_record_module
    from pyarrow import parquet
    from tfrecord.writer import TFRecordWriter

    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        for shard in range(2):
            writer = array_record_module.ArrayRecordWriter(str(folder / f"{name}-{shard}.array_record"), "group_size:1")
            for _ in range(40):
                text = " ".join(name + str(n) for n in rng.integers(1000, size=rng.integers(1, 24)))
                writer.write(example({"text": text}))
            writer.close()
    # Not in the order of their names, which is the one that they are mixed in.
    mixture = {"two": {"path": str(folder / "b-*"), "weight": 0.3}, "one": {"path": str(folder / "a-*"), "weight": 0.7}}
    (folder / "mixture.json").write_text(json.dumps(mixture))

    for shard in range(3):
        rows = [columns("c", rng) for _ in range(30)]
        writer = array_record_module.ArrayRecordWriter(str(folder / f"all-{shard}.array_record"), "group_size:1")
        with (folder / f"all-{shard}.tfrecord").open("wb") as file:
            for row in rows:
                record = example(row)
                writer.write(record)
                size = struct.pack("<Q", len(record))
                file.write(size + TFRecordWriter.masked_crc(size) + record + TFRecordWriter.masked_crc(record))
        writer.close()
        for row in rows:
            roles = [("user", row["prompt"]), ("assistant", row["completion"]), ("user", row["question"]), ("assistant", row["answer"])]
            row["messages"] = [{"role": role, "content": content} for role, content in roles]
            row.update({name: list(row[name]) for name in ("top_k_indices", "top_k_logits")})
        parquet.write_table(arrow.Table.from_pylist(rows), folder / f"all-{shard}.parquet", row_group_size=7)
    for name in ("m", "n"):
        megatron(folder / name, [np.append(rng.integers(3, 99, n), 2) for n in rng.integers(1, 60, 50)])
        (folder / f"{name}-npy").mkdir()


def megatron(prefix: Path, documents: list[Any]) -> None:
    """Documents of 32-bit ids in Megatron's format: a `.bin` of ids and an `.idx`."""
    sizes = np.array([len(document) for document in documents], np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes[:-1], dtype=np.int64)]) * 4
    head = b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, len(sizes), len(sizes) + 1)
    prefix.with_suffix(".bin").write_bytes(np.concatenate(documents).astype(np.int32).tobytes())
    prefix.with_suffix(".idx").write_bytes(head + sizes.tobytes() + starts.tobytes() + np.arange(len(sizes) + 1, dtype=np.int64).tobytes())


def config(folder: Path, **given: Any) -> SimpleNamespace:
    """The options that the path reads, as MaxText's defaults are or close to them."""
    options = {
        "add_bos": True,
        "add_eos": True,
        "blend_cache_dir": "",
        "blend_index_dir": "",
        "chat_template": None,
        "colocated_python_data_input": False,
        "data_shuffle_seed": 3,
        "dataset_path": "",
        "dpo": SimpleNamespace(max_prompt_length=20),
        "elastic_enabled": False,
        "enable_data_shuffling": True,
        "eod_mask_loss": True,
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
        "hf_path": "",
        "is_offline_distillation": False,
        "max_segments_per_seq": None,
        "max_target_length": 64,
        "mmap_eod_id": 2,
        "mmap_npy_split": None,
        "mmap_split_sentences": False,
        "num_epoch": 1,
        "packing": True,
        "packing_max_segments_per_sample": 0,
        "reset_attention_mask": True,
        "sft_train_on_completion_only": True,
        "steps": 0,
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
    # Those of an evaluation are those of training.
    of_train = {name: options[name] for name in ("train_data_columns", "tokenize_train_data", "grain_train_files")}
    evaluation = {name.replace("train", "eval"): value for name, value in of_train.items()}
    evaluation |= {f"{name}_eval": value for name, value in options.items() if name.startswith("grain_")}
    batches = {"generate_padding_batch_eval": False, "global_batch_size_to_load_eval": options["global_batch_size_to_load"]}
    return SimpleNamespace(**options, **evaluation, **batches)


# Options of each case. `FOLDER` is the folder of the data.
CASES: dict[str, dict[str, Any]] = {
    "first fit": {},
    "first fit of few": {"max_segments_per_seq": 2, "num_epoch": 2},
    "best fit": {"grain_packing_type": "best_fit"},
    "concatenated": {"grain_packing_type": "concat_then_split"},
    "concatenated without beginnings": {"grain_packing_type": "concat_then_split", "add_bos": False},
    "chunks": {"use_truncation": False, "max_target_length": 24},
    "padded": {"packing": False},
    "mixture": {"grain_train_files": "FOLDER/a-*", "grain_train_mixture_config_path": "FOLDER/mixture.json"},
    "elastic": {"grain_use_elastic_iterator": True, "packing": False},
    "workers": {"grain_worker_count": 2, "packing": False},
}

SOURCES: dict[str, dict[str, Any]] = {
    "ArrayRecord": {"grain_train_files": "FOLDER/all-*.array_record"},
    "weighted ArrayRecord": {"grain_train_files": "FOLDER/all-0.array_record,0.3;FOLDER/all-[12].array_record,0.7"},
    "elastic ArrayRecord": {"grain_train_files": "FOLDER/all-*.array_record", "grain_use_elastic_iterator": True},
    "TFRecord": {"grain_file_type": "tfrecord", "grain_train_files": "FOLDER/all-*.tfrecord"},
    "Parquet": {"grain_file_type": "parquet", "grain_train_files": "FOLDER/all-*.parquet"},
    "Parquet in order": {"grain_file_type": "parquet", "grain_train_files": "FOLDER/all-*.parquet", "enable_data_shuffling": False},
    # The second of two hosts, and the last of four that share three files.
    "ArrayRecord of two hosts": {"grain_train_files": "FOLDER/all-*.array_record", "hosts": [1, 0]},
    "TFRecord of two hosts": {"grain_file_type": "tfrecord", "grain_train_files": "FOLDER/all-*.tfrecord", "hosts": [1, 0], "num_epoch": 2},
    "Parquet of four hosts": {"grain_file_type": "parquet", "grain_train_files": "FOLDER/all-*.parquet", "hosts": [1, 2, 3, 0], "num_epoch": 2},
    "evaluation of ArrayRecord": {"grain_train_files": "FOLDER/all-*.array_record", "evaluates": True},
    "evaluation of Parquet": {"grain_file_type": "parquet", "grain_train_files": "FOLDER/all-*.parquet", "evaluates": True},
}
SFT = {"use_sft": True, "tokenizer_type": "huggingface", "add_bos": False, "add_eos": False}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "text": {},
    "chunks": {"use_truncation": False, "max_target_length": 24},
    "ids": {"train_data_columns": ["ids"], "tokenize_train_data": False},
    "distillation": {"train_data_columns": ["inputs"], "tokenize_train_data": False, "is_offline_distillation": True},
    "SFT of messages": {**SFT, "train_data_columns": ["messages"], "max_target_length": 256},
    "SFT of completions": {**SFT, "train_data_columns": ["prompt", "completion"], "max_target_length": 128},
    "SFT of answers": {**SFT, "train_data_columns": ["question", "answer"], "max_target_length": 128},
    "SFT of whole rows": {**SFT, "train_data_columns": ["prompt", "completion"], "sft_train_on_completion_only": False},
    "DPO": {"use_dpo": True, "train_data_columns": ["prompt", "chosen", "rejected"], "packing": False},
    "DPO of two": {"use_dpo": True, "train_data_columns": ["chosen", "rejected"], "packing": False},
}
PACKING: dict[str, dict[str, Any]] = {
    "padded": {"packing": False},
    "first fit": {"grain_packing_type": "first_fit"},
    "best fit": {"grain_packing_type": "best_fit"},
    "concatenated": {"grain_packing_type": "concat_then_split"},
}
MMAP = {"grain_file_type": "mmap", "grain_train_files": "FOLDER/m", "max_target_length": 32}
NPY = {**MMAP, "grain_file_type": "mmap_npy", "grain_train_files": "FOLDER/m-npy|FOLDER/m"}
MEGATRON: dict[str, dict[str, Any]] = {
    "mmap": MMAP,
    "mmap in order": {**MMAP, "enable_data_shuffling": False},
    "mmap over documents": {**MMAP, "reset_attention_mask": False},
    "mmap of few": {**MMAP, "packing_max_segments_per_sample": 4},
    "mmap of two": {**MMAP, "grain_train_files": "FOLDER/m,0.4;FOLDER/n,0.6"},
    "mmap_npy": NPY,
    "mmap_npy of steps": {**NPY, "steps": 12},
    "mmap_npy over documents": {**NPY, "reset_attention_mask": False, "eod_mask_loss": False},
    "mmap_npy of few": {**NPY, "packing_max_segments_per_sample": 4},
    "mmap_npy of a part": {**NPY, "mmap_npy_split": "70,30"},
    "mmap_npy of two": {**NPY, "steps": 12, "grain_train_files": "FOLDER/m-npy|FOLDER/m,0.4;FOLDER/n-npy|FOLDER/n,0.6"},
}
ALL = MEGATRON | {
    f"{source}, {objective}, {packing}": {**SOURCES[source], **PACKING[packing], **OBJECTIVES[objective]}
    for source in SOURCES
    for objective in OBJECTIVES
    for packing in PACKING
    # Pairs are never packed.
    if "DPO" not in objective or packing == "padded"
}
# The landing runs one of each source, objective and packing.
SOME = ["Parquet, text, first fit", "TFRecord, text, padded", "TFRecord, chunks, concatenated", "TFRecord, distillation, first fit"]
SOME += ["ArrayRecord, distillation, best fit", "Parquet, SFT of messages, first fit", "ArrayRecord, SFT of answers, padded"]
SOME += ["Parquet of four hosts, text, best fit", "evaluation of Parquet, text, first fit", "Parquet, DPO, padded"]
SOME += ["TFRecord, DPO of two, padded", "mmap of two", "mmap_npy"]
BATCHES, SAVED = 8, 3
# Batches before and within a measurement.
WARM, TIMED = 30, 300


def shown(batch: Any) -> Any:
    """Digests of the arrays. MaxText cannot train on arrays of objects."""
    if any(np.asarray(value).dtype == object for value in batch.values()):
        raise TypeError("an array of objects")
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
        given = {name: value.replace("FOLDER", str(folder)) if isinstance(value, str) else value for name, value in options.items()}
        hosts = given.pop("hosts", [0])
        if given.pop("evaluates", False):
            made = grain_data_processing.make_grain_eval_iterator(config(folder, **given), mesh, hosts)
        else:
            made = grain_data_processing.make_grain_train_iterator(config(folder, **given), mesh, hosts)
        # It closes its passes when it goes.
        kept.append(made)
        return iter(made.dataloader)

    kept: list[Any] = []
    chosen = ALL if sys.argv[4:] == ["all"] else CASES | {name: ALL[name] for name in SOME}
    for name, options in chosen.items():
        if sys.argv[4:] == ["time"]:
            if options.get("evaluates", False):
                # A single pass, which is too short.
                continue
            pass_ = start({**options, "num_epoch": 10_000, "grain_worker_count": 0})
            rows = sum(len(next(iter(batch.values()))) for batch in islice(pass_, WARM)) * TIMED // WARM
            begun = time.process_time()
            assert sum(1 for _ in islice(pass_, TIMED)) == TIMED
            print(json.dumps({"name": name, "us_per_row": round((time.process_time() - begun) / rows * 1e6)}), flush=True)
            multihost_dataloading._close_iterator(pass_)
            continue
        try:
            pass_ = start(options)
            first = [shown(batch) for batch in islice(pass_, SAVED)]
        except Exception as error:
            print(json.dumps({"name": name, "error": f"{type(error).__name__}: {error}"}), flush=True)
            continue
        saves = hasattr(pass_, "save") and name in CASES
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
