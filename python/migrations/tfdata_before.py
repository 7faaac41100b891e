"""tf.data over TFRecord files: `python tfdata_before.py FOLDER`."""

import sys
from pathlib import Path

import tensorflow as tf

FEATURES = {
    "number": tf.io.FixedLenFeature([], tf.int64),
    "text": tf.io.FixedLenFeature([], tf.string),
}


def main(folder):
    files = sorted(str(path) for path in (folder / "tfrecord").glob("*.tfrecord"))
    for shuffle in (False, True):
        ds = tf.data.TFRecordDataset(files)
        if shuffle:
            ds = ds.shuffle(1000, seed=1)
        ds = ds.map(lambda record: tf.io.parse_single_example(record, FEATURES), num_parallel_calls=tf.data.AUTOTUNE)
        for batch in ds.batch(8).prefetch(tf.data.AUTOTUNE):
            for number, text in zip(batch["number"].numpy().tolist(), batch["text"].numpy()):
                print("shuffled" if shuffle else "in order", len(batch["text"]), number, text.decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
