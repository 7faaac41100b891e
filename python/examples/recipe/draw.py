"""Draws the losses that the programs of the recipe printed: `python draw.py recorded/jax.txt recorded/torch.txt > losses.svg`."""

import re
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 360, 60, 46, 20, 52
LINE = re.compile(r"step (\d+) loss ([\d.]+) tokens \w+(?: validation ([\d.]+))?")
NAMES = {"jax": "JAX", "torch": "PyTorch"}
STYLE = """svg{--paper:#fff;--ink:#1d2327;--soft:#5c666d;--rule:#dfe4e6;--jax:#0072b2;--torch:#d55e00}
@media (prefers-color-scheme:dark){svg{--paper:#14181a;--ink:#e4e8ea;--soft:#98a3a9;--rule:#2c3438;--jax:#3b9ddb;--torch:#e8743b}}
text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif;fill:var(--ink)}.soft{fill:var(--soft)}
.rule{stroke:var(--rule)}.stop{stroke:var(--soft);stroke-dasharray:4 3}polyline{fill:none;stroke-width:1.5;stroke-linejoin:round}
.jax{stroke:var(--jax)}.torch{stroke:var(--torch)}circle{fill:var(--paper);stroke-width:1.8}.paper{fill:var(--paper)}"""

Steps = list[tuple[int, float, float | None]]


def read(path: Path) -> tuple[Steps, int | None]:
    """Returns the steps of a run, and the step after which it was resumed."""
    runs = path.read_text().split("resumed\n")
    found = [[(int(step), float(loss), float(held) if held else None) for step, loss, held in LINE.findall(run)] for run in runs]
    return [step for run in found for step in run], found[0][-1][0] if len(found) > 1 else None


def draw(paths: list[Path]) -> str:
    runs = {path.stem: read(path) for path in paths}
    last = max(steps[-1][0] for steps, _ in runs.values())
    most = max(loss for steps, _ in runs.values() for _, loss, _ in steps)
    most = int(most) + 1

    def x(step: float) -> float:
        return LEFT + step / last * (WIDTH - LEFT - RIGHT)

    def y(loss: float) -> float:
        return TOP + (1 - loss / most) * (HEIGHT - TOP - BOTTOM)

    def text(at: float, down: float, words: str, anchor: str = "middle", style: str = "soft") -> str:
        return f'<text class="{style}" x="{at:.0f}" y="{down:.0f}" text-anchor="{anchor}">{words}</text>'

    out = [f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="6"/>', text(LEFT, 26, "loss: cross-entropy of the next token, in nats", "start", "ink")]
    for loss in range(0, most + 1, 2):
        out += [f'<path class="rule" d="M{LEFT} {y(loss):.1f}H{WIDTH - RIGHT}"/>', text(LEFT - 10, y(loss) + 4, str(loss), "end")]
    out += [text(x(step), HEIGHT - BOTTOM + 20, str(step)) for step in range(0, last + 1, 20 if last <= 200 else 100)]
    out.append(text(WIDTH - RIGHT, HEIGHT - 12, "step", "end"))
    for step in {stopped for _, stopped in runs.values() if stopped}:
        out += [f'<path class="stop" d="M{x(step):.1f} {TOP}V{HEIGHT - BOTTOM}"/>', text(x(step) + 6, TOP + 14, "stopped and resumed", "start")]
    for at, (name, (steps, _)) in enumerate(runs.items()):
        points = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss, _ in steps)
        out.append(f'<polyline class="{name}" points="{points}"/>')
        out += [f'<circle class="{name}" cx="{x(step):.1f}" cy="{y(held):.1f}" r="3.5"/>' for step, _, held in steps if held]
        left = LEFT + 260 * at
        out += [f'<polyline class="{name}" points="{left},{HEIGHT - 16} {left + 22},{HEIGHT - 16}"/>', f'<circle class="{name}" cx="{left + 150}" cy="{HEIGHT - 16}" r="3.5"/>']
        out += [text(left + 28, HEIGHT - 12, f"{NAMES[name]}, training", "start", "ink"), text(left + 160, HEIGHT - 12, "validation", "start", "ink")]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img"><title>Loss by step</title><style>{STYLE}</style>'
    return "\n".join([head, *out, "</svg>\n"])


if __name__ == "__main__":
    sys.stdout.write(draw([Path(path) for path in sys.argv[1:]]))
