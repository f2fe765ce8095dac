"""A small transformer and a training loop, for the tests of samesum.torch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LENGTH, SYMBOLS = 32, 4, 16, 11


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.first(x)).reshape(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        attended = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        x = x + self.out(attended.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


class Transformer(nn.Module):
    """Predicts the next symbol. Its parameters are the same each time."""

    def __init__(self, layers: int = 2) -> None:
        torch.manual_seed(0)
        super().__init__()
        self.symbols, self.places = nn.Embedding(SYMBOLS, WIDTH), nn.Parameter(torch.randn(LENGTH, WIDTH) / 8)
        self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, SYMBOLS)

    def forward(self, symbols: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.blocks(self.symbols(symbols) + self.places)))


def train(model: nn.Module, device: str = "cpu", steps: int = 12) -> list[float]:
    """Trains on counting, and returns the losses."""
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
    generator = torch.Generator().manual_seed(1)
    losses = []
    for _ in range(steps):
        start = torch.randint(SYMBOLS, (8, 1), generator=generator).to(device)
        sequence = (start + torch.arange(LENGTH + 1, device=device)) % SYMBOLS
        loss = F.cross_entropy(model(sequence[:, :-1]).flatten(0, 1), sequence[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses
