"""Trains a small language model with PyTorch: `python train_torch.py DATA TOKENIZER --steps 100`, and again to resume."""

import gristmill as gm
import torch
from data import SEQ_LEN, options, show, split, vocabulary
from torch.nn import functional

WIDTH, EVERY = 64, 20


class Model(torch.nn.Module):
    """One layer of attention within each document."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.tokens, self.positions = torch.nn.Embedding(size, WIDTH), torch.nn.Embedding(SEQ_LEN, WIDTH)
        self.query, self.key, self.value, self.mix = (torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        for weight in self.parameters():
            torch.nn.init.normal_(weight, std=0.1)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Returns the mean loss of the next tokens."""
        x = self.tokens(batch["tokens"]) + self.positions(batch["tokens_positions"])
        segments = batch["tokens_segment_ids"]
        same = (segments[:, :, None] == segments[:, None, :]).tril()
        attended = functional.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), attn_mask=same)
        x = x + self.mix(functional.gelu(attended))
        return functional.cross_entropy((x @ self.tokens.weight.T).flatten(0, 1), batch["labels"].flatten().long())


def main() -> None:
    args = options()
    torch.manual_seed(0)
    training, validation = split(args.data, args.tokenizer)
    data, held_out = gm.torch.IterableDataset(training, threads=2), gm.torch.IterableDataset(validation)
    model, done = Model(vocabulary(args.tokenizer)), 0
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    if args.checkpoint.exists():
        saved = torch.load(args.checkpoint)
        model.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        data.load_state_dict(saved["data"])
        done = saved["step"]
    for done, batch in zip(range(done + 1, args.steps + 1), data):
        loss = model(batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            measured = [float(model(other)) for other in held_out] if done % EVERY == 0 else []
        show(done, loss.item(), batch["tokens"].numpy(), measured)
    state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "data": data.state_dict(), "step": done}
    torch.save(state, args.checkpoint)


if __name__ == "__main__":
    main()
