"""PyTorch's DataLoader over documents: `python torch_before.py FOLDER`."""

import json
import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset


class Documents(Dataset):
    def __init__(self, path):
        self.lines = path.read_text().splitlines()

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, index):
        text = json.loads(self.lines[index])["text"]
        return torch.tensor(list(text.encode()))


def pad(rows):
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def main(folder):
    documents = Documents(folder / "documents.jsonl")
    for shuffle in (False, True):
        loader = DataLoader(documents, batch_size=8, shuffle=shuffle, collate_fn=pad, num_workers=2)
        for batch in loader:
            for row in batch:
                print("shuffled" if shuffle else "in order", len(batch), bytes(row[row > 0].tolist()).decode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
